package adopter

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

func TestAdoptTree(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		objects, claim, xr, child := apiserver.RestoredTree()
		s := apiserver.NewServer(objects...)
		simulateCrossplane(s)
		if p := adopt(t, s, xr); !p.Done || p.Adopted != 2 {
			t.Errorf("one call must adopt the whole tree; got %+v", p)
		}
		want := []string{"xorders /c", "xorders /c", "xorders /x", "orderclaims team-a/o", "xorders /x"}
		xptest.Same(t, want, s.Requests("patch"), "the child is unpaused and released, then its parent is unpaused, then the claim is released, then the parent")
		checkOwn(t, xr, s.Get(t, apiserver.XOrders, "", "x"))
		checkOwn(t, child, s.Get(t, apiserver.XOrders, "", "c"))
		checkOwn(t, claim, s.Get(t, apiserver.OrderClaims, xptest.Namespace, "o"))
		if again := adopt(t, s, xr); !again.Done || len(s.Requests("patch")) != len(want) {
			t.Errorf("a second adoption must change nothing: %+v", again)
		}
	})
}

func TestAdoptWaits(t *testing.T) {
	type args struct {
		reason string
		change func(s *apiserver.Server)
		// once is set if the poll observes once.
		once bool
		want string
	}
	xptest.Each(t, map[string]args{
		"Moving": {reason: "Crossplane may need moments to see a pause.", change: func(*apiserver.Server) {}, want: "[AwaitingPauseReport]"},
		"NotMoving": {
			reason: "A user's step takes longer than a poll.", once: true, want: "Bucket b: it is not in the cluster",
			change: func(s *apiserver.Server) {
				s.Put(apiserver.XOrders, xptest.With(s.Get(t, apiserver.XOrders, "", "x"), xptest.SeenPaused()))
				s.Put(apiserver.XOrders, xptest.XR("c", xptest.ControlledBy(xptest.XR("x"))))
				_ = s.Tracker().Delete(apiserver.Buckets, "", "b")
			},
		},
	}, func(t *testing.T, tc args) {
		objects, _, xr, _ := apiserver.RestoredTree()
		s := apiserver.NewServer(objects...)
		tc.change(s)
		if p := adopt(t, s, xr); p.Done || !strings.Contains(waiting(p), tc.want) {
			t.Errorf("%s\ngot %+v", tc.reason, p)
		}
		if looks := s.Count("list", "xorders "+selector); (looks == 1) != tc.once {
			t.Errorf("%s\nlooked %d times", tc.reason, looks)
		}
		if patches := s.Steps(); len(patches) > 0 {
			t.Errorf("%s\nsteps: %v", tc.reason, patches)
		}
	})
}

func TestAdoptObservesAgain(t *testing.T) {
	gr := apiserver.XOrders.GroupResource()
	for name, tc := range map[string]struct {
		err   error
		times int
		done  bool
	}{
		"Conflict": {err: apierrors.NewConflict(gr, "x", apiserver.ErrDown), times: 3, done: true},
		"NotFound": {err: apierrors.NewNotFound(gr, "x"), times: 3, done: true},
		"Always":   {err: apierrors.NewConflict(gr, "x", apiserver.ErrDown), times: 1 << 30},
		"Gone":     {err: apierrors.NewNotFound(gr, "x"), times: 1 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			xptest.Bubble(t, func(t *testing.T) {
				objects, _, xr, _ := apiserver.RestoredTree()
				s := apiserver.NewServer(objects...)
				simulateCrossplane(s)
				s.FailOn("patch", "*", tc.times, tc.err)
				if p := adopt(t, s, xr); p.Done != tc.done || strings.Contains(waiting(p), string(reason.ChangeRefused)) {
					t.Errorf("a change after the observation must be observed again until the poll ends; got %+v", p)
				}
			})
		})
	}
}

// An admission policy that rejects the patch of one XR for ever must not block the others.
func TestAdoptGoesOnWithoutWhatIsRefused(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		bad, good := xptest.XR("bad", xptest.NeverComposed()), xptest.XR("good", xptest.NeverComposed())
		s := apiserver.NewServer(apiserver.Restored(bad), apiserver.Restored(good))
		simulateCrossplane(s)
		s.PrependReactor("patch", "xorders", func(action clienttesting.Action) (bool, runtime.Object, error) {
			p, ok := action.(clienttesting.PatchActionImpl)

			return ok && p.GetName() == "bad", nil, apierrors.NewForbidden(apiserver.XOrders.GroupResource(), "bad", errors.New("no team label"))
		})
		if p := adopt(t, s, bad); p.Done || !strings.Contains(waiting(p), "no team label") {
			t.Errorf("the plan must name the refusal; got %+v", p)
		}
		checkOwn(t, good, s.Get(t, apiserver.XOrders, "", "good"))
	})
}

func TestAdoptEndsWithItsContext(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		objects, _, xr, _ := apiserver.RestoredTree()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := newFastAdopter(apiserver.NewServer(objects...)).Adopt(ctx, hold.Unverified, apiserver.Monday, selector, xp.RefTo(xr)); !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v", err)
		}
	})
}

func TestGiveUp(t *testing.T) {
	const why = "it took too long"
	objects, claim, xr, _ := apiserver.RestoredTree()
	malformed := xptest.XR("x", xptest.Annotated(hold.Annotation, "?"))
	type args struct {
		reason string
		change func(s *apiserver.Server)
		ref    xp.Ref
		gvr    schema.GroupVersionResource
		// marked is the end of the reason in the mark, and event of that in the Event.
		marked, event string
		err           error
	}
	xptest.Each(t, map[string]args{
		"XR":        {reason: "The hold and an Event carry the reason.", ref: xp.RefTo(xr), gvr: apiserver.XOrders, marked: "release x [RestoreStopped]", event: "release x [RestoreStopped]"},
		"Claim":     {reason: "The hold of a claim carries the reason too.", ref: xp.RefTo(claim), gvr: apiserver.OrderClaims, marked: "team-a/o [RestoreStopped]", event: "[RestoreStopped]"},
		"Missing":   {reason: "An XR that does not exist needs no reason.", ref: xp.RefTo(xptest.XR("gone"))},
		"Unserved":  {reason: "An object of a kind that is not served can't exist.", ref: xp.Ref{APIVersion: "gone.org/v1", Kind: "Gone", Name: "g"}},
		"NotHeld":   {reason: "There is no mark for the reason.", ref: xp.RefTo(xr), gvr: apiserver.XOrders, change: func(s *apiserver.Server) { s.Put(apiserver.XOrders, xr) }, event: "[RestoreStopped]"},
		"Malformed": {reason: "A malformed mark can't carry the reason.", ref: xp.RefTo(xr), change: func(s *apiserver.Server) { s.Put(apiserver.XOrders, malformed) }, event: "[RestoreStopped]"},
		"Passing":   {reason: "A failed read is an error.", ref: xp.RefTo(xr), change: func(s *apiserver.Server) { s.FailOn("get", "*", 1, apiserver.ErrDown) }, err: apiserver.ErrDown},
		"Refused":   {reason: "A failed write is an error.", ref: xp.RefTo(xr), change: func(s *apiserver.Server) { s.FailOn("patch", "*", 1, apiserver.ErrDown) }, err: apiserver.ErrDown},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewServer(objects...)
		if tc.change != nil {
			tc.change(s)
		}
		if err := newFastAdopter(s).GiveUp(t.Context(), hold.Unverified, tc.ref, why); !errors.Is(err, tc.err) {
			t.Fatalf("%s\ngot error %v", tc.reason, err)
		}
		told := strings.Join(s.WrittenEvents(), "\n")
		if (told == "") != (tc.event == "") || !strings.HasSuffix(told, tc.event) {
			t.Errorf("%s\nEvents: %s", tc.reason, told)
		}
		if tc.gvr.Empty() {
			return
		}
		u := s.Get(t, tc.gvr, tc.ref.Namespace, tc.ref.Name)
		h, err := hold.Of(u)
		if err != nil || (h == nil) != (tc.marked == "") || h != nil && (!strings.HasPrefix(h.Reason, why) || !strings.HasSuffix(h.Reason, tc.marked) || !xp.IsPaused(u)) {
			t.Errorf("%s\nhold %+v, error %v", tc.reason, h, err)
		}
	})
}

// Crossplane says in an Event only why the API server refuses what an XR composes.
func TestAdoptTellsWhatTheAPIServerRefuses(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		objects, _, _, child := apiserver.RestoredTree()
		s := apiserver.NewServer(objects...)
		simulateCrossplaneExcept(s, func(u *unstructured.Unstructured) bool {
			if refused := u.GetName() == child.GetName() && !xp.IsPaused(u); !refused {
				return false
			}
			s.Put(apiserver.XOrders, xptest.With(u, xptest.Synced("False", "ReconcileError", "Unsynced resources: deep")))

			return true
		})
		const refusal = `cannot apply composed resource "deep": Deployment.apps "d" is invalid: spec.selector: Invalid value: `
		uid := string(child.GetUID())
		for name, e := range map[string]struct{ of, message, at string }{
			"old":     {uid, refusal + `"older": field is immutable`, "2026-01-02T03:04:05Z"},
			"new":     {uid, refusal + `"` + uid + `": field is immutable`, "2026-01-02T03:04:06Z"},
			"another": {"another", refusal + `"another": field is immutable`, "2026-01-02T03:04:07Z"},
			"ready":   {uid, "not ready", "2026-01-02T03:04:08Z"},
		} {
			s.Put(apiserver.Events, xptest.Object("v1", "Event", "default", name, xptest.Field("Warning", "type"), xptest.Field(map[string]any{"uid": e.of}, "involvedObject"),
				xptest.Field(e.at, "lastTimestamp"), xptest.Field(e.message, "message")))
		}
		if said := waiting(adopt(t, s, child)); !strings.Contains(said, uid+`": field is immutable. Delete the object`) || !strings.Contains(said, "UIDInImmutable") {
			t.Errorf("the hold must name the cause; got %q", said)
		}
	})
}

// A user who may write an object can put a genuine mark back each time it is removed. Each try
// would delay the others and write an Event.
func TestAdoptTakesAStepOnce(t *testing.T) {
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")), xptest.Reconciled())
	xr := signed(xptest.XR("x", xptest.Refs(bucket)))
	mark := xptest.Annotated(hold.Annotation, xp.Annotation(xr, hold.Annotation))
	pause := func(u *unstructured.Unstructured) {
		xptest.Annotated(xp.AnnotationPaused, "true")(u)
		xptest.SeenPaused()(u)
	}
	type args struct {
		reason string
		// released is set if the user changes the XR when it is released, else at each change.
		released bool
		back     []xptest.Option
		want     reason.Code
	}
	xptest.Each(t, map[string]args{
		"Released":          {reason: "A hold that returns after its release must be reported.", released: true, back: []xptest.Option{mark}, want: reason.HoldAddedAgain},
		"ReleasedAndPaused": {reason: "A second unpause would let Crossplane reconcile the XR again.", released: true, back: []xptest.Option{mark, pause}, want: reason.HoldAddedAgain},
		"Unpaused":          {reason: "The plan names what stops the adoption.", back: []xptest.Option{mark, pause}, want: reason.ChangeUndone},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewServer(xr, apiserver.Restored(bucket), apiserver.Restored(xptest.Revision(xptest.RevisionName, xr)))
		simulateCrossplane(s)
		s.PrependReactor("list", "xorders", func(clienttesting.Action) (bool, runtime.Object, error) {
			u := s.Get(t, apiserver.XOrders, "", "x")
			now := xp.Annotation(u, hold.Annotation)
			if now == "" || !tc.released && now != xp.Annotation(xr, hold.Annotation) {
				s.Put(apiserver.XOrders, xptest.With(u, tc.back...))
			}

			return false, nil, nil
		})
		p := adoptWith(t, newFastAdopter(s), testKey, xr)
		if said := p.Failed.String() + waiting(p); !strings.Contains(said, string(tc.want)) || p.Done {
			t.Errorf("%s\ngot %+v", tc.reason, p)
		}
		if steps, told := s.Steps(), s.WrittenEvents(); len(steps) > 3 || len(told) > 3 {
			t.Errorf("%s\nsteps %v, and Events %v", tc.reason, steps, told)
		}
	})
}

// A mark that the plugin did not write is logged once and ignored.
func TestAdoptNamesForgedMarks(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		forged, genuine := apiserver.Restored(xptest.XR("forged", xptest.Annotated(xp.AnnotationPaused, "true"))), signed(xptest.XR("x", xptest.NeverComposed()))
		s := apiserver.NewServer(forged, genuine)
		simulateCrossplane(s)
		a := newFastAdopter(s)
		log, hook := logtest.NewNullLogger()
		a.log = log
		plans, err := a.Adopt(t.Context(), testKey, apiserver.Monday, selector, xp.RefTo(genuine))
		if err != nil || !plans[xp.RefTo(genuine).ID()].Done {
			t.Errorf("the other XR must be adopted: %+v, %v", plans, err)
		}
		if p := plans[xp.RefTo(forged).ID()]; p.Failed.IsZero() || s.Count("patch", "xorders /forged") > 0 {
			t.Errorf("got %+v, and patches %v", p, s.Requests("patch"))
		}
		named := 0
		for _, e := range hook.AllEntries() {
			if e.Data["reason"] == reason.MarkForged {
				named++
			}
		}
		if named != 1 {
			t.Errorf("the log must name it once, not %d times", named)
		}
	})
}

// Velero polls operations when all objects with owners are restored. The owners may be thousands.
func TestOperationsForgetOwners(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		xr := xptest.XR("x")
		s := apiserver.NewServer(xr)
		a := newFastAdopter(s)
		for range 2 {
			_, err := a.cluster.Owner(t.Context(), metav1.OwnerReference{APIVersion: xptest.LegacyVersion, Kind: xptest.LegacyKind, Name: "x"}, "")
			xptest.Must(t, err)
			adoptWith(t, a, hold.Unverified, xr)
		}
		if n := s.Count("get", "xorders /x"); n != 2 {
			t.Errorf("the owner must be read again after a poll; it was read %d times", n)
		}
	})
}

// A poll ends late enough to release what it has to.
func TestPollTimeout(t *testing.T) {
	p := &poll{Adopter: &Adopter{limit: time.Minute}}
	for look, want := range map[time.Duration]time.Duration{0: time.Minute, 10 * time.Second: time.Minute, 30 * time.Second: 2 * time.Minute, time.Hour: 5 * time.Minute} {
		if got := p.pollTimeout(look); got != want {
			t.Errorf("a poll that needs %v to observe must last %v, not %v", look, want, got)
		}
	}
}
