package live

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// newShortAdopter returns an Adopter of a new process that does not wait long.
func newShortAdopter(tb testing.TB, s *apiServer) *Adopter {
	tb.Helper()
	a := NewAdopter(s.connect(tb), discardLog())
	a.firstWait, a.pause = 20*time.Millisecond, time.Millisecond

	return a
}

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

// A poll without changes observes once and writes nothing, however much is held. It requests no
// more reconciles if more is held.
func TestPollsWithoutChanges(t *testing.T) {
	long := time.Now().Add(-5 * time.Minute)
	cases := map[string]struct {
		reason  string
		since   time.Time
		objects []*unstructured.Unstructured
		change  func(s *apiServer)
		// writes is the maximum number of writes.
		writes int
	}{
		"Fresh":   {reason: "Crossplane has not been silent for long.", since: time.Now().Add(time.Hour)},
		"Stopped": {reason: "A Crossplane without replicas can't answer a request.", since: long, objects: []*unstructured.Unstructured{deployment("crossplane", "2.3.4", 0)}},
		"Silent":  {reason: "The poll requests a few reconciles and removes the requests.", since: long, writes: 2 * maxRequests},
		"Missing": {
			reason: "A cause that needs a user must not be reported again.", since: long,
			objects: []*unstructured.Unstructured{deployment("crossplane", "2.3.4", 0)},
			change:  func(s *apiServer) { s.remove(xptest.MR("x00000-0")) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, xrs := range []int{2 * maxRequests, 10 * maxRequests} {
				s := newAPIServer(t)
				first := s.putHeldXRs(t, xrs, tc.since)
				s.put(t, tc.objects...)
				if tc.change != nil {
					tc.change(s)
				}
				for n := range 3 {
					s.takeRequests()
					if _, err := newShortAdopter(t, s).Adopt(context.Background(), adoption.Unverified, monday, selector, first); err != nil {
						t.Fatal(err)
					}
					most, _, writes := countRequests(s.takeRequests())
					if n == 0 {
						if told := 3*xrs + tc.writes; writes > told {
							t.Errorf("%s\nthe first poll must write two Events and a mark for each of %d held objects; got %d writes", tc.reason, xrs, writes)
						}

						continue
					}
					if writes > tc.writes || most > 2 {
						t.Errorf("%s\npoll %d of %d XRs: got %d writes and %d lists of a kind, want at most %d and 2", tc.reason, n, xrs, writes, most, tc.writes)
					}
				}
			}
		})
	}
}

// From the end of the restore to its release an XR costs four writes, however many there are: an
// Event for the hold, one for the release, and the two steps between.
func TestAdoptionsCostTheSameForEach(t *testing.T) {
	for _, xrs := range []int{10, 100} {
		s := newAPIServer(t)
		s.controllers = reconcileAtOnce
		first := s.putHeldXRs(t, xrs, time.Now())
		plans, err := newShortAdopter(t, s).Adopt(context.Background(), adoption.Unverified, monday, selector, first)
		if err != nil {
			t.Fatal(err)
		}
		for id, p := range plans {
			if !p.Done || p.Adopted != composedEach {
				t.Fatalf("%v: got %+v", id, p)
			}
		}
		most, _, writes := countRequests(s.takeRequests())
		if diff := cmp.Diff(4*xrs, writes); diff != "" || most > 1 {
			t.Errorf("%d lists of a kind, and writes for %d XRs, -want, +got:\n%s", most, xrs, diff)
		}
	}
}

// Each change of an XR triggers a reconcile, so notices wait while Crossplane reconciles it.
func TestPollsWriteNothingDuringReconciles(t *testing.T) {
	s := newAPIServer(t)
	const xrs = 20
	first := s.putHeldXRs(t, xrs, time.Now())
	for _, u := range s.all(xorders) {
		s.put(t, xptest.With(u, xptest.SeenPaused()))
	}
	for poll, want := range []int{xrs, 0} {
		a := newShortAdopter(t, s)
		a.patience = time.Second
		if _, err := a.Adopt(context.Background(), adoption.Unverified, monday, selector, first); err != nil {
			t.Fatal(err)
		}
		for _, u := range s.all(xorders) {
			if h, err := adoption.HoldOf(u); err != nil || h == nil || h.Unpaused == "" {
				t.Fatalf("%s was not unpaused: %+v, %v", u.GetName(), h, err)
			}
		}
		if n := s.takeRequests()["patch xorders"]; n != want {
			t.Errorf("%d XRs were patched %d times in poll %d", xrs, n, poll)
		}
	}
}

// All lost reconciles are requested in the end: the next few as soon as a few have succeeded.
func TestPollsRequestAll(t *testing.T) {
	s := newAPIServer(t)
	const xrs = 3 * maxRequests
	s.controllers = func(u *unstructured.Unstructured) *unstructured.Unstructured {
		if _, asked := u.GetAnnotations()[xp.AnnotationReconcileRequested]; !asked {
			return nil
		}

		return reconcileAtOnce(u)
	}
	first := s.putHeldXRs(t, xrs, time.Now().Add(-time.Minute))
	a := newShortAdopter(t, s)
	a.firstWait = time.Second
	if _, err := a.Adopt(context.Background(), adoption.Unverified, monday, selector, first); err != nil {
		t.Fatal(err)
	}
	unpaused := 0
	for _, u := range s.all(xorders) {
		if h, err := adoption.HoldOf(u); err != nil || h == nil || !xp.IsPaused(u) {
			unpaused++
		}
	}
	if unpaused != xrs {
		t.Errorf("%d of %d are unpaused", unpaused, xrs)
	}
}

// The causes stay the same while Crossplane does not run.
func TestPollsWithoutCrossplane(t *testing.T) {
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		change  func(s *apiServer)
		// unpaused is set if the XRs are unpaused.
		unpaused bool
	}{
		"Stopped":  {reason: "A user has stopped Crossplane.", objects: []*unstructured.Unstructured{deployment("crossplane", "2.3.4", 0)}},
		"NotFound": {reason: "The cluster has no Crossplane that runs."},
		"Running":  {reason: "A Crossplane that runs may be silent for another reason.", objects: []*unstructured.Unstructured{deployment("crossplane", "2.3.4", 1)}},
		"Answered": {
			reason: "Crossplane runs again.", objects: []*unstructured.Unstructured{deployment("crossplane", "2.3.4", 0)}, unpaused: true,
			change: func(s *apiServer) {
				for _, u := range s.all(xorders) {
					s.put(t, xptest.With(u, xptest.SeenPaused()))
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t)
			first := s.putHeldXRs(t, maxRequests, time.Now().Add(-5*time.Minute))
			s.put(t, tc.objects...)
			s.remove(xptest.MR("x00001-0"))
			second := xp.Ref{APIVersion: first.APIVersion, Kind: first.Kind, Name: "x00001"}
			var waiting []reason.Message
			for n := range 3 {
				if n == 2 && tc.change != nil {
					tc.change(s)
				}
				plans, err := newShortAdopter(t, s).Adopt(context.Background(), adoption.Unverified, monday, selector, first)
				if err != nil {
					t.Fatal(err)
				}
				before := waiting
				waiting = plans[second.ID()].Waiting
				if n == 0 || tc.unpaused {
					continue
				}
				if diff := cmp.Diff(adoption.FirstReasons(before), adoption.FirstReasons(waiting)); diff != "" {
					t.Errorf("%s\nthe causes must stay: -before, +now:\n%s", tc.reason, diff)
				}
			}
			for _, u := range s.all(xorders) {
				if unpaused := !xp.IsPaused(u); unpaused != (tc.unpaused && u.GetName() != second.Name) {
					t.Errorf("%s\n%s is unpaused: %v", tc.reason, u.GetName(), unpaused)
				}
			}
		})
	}
}

// A step whose target has changed, since Crossplane has written the status, is taken at once if it
// is still right.
func TestPollsPlanChangedObjectsAgain(t *testing.T) {
	cases := map[string]struct {
		reason string
		// meanwhile is the change of the XR before the first step.
		meanwhile xptest.Option
		want      bool
	}{
		"Status":   {reason: "A changed status does not stop the unpause.", meanwhile: xptest.Field("busy", "status", "phase"), want: true},
		"Deleting": {reason: "Crossplane must not reconcile a terminating XR.", meanwhile: xptest.Deleting()},
		"Released": {
			reason: "A user has released the XR first.", want: true,
			meanwhile: func(u *unstructured.Unstructured) {
				xptest.Without("metadata", "annotations", adoption.AnnotationHold)(u)
				xptest.Without("metadata", "annotations", xp.AnnotationPaused)(u)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t)
			first := s.putHeldXRs(t, 1, time.Now())
			s.put(t, xptest.With(s.all(xorders)[0], xptest.SeenPaused()))
			late := true
			s.patched = func() {
				if late {
					late = false
					s.put(t, xptest.With(s.all(xorders)[0], tc.meanwhile))
				}
			}
			a := newShortAdopter(t, s)
			a.limit = time.Nanosecond // It is one pass.
			if _, err := a.Adopt(context.Background(), adoption.Unverified, monday, selector, first); err != nil {
				t.Fatal(err)
			}
			u := s.all(xorders)[0]
			if unpaused := !xp.IsPaused(u); unpaused != tc.want {
				t.Errorf("%s\nunpaused: %v", tc.reason, unpaused)
			}
			// A user who releases may list and patch, but not get.
			if asked := s.takeRequests(); asked["list one of xorders"] != 1 || asked["get xorders"] != 0 {
				t.Errorf("%s\nthe XR must be read once: %v", tc.reason, asked)
			}
		})
	}
}

// Notices wait while Crossplane reconciles released XRs.
func TestReportBudget(t *testing.T) {
	now := time.Now()
	cases := map[string]struct {
		reason       string
		others       int
		moved, until time.Time
		want         int
	}{
		"Many":     {reason: "Crossplane still has many XRs to reconcile.", others: manyWrites + 1, moved: now, until: now.Add(time.Hour)},
		"Few":      {reason: "With few XRs at work the Events need not wait.", others: manyWrites, moved: now, until: now.Add(time.Hour), want: manyWrites},
		"NoOthers": {reason: "No XR waits for Crossplane.", moved: now, until: now.Add(time.Hour), want: unlimited},
		"Silent":   {reason: "Crossplane has been silent for a minute, so waiting for it is useless.", others: manyWrites + 1, moved: now.Add(-time.Minute), until: now.Add(time.Hour), want: unlimited},
		"Over":     {reason: "The poll ends, and the next one does not know the Events that are left.", others: manyWrites + 1, moved: now, until: now.Add(-time.Second), want: unlimited},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &poll{Adopter: &Adopter{cluster: NewCluster(nil, nil), patience: time.Minute / 2, stuckAfter: time.Hour}, moved: tc.moved, until: tc.until, plans: map[xp.ID]adoption.Plan{}}
			for i := range tc.others {
				x := xptest.XR(fmt.Sprint("x", i))
				p.plans[xp.RefTo(x).ID()] = adoption.Plan{Waiting: []reason.Message{{Text: "a word"}}, Pending: []adoption.PendingReconcile{{Ref: xp.RefTo(x), UID: x.GetUID(), Since: now, Begun: true}}}
			}
			if got := p.reportBudget(); got != tc.want {
				t.Errorf("%s\ngot %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
