package live

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Polls don't change an object in quarantine. After the quarantine they adopt it.
func TestAdoptLeavesWhatIsInQuarantine(t *testing.T) {
	x := xptest.XR("x")
	own := xptest.MR("b", xptest.ControlledBy(x))
	xr := xptest.XR("x", xptest.Refs(own))
	away := func(u adoption.Hold) adoption.Hold { u.Quarantine = true; return u }
	s := newServer(heldMR(xr, away(adoption.Hold{})), heldMR(own, away(adoption.Hold{})), restored(xptest.Revision(xptest.RevisionName, x)))
	simulateCrossplane(s)
	simulateProvider(t, s, map[string]bool{"b": true})
	for range 2 {
		plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
		if p := plans[xp.RefTo(xr).ID()]; err != nil || p.Done || p.Quarantine.IsZero() {
			t.Fatalf("got %+v, %v", p, err)
		}
	}
	if patches := s.requests("patch"); len(patches) > 0 {
		t.Fatalf("the plan must write nothing; got %v", patches)
	}
	a := newFastAdopter(s)
	for range 2 { // The second poll has nothing to do, even for an object that has changed.
		for _, u := range []string{"b", "gone"} {
			if err := a.Consent(context.Background(), adoption.Unverified, heldMR(xptest.MR(u), away(adoption.Hold{}))); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Consent(context.Background(), adoption.Unverified, heldMR(xr, away(adoption.Hold{}))); err != nil {
			t.Fatal(err)
		}
	}
	plans, err := a.Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
	if err != nil || !plans[xp.RefTo(xr).ID()].Done {
		t.Fatalf("got %+v, %v", plans, err)
	}
	got := xptest.With(s.get(t, buckets, "", "b"), xptest.Without("status"), xptest.Without("metadata", "resourceVersion"))
	if diff := cmp.Diff(xptest.With(own, xptest.Labelled("velero.io/restore-name", "monday")), got); diff != "" {
		t.Errorf("-own, +now:\n%s", diff)
	}
}

// A restored object without its hold is put into quarantine by the first poll, with a notice, even
// below an XR that does not change.
func TestAdoptHoldsRestoredObjectsWithoutHold(t *testing.T) {
	x := xptest.XR("x")
	own := xptest.MR("b", xptest.ControlledBy(x))
	xr := xptest.XR("x", xptest.Refs(own))
	away := adoption.Hold{Quarantine: true}
	s := newServer(heldMR(xr, away), unheld(own, appliedBy("modifier")), restored(xptest.Revision(xptest.RevisionName, x)))
	by := monday
	by.Held = func(id xp.ID) *adoption.Hold {
		if id == xp.RefTo(own).ID() {
			return &away
		}

		return nil
	}
	plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, by, selector, xp.RefTo(xr))
	if p := plans[xp.RefTo(xr).ID()]; err != nil || p.Done || p.Moving || p.Quarantine.IsZero() {
		t.Fatalf("got %+v, %v", p, err)
	}
	now := s.get(t, buckets, "", "b")
	if h, err := adoption.HoldOf(now); err != nil || h == nil || !h.Quarantine || !xp.IsPaused(now) {
		t.Errorf("got %+v, %v", h, err)
	}
	told := s.writtenEvents()
	if !slices.ContainsFunc(told, func(e string) bool { return strings.HasPrefix(e, "Warning Held b: it was created without its hold") }) {
		t.Errorf("the Events are %v", told)
	}
}
