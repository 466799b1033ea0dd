package adopter

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

// A poll without changes observes once and writes nothing, however much is held. It requests no
// more reconciles if more is held.
func TestPollsWithoutChanges(t *testing.T) {
	stopped := []*unstructured.Unstructured{deployment("crossplane", "2.3.4", 0)}
	type args struct {
		reason string
		// age is for how long the XRs are held.
		age     time.Duration
		objects []*unstructured.Unstructured
		missing bool
		// writes is the maximum number of writes.
		writes int
	}
	xptest.Each(t, map[string]args{
		"Fresh":   {reason: "Crossplane has not been silent for long.", age: -time.Hour},
		"Stopped": {reason: "A Crossplane without replicas can't answer a request.", age: 5 * time.Minute, objects: stopped},
		"Silent":  {reason: "The poll requests a few reconciles and removes the requests.", age: 5 * time.Minute, writes: 2 * maxRequests},
		"Missing": {reason: "A cause that needs a user must not be reported again.", age: 5 * time.Minute, objects: stopped, missing: true},
	}, func(t *testing.T, tc args) {
		for _, xrs := range []int{2 * maxRequests, 5 * maxRequests} {
			s := apiserver.NewTransport()
			first := s.PutHeldXRs(xrs, time.Now().Add(-tc.age))
			s.Put(tc.objects...)
			if tc.missing {
				s.Remove(xptest.MR("x00000-0"))
			}
			for n := range 3 {
				s.TakeRequests()
				adoptWith(t, newAdopter(t, s), hold.Unverified, first)
				most, writes := apiserver.CountRequests(s.TakeRequests())
				// The first poll writes two Events and a mark for each held object.
				if n > 0 && (writes > tc.writes || most > 2) || n == 0 && writes > 3*xrs+tc.writes {
					t.Errorf("%s\npoll %d of %d XRs: got %d writes and %d lists of a kind, want at most %d and 2", tc.reason, n, xrs, writes, most, tc.writes)
				}
			}
		}
	})
}

// From the end of the restore to its release an XR costs four writes, however many there are: an
// Event for the hold, one for the release, and the two steps between.
func TestAdoptionsCostTheSameForEach(t *testing.T) {
	for _, xrs := range []int{10, 100} {
		xptest.Bubble(t, func(t *testing.T) {
			s := apiserver.NewTransport()
			s.Controllers = reconcileAtOnce
			first := s.PutHeldXRs(xrs, time.Now())
			plans, err := newAdopter(t, s).Adopt(t.Context(), hold.Unverified, apiserver.Monday, selector, xp.RefTo(first))
			xptest.Must(t, err)
			for id, p := range plans {
				if !p.Done || p.Adopted != apiserver.ComposedEach {
					t.Fatalf("%v: got %+v", id, p)
				}
			}
			if most, writes := apiserver.CountRequests(s.TakeRequests()); writes != 4*xrs || most > 1 {
				t.Errorf("%d lists of a kind, and %d writes for %d XRs", most, writes, xrs)
			}
		})
	}
}

// Each change of an XR triggers a reconcile, so notices wait while Crossplane reconciles it.
func TestPollsWriteNothingDuringReconciles(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		s := apiserver.NewTransport()
		const xrs = 20
		first := s.PutHeldXRs(xrs, time.Now())
		for _, u := range s.All(apiserver.XOrders) {
			s.Put(xptest.With(u, xptest.SeenPaused()))
		}
		for poll, want := range []int{xrs, 0} {
			a := newAdopter(t, s)
			a.patience = time.Second
			adoptWith(t, a, hold.Unverified, first)
			for _, u := range s.All(apiserver.XOrders) {
				if h, err := hold.Of(u); err != nil || h == nil || h.Unpaused == "" {
					t.Fatalf("%s was not unpaused: %+v, %v", u.GetName(), h, err)
				}
			}
			if n := s.TakeRequests()["patch xorders"]; n != want {
				t.Errorf("%d XRs were patched %d times in poll %d", xrs, n, poll)
			}
		}
	})
}

// All lost reconciles are requested in the end: the next few as soon as a few have succeeded.
func TestPollsRequestAll(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		s := apiserver.NewTransport()
		s.Controllers = func(u *unstructured.Unstructured) *unstructured.Unstructured {
			if !xp.HasAnnotation(u, xp.AnnotationReconcileRequested) {
				return nil
			}

			return reconcileAtOnce(u)
		}
		first := s.PutHeldXRs(3*maxRequests, time.Now().Add(-time.Minute))
		a := newAdopter(t, s)
		a.firstWait = time.Second
		adoptWith(t, a, hold.Unverified, first)
		for _, u := range s.All(apiserver.XOrders) {
			if xp.IsPaused(u) {
				t.Errorf("%s is still paused", u.GetName())
			}
		}
	})
}

// A step whose target has changed, since Crossplane has written the status, is taken at once if it
// is still right.
func TestPollsPlanChangedObjectsAgain(t *testing.T) {
	released := func(u *unstructured.Unstructured) {
		xptest.Without("metadata", "annotations", hold.Annotation)(u)
		xptest.Without("metadata", "annotations", xp.AnnotationPaused)(u)
	}
	type args struct {
		reason string
		// meanwhile is the change of the XR before the first step.
		meanwhile xptest.Option
		want      bool
	}
	xptest.Each(t, map[string]args{
		"Status":   {reason: "A changed status does not stop the unpause.", meanwhile: xptest.Field("busy", "status", "phase"), want: true},
		"Deleting": {reason: "Crossplane must not reconcile a terminating XR.", meanwhile: xptest.Deleting()},
		"Released": {reason: "A user has released the XR first.", want: true, meanwhile: released},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewTransport()
		first := s.PutHeldXRs(1, time.Now())
		s.Put(xptest.With(s.All(apiserver.XOrders)[0], xptest.SeenPaused()))
		late := true
		s.Patched = func() {
			if late {
				late = false
				s.Put(xptest.With(s.All(apiserver.XOrders)[0], tc.meanwhile))
			}
		}
		a := newAdopter(t, s)
		a.limit = time.Nanosecond // It is one pass.
		adoptWith(t, a, hold.Unverified, first)
		if unpaused := !xp.IsPaused(s.All(apiserver.XOrders)[0]); unpaused != tc.want {
			t.Errorf("%s\nunpaused: %v", tc.reason, unpaused)
		}
		// A user who releases may list and patch, but not get.
		if asked := s.TakeRequests(); asked["list one of xorders"] != 1 || asked["get xorders"] != 0 {
			t.Errorf("%s\nthe XR must be read once: %v", tc.reason, asked)
		}
	})
}

// Notices wait while Crossplane reconciles released XRs.
func TestReportBudget(t *testing.T) {
	type args struct {
		reason      string
		others      int
		moved, ends time.Duration
		want        int
	}
	xptest.Each(t, map[string]args{
		"Many":     {reason: "Crossplane still has many XRs to reconcile.", others: manyWrites + 1, ends: time.Hour},
		"Few":      {reason: "With few XRs at work the Events need not wait.", others: manyWrites, ends: time.Hour, want: manyWrites},
		"NoOthers": {reason: "No XR waits for Crossplane.", ends: time.Hour, want: unlimited},
		"Silent":   {reason: "Crossplane has been silent for a minute, so waiting for it is useless.", others: manyWrites + 1, moved: -time.Minute, ends: time.Hour, want: unlimited},
		"Over":     {reason: "The poll ends, and the next one does not know the Events that are left.", others: manyWrites + 1, ends: -time.Second, want: unlimited},
	}, func(t *testing.T, tc args) {
		p, now := pollOf(map[xp.ID]adoption.Plan{}), time.Now()
		p.moved, p.until = now.Add(tc.moved), now.Add(tc.ends)
		for i := range tc.others {
			x := xptest.XR(fmt.Sprint("x", i))
			p.plans[xp.RefTo(x).ID()] = adoption.Plan{Waiting: []reason.Message{{Text: "a word"}}, Pending: []adoption.PendingReconcile{{Ref: xp.RefTo(x), UID: x.GetUID(), Since: now, Begun: true}}}
		}
		if got := p.reportBudget(); got != tc.want {
			t.Errorf("%s\ngot %d, want %d", tc.reason, got, tc.want)
		}
	})
}

func pollOf(plans map[xp.ID]adoption.Plan) *poll {
	return &poll{Adopter: &Adopter{cluster: cluster.New(nil, nil), patience: time.Minute / 2, stuckAfter: time.Hour}, plans: plans}
}

// Temporary states get no notice. A failed operation is not polled again, so its failure is
// reported at once.
func TestTemporary(t *testing.T) {
	id := xp.RefTo(xptest.XR("x")).ID()
	waitsFor := func(code reason.Code) adoption.Plan {
		return adoption.Plan{Waiting: []reason.Message{code.Messagef("a word")}}
	}
	begun := waitsFor("A")
	begun.Pending = []adoption.PendingReconcile{{Waiting: begun.Waiting[0], Since: time.Now(), Begun: true}}
	failed := adoption.Plan{Failed: reason.Message{Text: "it is being deleted"}}
	type args struct {
		reason      string
		first, last adoption.Plan
		want        bool
	}
	xptest.Each(t, map[string]args{
		"Same":         {reason: "The XR has waited for the same cause from the start.", first: waitsFor("A"), last: waitsFor("A")},
		"Another":      {reason: "The new cause may pass in a moment.", first: waitsFor("A"), last: waitsFor("B"), want: true},
		"UnderWay":     {reason: "Crossplane has just begun to reconcile the XR.", first: begun, last: begun, want: true},
		"Failed":       {reason: "A failure does not pass.", first: waitsFor("A"), last: failed},
		"FailedAtOnce": {reason: "An early failure does not pass either.", first: failed, last: failed},
	}, func(t *testing.T, tc args) {
		p := pollOf(map[xp.ID]adoption.Plan{id: tc.last})
		p.initial = map[xp.ID]string{id: tc.first.Fingerprint()}
		if got := p.temporary()[id]; got != tc.want {
			t.Errorf("%s\ngot %t", tc.reason, got)
		}
	})
}

// An adopted object may be gone, and is not planned for again. One that is not adopted is.
func TestPlan(t *testing.T) {
	for name, plan := range map[string]adoption.Plan{"adopted": {Done: true}, "moving": {Change: hold.Change{Patch: map[string]any{}}}} {
		r := xp.RefTo(xptest.XR(name))
		plans, tasks := pollOf(map[xp.ID]adoption.Plan{r.ID(): plan}).plan(adoption.NewSnapshot(hold.Unverified), []xp.Ref{r})
		if now := plans[r.ID()]; now.Done != plan.Done || now.Failed.IsZero() != plan.Done || len(tasks) > 0 {
			t.Errorf("%s: got %+v, and tasks %v", name, now, tasks)
		}
	}
}
