package live

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// deployment returns Crossplane's Deployment as in its chart.
func deployment(name, version string, ready int64) *unstructured.Unstructured {
	return xptest.Object("apps/v1", "Deployment", "crossplane-system", name, xptest.Labelled("app.kubernetes.io/part-of", "crossplane"),
		xptest.Field(int64(1), "spec", "replicas"), xptest.Field(ready, "status", "readyReplicas"),
		xptest.Field([]any{map[string]any{"image": "xpkg.crossplane.io/crossplane/crossplane:v" + version}}, "spec", "template", "spec", "containers"))
}

var scaledDown = xptest.Field(int64(0), "spec", "replicas")

// reconcileOnRequest makes Crossplane reconcile only after a request.
func reconcileOnRequest(s *server) {
	s.PrependReactor("patch", "xorders", func(action clienttesting.Action) (bool, runtime.Object, error) {
		p, ok := action.(clienttesting.PatchActionImpl)
		if !ok || !strings.Contains(string(p.GetPatch()), xp.AnnotationReconcileRequested+`":"2`) {
			return false, nil, nil
		}
		handled, obj, err := s.rejectStale(action)
		if err != nil {
			return handled, obj, err
		}
		u, _ := obj.(*unstructured.Unstructured)
		condition := xptest.Reconciled()
		if xp.IsPaused(u) {
			condition = xptest.SeenPaused()
		}
		obj, err = s.Tracker().Get(xorders, "", p.GetName())
		u, _ = obj.(*unstructured.Unstructured)
		s.put(xorders, xptest.With(u, condition))

		return true, u, err
	})
}

// A Crossplane that loses every event adopts after requests, and no request annotation is left.
func TestAdoptRequestsReconciles(t *testing.T) {
	b := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")), xptest.Reconciled())
	own := xptest.XR("x", xptest.Refs(b), xptest.Annotated(xp.AnnotationReconcileRequested, "once"))
	s := newServer(restored(own), restored(b), restored(xptest.Revision(xptest.RevisionName, own)))
	reconcileOnRequest(s)
	a := newFastAdopter(s)
	a.requestAfter = 0
	for range 4 { // Four polls.
		plans, err := a.Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(own))
		if err != nil {
			t.Fatal(err)
		}
		if plans[xp.RefTo(own).ID()].Done {
			break
		}
	}
	got := xptest.With(s.get(t, xorders, "", "x"), xptest.Without("status"), xptest.Without("metadata", "resourceVersion"))
	if diff := cmp.Diff(xptest.With(own, xptest.Labelled("velero.io/restore-name", "monday")), got); diff != "" {
		t.Errorf("the XR is not adopted, or differs from the backup: -own, +now:\n%s", diff)
	}
}

func TestAdoptNamesWhatIsStuck(t *testing.T) {
	objects, _, xr, child := restoredTree()
	cases := map[string]struct {
		reason string
		stuck  time.Duration
		extra  []*unstructured.Unstructured
		fail   error
		want   string
		event  string
	}{
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
		"Unknown": {reason: "The message admits that the version is unknown.", fail: errDown, want: "Crossplane's Deployment can't be read", event: "Warning AdoptionStuck"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(append(tc.extra, objects...)...)
			if tc.fail != nil {
				s.failOn("list", "deployments", 1<<30, tc.fail)
			}
			a := newFastAdopter(s)
			a.stuckAfter, a.requestAfter = tc.stuck, time.Hour
			for range 2 {
				plans, err := a.Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
				if err != nil {
					t.Fatal(err)
				}
				got := strings.Join(reason.Strings(plans[xp.RefTo(child).ID()].Waiting), "\n")
				if tc.want == "" && strings.Contains(got, "Deployment") || !strings.Contains(got, tc.want) {
					t.Errorf("%s\nthe plan waits for %q", tc.reason, got)
				}
			}
			h, err := adoption.HoldOf(s.get(t, xorders, "", "c"))
			if err != nil || !strings.Contains(h.Reason, tc.want) {
				t.Errorf("%s\nhold %+v, error %v", tc.reason, h, err)
			}
			var told []string
			for _, e := range s.writtenEvents() {
				e, _, _ = strings.Cut(e, ": ")
				if event, about := strings.CutSuffix(e, " c"); about {
					told = append(told, event)
				}
			}
			if diff := cmp.Diff([]string{"Normal Held", tc.event}, told); diff != "" {
				t.Errorf("%s\nEvents of two polls, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A poll lists kinds. It reads no object separately that has not changed since.
func TestAdoptRequestsListedObjects(t *testing.T) {
	objects, _, xr, _ := restoredTree()
	s := newServer(objects...)
	a := newFastAdopter(s)
	a.requestAfter, a.stuckAfter = 0, time.Hour
	if _, err := a.Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr)); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, action := range s.Actions() {
		if action.Matches("get", "xorders") {
			t.Error("a poll must not get a single XR")
		}
		if patch, ok := action.(clienttesting.PatchAction); ok && strings.Contains(string(patch.GetPatch()), xp.AnnotationReconcileRequested) {
			asked++
		}
	}
	if asked == 0 || asked%2 != 0 {
		t.Errorf("each request for a reconcile must be removed, but there are %d writes", asked)
	}
}

// A request that fails is repeated at the next poll.
func TestAdoptGoesOnWithoutRequests(t *testing.T) {
	objects, _, xr, _ := restoredTree()
	for _, verb := range []string{"get", "patch"} {
		s := newServer(objects...)
		s.failOn(verb, "xorders", 1<<30, apierrors.NewForbidden(xorders.GroupResource(), "x", errDown))
		if verb == "get" { // The object is read only if it has changed.
			s.failOn("patch", "xorders", 1<<30, apierrors.NewConflict(xorders.GroupResource(), "x", errDown))
		}
		a := newFastAdopter(s)
		a.requestAfter = 0
		plans, err := a.Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
		if err != nil || plans[xp.RefTo(xr).ID()].Done {
			t.Errorf("%s: got %+v, %v", verb, plans, err)
		}
	}
}

func TestIsDue(t *testing.T) {
	a := NewAdopter(nil, discardLog())
	for age, want := range map[time.Duration]bool{
		time.Second: false, 10 * time.Second: true, 25 * time.Second: true, 9 * time.Minute: true,
		11*time.Minute + 10*time.Second: true, 11*time.Minute + 30*time.Second: false,
	} {
		if got := a.isDue(age); got != want {
			t.Errorf("after %s of silence: %v", age, got)
		}
	}
}

func TestInstallation(t *testing.T) {
	plain := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("apps/v1", "Deployment", "upbound", "xp", append([]xptest.Option{
			xptest.Labelled("app.kubernetes.io/part-of", "crossplane"), xptest.Field(int64(2), "status", "readyReplicas"),
		}, o...)...)
	}
	image := func(i string) xptest.Option {
		return xptest.Field([]any{map[string]any{"image": i}}, "spec", "template", "spec", "containers")
	}
	found := func(version string) adoption.Installation {
		return adoption.Installation{Namespace: "upbound", Name: "xp", Version: version, Replicas: 1, Ready: 2}
	}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		want    adoption.Installation
	}{
		"None": {reason: "A Crossplane that the chart did not install is not found.", objects: []*unstructured.Unstructured{xptest.Object("apps/v1", "Deployment", "a", "b")}},
		"Image": {
			reason:  "The image names the version that runs.",
			objects: []*unstructured.Unstructured{plain(image("localhost:5000/xp:v1.18.2@sha256:00"))}, want: found("1.18.2"),
		},
		"Latest": {reason: "A tag can be no version.", objects: []*unstructured.Unstructured{plain(image("xp:latest"))}, want: found("")},
		"NoTag":  {reason: "An image can have no tag.", objects: []*unstructured.Unstructured{plain(image("localhost:5000/xp"))}, want: found("")},
		"Label": {
			reason:  "The chart's label names its version.",
			objects: []*unstructured.Unstructured{plain(image("xp:latest"), xptest.Labelled("app.kubernetes.io/version", "1.19.0"))}, want: found("1.19.0"),
		},
		"Two": {
			reason:  "A Deployment that was scaled down does not count.",
			objects: []*unstructured.Unstructured{xptest.With(deployment("crossplane", "1.0.0", 0), scaledDown), plain(image("xp:v2.3.4"))}, want: found("2.3.4"),
		},
		"Scaled": {
			reason:  "A user has scaled Crossplane to zero.",
			objects: []*unstructured.Unstructured{plain(xptest.Field(int64(0), "spec", "replicas"), xptest.Without("status"))},
			want:    adoption.Installation{Namespace: "upbound", Name: "xp"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := newServer(tc.objects...).cluster().Installation(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A released object waits for Crossplane's reconcile, whichever restore has created it. An object
// that no restore has created does not.
func TestAdoptWaitsAfterTheRelease(t *testing.T) {
	for label, done := range map[string]bool{"velero.io/restore-name": false, "theirs": true} {
		xr := xptest.XR("x", xptest.Labelled(label, "sunday"), xptest.Generation(2), xptest.Reconciled(), xptest.OfGeneration(1))
		plans, err := newFastAdopter(newServer(xr)).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
		if err != nil || plans[xp.RefTo(xr).ID()].Done != done {
			t.Errorf("with the label %s: got %+v, %v", label, plans, err)
		}
	}
}
