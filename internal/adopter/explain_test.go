package adopter

import (
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

// deployment returns Crossplane's Deployment as in its chart.
func deployment(name, version string, ready int64) *unstructured.Unstructured {
	return apiserver.Chart("crossplane-system", name, ready, apiserver.Image("xpkg.crossplane.io/crossplane/crossplane:v"+version))
}

// isRequest reports whether an action sets or removes a request for a reconcile.
func isRequest(action clienttesting.Action, value string) bool {
	p, ok := action.(clienttesting.PatchAction)

	return ok && strings.Contains(string(p.GetPatch()), xp.AnnotationReconcileRequested+value)
}

func TestAdoptNamesWhatIsStuck(t *testing.T) {
	objects, _, xr, child := apiserver.RestoredTree()
	type args struct {
		reason string
		stuck  time.Duration
		extra  []*unstructured.Unstructured
		fail   error
		want   string
		event  string
	}
	xptest.Each(t, map[string]args{
		"Fresh": {reason: "Crossplane may be busy.", stuck: time.Hour, want: "", event: "Normal Waiting"},
		"Down": {
			reason: "No replica of Crossplane is ready.", extra: []*unstructured.Unstructured{deployment("crossplane", "2.3.4", 0)},
			want: "no replica of Crossplane (Deployment crossplane-system/crossplane) is ready", event: "Warning AdoptionStuck",
		},
		"Old": {
			reason: "The advice depends on the version of Crossplane, not of the RBAC manager.",
			extra:  []*unstructured.Unstructured{deployment("crossplane-rbac-manager", "9.9.9", 1), deployment("crossplane", "1.18.0", 1)},
			want:   "Crossplane 1.18.0 stops watching", event: "Warning AdoptionStuck",
		},
		"Unknown": {reason: "The message admits that the version is unknown.", fail: apiserver.ErrDown, want: "Crossplane's Deployment can't be read", event: "Warning AdoptionStuck"},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewServer(append(tc.extra, objects...)...)
		if tc.fail != nil {
			s.FailOn("list", "deployments", 1<<30, tc.fail)
		}
		a := newFastAdopter(s)
		a.stuckAfter, a.requestAfter = tc.stuck, time.Hour
		for range 2 {
			plans, err := a.Adopt(t.Context(), hold.Unverified, apiserver.Monday, selector, xp.RefTo(xr))
			xptest.Must(t, err)
			if got := waiting(plans[xp.RefTo(child).ID()]); tc.want == "" && strings.Contains(got, "Deployment") || !strings.Contains(got, tc.want) {
				t.Errorf("%s\nthe plan waits for %q", tc.reason, got)
			}
		}
		if h, err := hold.Of(s.Get(t, apiserver.XOrders, "", "c")); err != nil || !strings.Contains(h.Reason, tc.want) {
			t.Errorf("%s\nhold %+v, error %v", tc.reason, h, err)
		}
		var told []string
		for _, e := range withoutMessages(s.WrittenEvents()) {
			if event, about := strings.CutSuffix(e, " c"); about {
				told = append(told, event)
			}
		}
		xptest.Same(t, []string{"Normal Held", tc.event}, told, tc.reason)
	})
}

// A poll lists kinds. It reads no object separately that has not changed since, and goes on if a
// request fails.
func TestAdoptRequestsListedObjects(t *testing.T) {
	forbidden, conflict := apierrors.NewForbidden(apiserver.XOrders.GroupResource(), "x", apiserver.ErrDown), apierrors.NewConflict(apiserver.XOrders.GroupResource(), "x", apiserver.ErrDown)
	for name, fails := range map[string]map[string]error{"Accepted": {}, "Refused": {"patch": forbidden}, "Unreadable": {"get": forbidden, "patch": conflict}} {
		t.Run(name, func(t *testing.T) {
			xptest.Bubble(t, func(t *testing.T) {
				objects, _, xr, _ := apiserver.RestoredTree()
				s := apiserver.NewServer(objects...)
				for verb, err := range fails {
					s.FailOn(verb, "xorders", 1<<30, err)
				}
				a := newFastAdopter(s)
				a.requestAfter, a.stuckAfter = 0, time.Hour
				if p := adoptWith(t, a, hold.Unverified, xr); p.Done {
					t.Errorf("got %+v", p)
				}
				asked := 0
				for _, action := range s.Actions() {
					if isRequest(action, "") {
						asked++
					}
					if action.Matches("get", "xorders") {
						t.Error("a poll must not get a single XR")
					}
				}
				if len(fails) == 0 && (asked == 0 || asked%2 != 0) {
					t.Errorf("each request for a reconcile must be removed, but there are %d writes", asked)
				}
			})
		})
	}
}

func TestIsDue(t *testing.T) {
	a := New(nil, discardLog())
	for age, want := range map[time.Duration]bool{
		time.Second: false, 10 * time.Second: true, 25 * time.Second: true, 9 * time.Minute: true,
		11*time.Minute + 10*time.Second: true, 11*time.Minute + 30*time.Second: false,
	} {
		if got := a.isDue(age); got != want {
			t.Errorf("after %s of silence: %v", age, got)
		}
	}
}

// A released object waits for Crossplane's reconcile, whichever restore has created it. An object
// that no restore has created does not.
func TestAdoptWaitsAfterTheRelease(t *testing.T) {
	for label, done := range map[string]bool{"velero.io/restore-name": false, "theirs": true} {
		xptest.Bubble(t, func(t *testing.T) {
			xr := xptest.XR("x", xptest.Labelled(label, "sunday"), xptest.Generation(2), xptest.Reconciled(), xptest.OfGeneration(1))
			if p := adopt(t, apiserver.NewServer(xr), xr); p.Done != done {
				t.Errorf("with the label %s: got %+v", label, p)
			}
		})
	}
}

// A Usage that an XR left behind is reported when the XR is adopted, with an Event, and in each
// later poll. Usages are listed once in a poll.
func TestAdoptReportsLeftovers(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		objects, _, xr, _ := apiserver.RestoredTree()
		usage := func(name string, o ...xptest.Option) *unstructured.Unstructured {
			return xptest.Object(apiserver.Usages.GroupVersion().String(), "Usage", "", name, append([]xptest.Option{
				xptest.JSON(`{"spec":{"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","resourceRef":{"name":"b"}}}}`),
			}, o...)...)
		}
		s := apiserver.NewPlatform(append(objects, apiserver.XOrderXRD(), usage("left", xptest.ControlledBy(xr)), usage("own"))...)
		simulateCrossplane(s)
		for i := range 2 {
			p := adopt(t, s, xr)
			if !p.Done || len(p.Remarks) != 1 || !strings.HasPrefix(p.Remarks[0].String(), "Usage left: XOrder x composed it") {
				t.Fatalf("got %+v", p)
			}
			told := slices.DeleteFunc(s.WrittenEvents(), func(e string) bool { return !strings.Contains(e, "UsagesLeftBehind") })
			xptest.Same(t, []string{"Warning UsagesLeftBehind x: " + p.Remarks[0].String()}, told, "one Event when the XR is adopted, and no more")
			if n := strings.Count(strings.Join(s.Requests("list"), "\n"), "usages"); n != i+1 {
				t.Errorf("poll %d: Usages were listed %d times", i, n)
			}
		}
		s = apiserver.NewPlatform(append(objects, apiserver.XOrderXRD())...)
		simulateCrossplane(s)
		s.FailOn("list", apiserver.Usages.Resource, 1, apiserver.ErrDown)
		done(t, adopt(t, s, xr))
	})
}

// An XR with a terminating XRD is not unpaused.
func TestAdoptWaitsForThePlatform(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		objects, _, xr, _ := apiserver.RestoredTree()
		objects[5] = xptest.With(objects[5], xptest.JSON(`{"spec":{"pipeline":[{"functionRef":{"name":"f"}}]}}`))
		s := apiserver.NewPlatform(append(objects, apiserver.XOrderXRD(xptest.Deleting()))...)
		simulateCrossplane(s)
		why := waiting(adopt(t, s, xr))
		for _, want := range []string{"its XRD xorders.example.org is being deleted", "Function f: the pipeline of XOrder x calls it, and it is not installed"} {
			if !strings.Contains(why, want) {
				t.Errorf("the plan must wait with %q: %s", want, why)
			}
		}
		if patched := s.Steps(); len(patched) > 0 {
			t.Errorf("nothing may be released; got %v", patched)
		}
		s.FailOn("list", apiserver.Functions.Resource, 1, apiserver.ErrDown)
		if _, err := newFastAdopter(s).Adopt(t.Context(), hold.Unverified, apiserver.Monday, selector, xp.RefTo(xr)); err == nil {
			t.Error("without an answer the plan must fail")
		}
	})
}
