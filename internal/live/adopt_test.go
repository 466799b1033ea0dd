package live

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// newFastAdopter returns an Adopter with short timeouts.
func newFastAdopter(s *server) *Adopter {
	a := NewAdopter(s.cluster(), discardLog())
	a.firstWait, a.patience, a.limit, a.pause = 50*time.Millisecond, 50*time.Millisecond, 5*time.Second, time.Millisecond

	return a
}

// simulateCrossplane makes each list of XRs see the next reconcile of each.
func simulateCrossplane(s *server) {
	simulateCrossplaneExcept(s, func(*unstructured.Unstructured) bool { return false })
}

// simulateCrossplaneExcept is simulateCrossplane without the objects for which isLate returns true.
func simulateCrossplaneExcept(s *server, isLate func(u *unstructured.Unstructured) bool) {
	s.PrependReactor("list", "xorders", func(clienttesting.Action) (bool, runtime.Object, error) {
		for _, kind := range []struct {
			resource  schema.GroupVersionResource
			list      schema.GroupVersionKind
			namespace string
		}{
			{xorders, schema.FromAPIVersionAndKind(xptest.LegacyVersion, xptest.LegacyKind), ""},
			{orderclaims, schema.FromAPIVersionAndKind(xptest.LegacyVersion, xptest.ClaimKind), xptest.Namespace},
		} {
			obj, err := s.Tracker().List(kind.resource, kind.list, kind.namespace)
			if err != nil {
				return true, nil, err
			}
			for _, u := range obj.(*unstructured.UnstructuredList).Items { //nolint:forcetypeassert // The tracker returns only lists.
				condition := xptest.Reconciled()
				if xp.IsPaused(&u) {
					condition = xptest.SeenPaused()
				}
				if isLate(&u) {
					continue
				}
				if next := xptest.With(&u, condition); !cmp.Equal(next, &u) {
					s.put(kind.resource, next)
				}
			}
		}

		return false, nil, nil
	})
}

// restoredTree returns a claim, its XR, a nested XR and their MRs, all restored.
func restoredTree() (objects []*unstructured.Unstructured, claim, xr, child *unstructured.Unstructured) {
	x, c := xptest.XR("x"), xptest.XR("c")
	deep, mine := xptest.MR("deep", xptest.ControlledBy(c), xptest.Reconciled()), xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	child = xptest.XR("c", xptest.ControlledBy(x), xptest.Refs(deep), xptest.Policy("Automatic"))
	claim = xptest.Claim("o", xptest.OfXR(x))
	xr = xptest.XR("x", xptest.ClaimedBy(claim), xptest.Refs(child, mine))

	return []*unstructured.Unstructured{
		restored(claim), restored(xr), restored(child), restored(deep), restored(mine), restored(xptest.Revision(xptest.RevisionName, x)),
	}, claim, xr, child
}

func TestAdoptTree(t *testing.T) {
	objects, claim, xr, child := restoredTree()
	s := newServer(objects...)
	simulateCrossplane(s)
	plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
	if err != nil {
		t.Fatal(err)
	}
	if p := plans[xp.RefTo(xr).ID()]; !p.Done || p.Adopted != 2 {
		t.Errorf("one call must adopt the whole tree; got %+v", p)
	}
	want := []string{"xorders /c", "xorders /c", "xorders /x", "orderclaims team-a/o", "xorders /x"}
	if diff := cmp.Diff(want, s.requests("patch")); diff != "" {
		t.Errorf("the child is unpaused and released, then its parent is unpaused, then the claim is released, then the parent: -want, +requested:\n%s", diff)
	}
	label := xptest.Labelled("velero.io/restore-name", "monday")
	for gvr, list := range map[schema.GroupVersionResource][]*unstructured.Unstructured{xorders: {xr, child}, orderclaims: {claim}} {
		for _, own := range list {
			got := xptest.With(s.get(t, gvr, own.GetNamespace(), own.GetName()), xptest.Without("status"), xptest.Without("metadata", "resourceVersion"))
			if len(got.GetAnnotations()) == 0 {
				xptest.Without("metadata", "annotations")(got)
			}
			if diff := cmp.Diff(xptest.With(own, label), got); diff != "" {
				t.Errorf("%s differs from the backup: -own, +now:\n%s", xp.String(own), diff)
			}
		}
	}
	again, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
	if err != nil || !again[xp.RefTo(xr).ID()].Done || len(s.requests("patch")) != len(want) {
		t.Errorf("a second adoption must change nothing: plans %+v, error %v", again, err)
	}
}

func TestAdoptWaits(t *testing.T) {
	objects, _, xr, _ := restoredTree()
	cases := map[string]struct {
		reason string
		change func(s *server)
		// once is set if the poll observes once.
		once bool
		want string
	}{
		"Moving": {reason: "Crossplane may need moments to see a pause.", change: func(*server) {}, want: "XOrder x: Crossplane has not reported yet that it is paused [AwaitingPauseReport]"},
		"NotMoving": {
			reason: "A user's step takes longer than a poll.", once: true, want: "Bucket b: it is not in the cluster",
			change: func(s *server) {
				s.put(xorders, xptest.With(s.get(t, xorders, "", "x"), xptest.SeenPaused()))
				s.put(xorders, xptest.XR("c", xptest.ControlledBy(xptest.XR("x"))))
				_ = s.Tracker().Delete(buckets, "", "b")
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(objects...)
			tc.change(s)
			plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
			if err != nil {
				t.Fatal(err)
			}
			if p := plans[xp.RefTo(xr).ID()]; p.Done || !strings.Contains(strings.Join(reason.Strings(p.Waiting), "\n"), tc.want) {
				t.Errorf("%s\ngot %+v", tc.reason, p)
			}
			looks := 0
			for _, l := range s.requests("list") {
				if l == "xorders "+selector {
					looks++
				}
			}
			if (looks == 1) != tc.once {
				t.Errorf("%s\nlooked %d times", tc.reason, looks)
			}
			if patches := s.steps(); len(patches) > 0 {
				t.Errorf("%s\nsteps: %v", tc.reason, patches)
			}
		})
	}
}

func TestAdoptObservesAgain(t *testing.T) {
	gr := xorders.GroupResource()
	for name, err := range map[string]error{"Conflict": apierrors.NewConflict(gr, "x", errDown), "NotFound": apierrors.NewNotFound(gr, "x")} {
		objects, _, xr, _ := restoredTree()
		s := newServer(objects...)
		simulateCrossplane(s)
		s.failOn("patch", "*", 3, err)
		plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
		if err != nil || !plans[xp.RefTo(xr).ID()].Done {
			t.Errorf("%s: a change after the observation must be observed again; got %+v, %v", name, plans, err)
		}
	}
}

func TestAdoptEndsThoughEveryStepIsRefused(t *testing.T) {
	objects, _, xr, _ := restoredTree()
	s := newServer(objects...)
	simulateCrossplane(s)
	s.failOn("patch", "*", 1<<30, apierrors.NewConflict(xorders.GroupResource(), "x", errDown))
	a := newFastAdopter(s)
	a.limit = 50 * time.Millisecond
	plans, err := a.Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
	if err != nil || plans[xp.RefTo(xr).ID()].Done {
		t.Errorf("got %+v, %v", plans, err)
	}
}

// An admission policy that rejects the patch of one XR for ever must not block the others.
func TestAdoptGoesOnWithoutWhatIsRefused(t *testing.T) {
	bad, good := xptest.XR("bad", xptest.NeverComposed()), xptest.XR("good", xptest.NeverComposed())
	s := newServer(restored(bad), restored(good))
	simulateCrossplane(s)
	s.PrependReactor("patch", "xorders", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if p, ok := action.(clienttesting.PatchActionImpl); ok && p.GetName() == "bad" {
			return true, nil, apierrors.NewForbidden(xorders.GroupResource(), "bad", errors.New("no team label"))
		}

		return false, nil, nil
	})
	plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(bad))
	if err != nil {
		t.Fatalf("got error %v", err)
	}
	if h, err := adoption.HoldOf(s.get(t, xorders, "", "good")); h != nil || err != nil {
		t.Errorf("the other XR is still held: %+v, %v", h, err)
	}
	if p := plans[xp.RefTo(bad).ID()]; p.Done || !strings.Contains(strings.Join(reason.Strings(p.Waiting), "\n"), "no team label") {
		t.Errorf("the plan must name the refusal; got %+v", p)
	}
}

func TestAdoptErrors(t *testing.T) {
	objects, _, xr, _ := restoredTree()
	s := newServer(objects...)
	s.failOn("list", "buckets", 1, errDown)
	if _, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr)); !errors.Is(err, errDown) {
		t.Errorf("a snapshot that failed must give no plan; got error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := newFastAdopter(newServer(objects...)).Adopt(ctx, adoption.Unverified, monday, selector, xp.RefTo(xr)); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
}

func TestGiveUp(t *testing.T) {
	const why = "it took too long"
	const reason = why + ". It stays held, so nothing is lost; correct that, then run: velero-plugin-for-crossplane release "
	const code = " [RestoreStopped]"
	objects, claim, xr, _ := restoredTree()
	unserved := xp.Ref{APIVersion: "gone.org/v1", Kind: "Gone", Name: "g"}
	type want struct {
		Reason string
		Events int
		Err    error
	}
	cases := map[string]struct {
		reason string
		change func(s *server)
		ref    xp.Ref
		gvr    schema.GroupVersionResource
		want   want
	}{
		"XR":       {reason: "The hold and an Event carry the reason.", ref: xp.RefTo(xr), gvr: xorders, want: want{Reason: reason + "x" + code, Events: 1}},
		"Claim":    {reason: "The hold of a claim carries the reason too.", ref: xp.RefTo(claim), gvr: orderclaims, want: want{Reason: reason + "team-a/o" + code, Events: 1}},
		"Missing":  {reason: "An XR that does not exist needs no reason.", ref: xp.RefTo(xptest.XR("gone"))},
		"Unserved": {reason: "An object of a kind that is not served can't exist.", ref: unserved},
		"NotHeld": {
			reason: "An object without a hold has no mark for the reason.", ref: xp.RefTo(xr), gvr: xorders,
			change: func(s *server) { s.put(xorders, xr) }, want: want{Events: 1},
		},
		"Passing": {reason: "A failed read is an error.", ref: xp.RefTo(xr), change: func(s *server) { s.failOn("get", "*", 1, errDown) }, want: want{Err: errDown}},
		"Refused": {reason: "A failed write is an error.", ref: xp.RefTo(xr), change: func(s *server) { s.failOn("patch", "*", 1, errDown) }, want: want{Err: errDown}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(objects...)
			if tc.change != nil {
				tc.change(s)
			}
			err := newFastAdopter(s).GiveUp(context.Background(), adoption.Unverified, tc.ref, why)
			if !errors.Is(err, tc.want.Err) {
				t.Fatalf("%s\ngot error %v", tc.reason, err)
			}
			list, listErr := s.Resource(events).List(context.Background(), metav1.ListOptions{})
			if listErr != nil || len(list.Items) != tc.want.Events {
				t.Errorf("%s\nEvents: %v, %v", tc.reason, list, listErr)
			}
			if tc.gvr.Empty() {
				return
			}
			u := s.get(t, tc.gvr, tc.ref.Namespace, tc.ref.Name)
			h, err := adoption.HoldOf(u)
			if err != nil || (h == nil) != (tc.want.Reason == "") || h != nil && (h.Reason != tc.want.Reason || !xp.IsPaused(u)) {
				t.Errorf("%s\nhold %+v, error %v", tc.reason, h, err)
			}
		})
	}
	s := newServer(xptest.XR("x", xptest.Annotated(adoption.AnnotationHold, "?")))
	if err := newFastAdopter(s).GiveUp(context.Background(), adoption.Unverified, xp.RefTo(xr), why); err != nil {
		t.Errorf("an XR with a malformed mark must be given up without an error: %v", err)
	}
	if events := s.writtenEvents(); len(events) != 1 || !strings.Contains(events[0], "cannot read the annotation") || !strings.HasSuffix(events[0], code) {
		t.Errorf("a malformed mark can't carry the reason, so an Event must; got %v", events)
	}
}
