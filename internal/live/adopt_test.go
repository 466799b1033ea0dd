package live

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestAdoptTree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		objects, claim, xr, child := restoredTree()
		s := newServer(objects...)
		simulateCrossplane(s)
		if p := adopt(t, s, xr); !p.Done || p.Adopted != 2 {
			t.Errorf("one call must adopt the whole tree; got %+v", p)
		}
		want := []string{"xorders /c", "xorders /c", "xorders /x", "orderclaims team-a/o", "xorders /x"}
		same(t, want, s.requests("patch"), "the child is unpaused and released, then its parent is unpaused, then the claim is released, then the parent")
		checkOwn(t, xr, s.get(t, xorders, "", "x"))
		checkOwn(t, child, s.get(t, xorders, "", "c"))
		checkOwn(t, claim, s.get(t, orderclaims, xptest.Namespace, "o"))
		if again := adopt(t, s, xr); !again.Done || len(s.requests("patch")) != len(want) {
			t.Errorf("a second adoption must change nothing: %+v", again)
		}
	})
}

func TestAdoptWaits(t *testing.T) {
	type args struct {
		reason string
		change func(s *server)
		// once is set if the poll observes once.
		once bool
		want string
	}
	each(t, map[string]args{
		"Moving": {reason: "Crossplane may need moments to see a pause.", change: func(*server) {}, want: "[AwaitingPauseReport]"},
		"NotMoving": {
			reason: "A user's step takes longer than a poll.", once: true, want: "Bucket b: it is not in the cluster",
			change: func(s *server) {
				s.put(xorders, xptest.With(s.get(t, xorders, "", "x"), xptest.SeenPaused()))
				s.put(xorders, xptest.XR("c", xptest.ControlledBy(xptest.XR("x"))))
				_ = s.Tracker().Delete(buckets, "", "b")
			},
		},
	}, func(t *testing.T, tc args) {
		objects, _, xr, _ := restoredTree()
		s := newServer(objects...)
		tc.change(s)
		if p := adopt(t, s, xr); p.Done || !strings.Contains(waiting(p), tc.want) {
			t.Errorf("%s\ngot %+v", tc.reason, p)
		}
		if looks := s.count("list", "xorders "+selector); (looks == 1) != tc.once {
			t.Errorf("%s\nlooked %d times", tc.reason, looks)
		}
		if patches := s.steps(); len(patches) > 0 {
			t.Errorf("%s\nsteps: %v", tc.reason, patches)
		}
	})
}

func TestAdoptObservesAgain(t *testing.T) {
	gr := xorders.GroupResource()
	for name, tc := range map[string]struct {
		err   error
		times int
		done  bool
	}{
		"Conflict": {err: apierrors.NewConflict(gr, "x", errDown), times: 3, done: true},
		"NotFound": {err: apierrors.NewNotFound(gr, "x"), times: 3, done: true},
		"Always":   {err: apierrors.NewConflict(gr, "x", errDown), times: 1 << 30},
		"Gone":     {err: apierrors.NewNotFound(gr, "x"), times: 1 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				objects, _, xr, _ := restoredTree()
				s := newServer(objects...)
				simulateCrossplane(s)
				s.failOn("patch", "*", tc.times, tc.err)
				if p := adopt(t, s, xr); p.Done != tc.done || strings.Contains(waiting(p), string(reason.ChangeRefused)) {
					t.Errorf("a change after the observation must be observed again until the poll ends; got %+v", p)
				}
			})
		})
	}
}

// An admission policy that rejects the patch of one XR for ever must not block the others.
func TestAdoptGoesOnWithoutWhatIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		bad, good := xptest.XR("bad", xptest.NeverComposed()), xptest.XR("good", xptest.NeverComposed())
		s := newServer(restored(bad), restored(good))
		simulateCrossplane(s)
		s.PrependReactor("patch", "xorders", func(action clienttesting.Action) (bool, runtime.Object, error) {
			p, ok := action.(clienttesting.PatchActionImpl)

			return ok && p.GetName() == "bad", nil, apierrors.NewForbidden(xorders.GroupResource(), "bad", errors.New("no team label"))
		})
		if p := adopt(t, s, bad); p.Done || !strings.Contains(waiting(p), "no team label") {
			t.Errorf("the plan must name the refusal; got %+v", p)
		}
		checkOwn(t, good, s.get(t, xorders, "", "good"))
	})
}

func TestAdoptEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		objects, _, xr, _ := restoredTree()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := newFastAdopter(newServer(objects...)).Adopt(ctx, hold.Unverified, monday, selector, xp.RefTo(xr)); !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v", err)
		}
	})
}

func TestGiveUp(t *testing.T) {
	const why = "it took too long"
	objects, claim, xr, _ := restoredTree()
	malformed := xptest.XR("x", xptest.Annotated(hold.Annotation, "?"))
	type args struct {
		reason string
		change func(s *server)
		ref    xp.Ref
		gvr    schema.GroupVersionResource
		// marked is the end of the reason in the mark, and event of that in the Event.
		marked, event string
		err           error
	}
	each(t, map[string]args{
		"XR":        {reason: "The hold and an Event carry the reason.", ref: xp.RefTo(xr), gvr: xorders, marked: "release x [RestoreStopped]", event: "release x [RestoreStopped]"},
		"Claim":     {reason: "The hold of a claim carries the reason too.", ref: xp.RefTo(claim), gvr: orderclaims, marked: "team-a/o [RestoreStopped]", event: "[RestoreStopped]"},
		"Missing":   {reason: "An XR that does not exist needs no reason.", ref: xp.RefTo(xptest.XR("gone"))},
		"Unserved":  {reason: "An object of a kind that is not served can't exist.", ref: xp.Ref{APIVersion: "gone.org/v1", Kind: "Gone", Name: "g"}},
		"NotHeld":   {reason: "There is no mark for the reason.", ref: xp.RefTo(xr), gvr: xorders, change: func(s *server) { s.put(xorders, xr) }, event: "[RestoreStopped]"},
		"Malformed": {reason: "A malformed mark can't carry the reason.", ref: xp.RefTo(xr), change: func(s *server) { s.put(xorders, malformed) }, event: "[RestoreStopped]"},
		"Passing":   {reason: "A failed read is an error.", ref: xp.RefTo(xr), change: func(s *server) { s.failOn("get", "*", 1, errDown) }, err: errDown},
		"Refused":   {reason: "A failed write is an error.", ref: xp.RefTo(xr), change: func(s *server) { s.failOn("patch", "*", 1, errDown) }, err: errDown},
	}, func(t *testing.T, tc args) {
		s := newServer(objects...)
		if tc.change != nil {
			tc.change(s)
		}
		if err := newFastAdopter(s).GiveUp(t.Context(), hold.Unverified, tc.ref, why); !errors.Is(err, tc.err) {
			t.Fatalf("%s\ngot error %v", tc.reason, err)
		}
		told := strings.Join(s.writtenEvents(), "\n")
		if (told == "") != (tc.event == "") || !strings.HasSuffix(told, tc.event) {
			t.Errorf("%s\nEvents: %s", tc.reason, told)
		}
		if tc.gvr.Empty() {
			return
		}
		u := s.get(t, tc.gvr, tc.ref.Namespace, tc.ref.Name)
		h, err := hold.Of(u)
		if err != nil || (h == nil) != (tc.marked == "") || h != nil && (!strings.HasPrefix(h.Reason, why) || !strings.HasSuffix(h.Reason, tc.marked) || !xp.IsPaused(u)) {
			t.Errorf("%s\nhold %+v, error %v", tc.reason, h, err)
		}
	})
}

// Crossplane says in an Event only why the API server refuses what an XR composes.
func TestAdoptTellsWhatTheAPIServerRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		objects, _, _, child := restoredTree()
		s := newServer(objects...)
		simulateCrossplaneExcept(s, func(u *unstructured.Unstructured) bool {
			if refused := u.GetName() == child.GetName() && !xp.IsPaused(u); !refused {
				return false
			}
			s.put(xorders, xptest.With(u, xptest.Synced("False", "ReconcileError", "Unsynced resources: deep")))

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
			s.put(events, xptest.Object("v1", "Event", "default", name, xptest.Field("Warning", "type"), xptest.Field(map[string]any{"uid": e.of}, "involvedObject"),
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
	each(t, map[string]args{
		"Released":          {reason: "A hold that returns after its release must be reported.", released: true, back: []xptest.Option{mark}, want: reason.HoldAddedAgain},
		"ReleasedAndPaused": {reason: "A second unpause would let Crossplane reconcile the XR again.", released: true, back: []xptest.Option{mark, pause}, want: reason.HoldAddedAgain},
		"Unpaused":          {reason: "The plan names what stops the adoption.", back: []xptest.Option{mark, pause}, want: reason.ChangeUndone},
	}, func(t *testing.T, tc args) {
		s := newServer(xr, restored(bucket), restored(xptest.Revision(xptest.RevisionName, xr)))
		simulateCrossplane(s)
		s.PrependReactor("list", "xorders", func(clienttesting.Action) (bool, runtime.Object, error) {
			u := s.get(t, xorders, "", "x")
			now := xp.Annotation(u, hold.Annotation)
			if now == "" || !tc.released && now != xp.Annotation(xr, hold.Annotation) {
				s.put(xorders, xptest.With(u, tc.back...))
			}

			return false, nil, nil
		})
		p := adoptWith(t, newFastAdopter(s), testKey, xr)
		if said := p.Failed.String() + waiting(p); !strings.Contains(said, string(tc.want)) || p.Done {
			t.Errorf("%s\ngot %+v", tc.reason, p)
		}
		if steps, told := s.steps(), s.writtenEvents(); len(steps) > 3 || len(told) > 3 {
			t.Errorf("%s\nsteps %v, and Events %v", tc.reason, steps, told)
		}
	})
}

// A mark that the plugin did not write is logged once and ignored.
func TestAdoptNamesForgedMarks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		forged, genuine := restored(xptest.XR("forged", xptest.Annotated(xp.AnnotationPaused, "true"))), signed(xptest.XR("x", xptest.NeverComposed()))
		s := newServer(forged, genuine)
		simulateCrossplane(s)
		a := newFastAdopter(s)
		log, hook := logtest.NewNullLogger()
		a.log = log
		plans, err := a.Adopt(t.Context(), testKey, monday, selector, xp.RefTo(genuine))
		if err != nil || !plans[xp.RefTo(genuine).ID()].Done {
			t.Errorf("the other XR must be adopted: %+v, %v", plans, err)
		}
		if p := plans[xp.RefTo(forged).ID()]; p.Failed.IsZero() || s.count("patch", "xorders /forged") > 0 {
			t.Errorf("got %+v, and patches %v", p, s.requests("patch"))
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
	bubble(t, func(t *testing.T) {
		xr := xptest.XR("x")
		a := newFastAdopter(newServer(xr))
		a.cluster.owners[xp.RefTo(xr).ID()] = []byte("{}")
		adoptWith(t, a, hold.Unverified, xr)
		if len(a.cluster.owners) > 0 {
			t.Errorf("the cache still has %d owners", len(a.cluster.owners))
		}
	})
}

// A poll ends late enough to release what it has to.
func TestPollTimeout(t *testing.T) {
	p := &poll{Adopter: &Adopter{limit: time.Minute}}
	for look, want := range map[time.Duration]time.Duration{
		0: time.Minute, 10 * time.Second: time.Minute, 30 * time.Second: 2 * time.Minute, time.Hour: 5 * time.Minute,
	} {
		if got := p.pollTimeout(look); got != want {
			t.Errorf("a poll that needs %v to observe must last %v, not %v", look, want, got)
		}
	}
}
