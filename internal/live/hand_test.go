package live

import (
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A poll reports once that an object with a manual release is ready, and leaves it held. After the
// user's consent it is adopted.
func TestAdoptLeavesManualReleases(t *testing.T) {
	x := xptest.XR("x", xptest.Field("2026-01-02T03:04:05Z", "metadata", "creationTimestamp"))
	own := xptest.MR("b", xptest.ControlledBy(x))
	xr := xptest.With(x, xptest.Refs(own))
	byHand := adoption.Hold{Restore: "velero/monday", ByHand: true}
	s := newServer(heldMR(xr, byHand), heldMR(own, byHand), restored(xptest.Revision(xptest.RevisionName, x)))
	simulateCrossplane(s)
	simulateProvider(t, s, map[string]bool{"b": true})
	for range 2 {
		plans, err := newFastAdopter(s).Adopt(t.Context(), adoption.Unverified, monday, selector, xp.RefTo(xr))
		p := plans[xp.RefTo(xr).ID()]
		if err != nil || p.Done || !p.Ready || p.RestoredAt.IsZero() {
			t.Fatalf("got %+v, %v", p, err)
		}
	}
	u := s.get(t, xorders, "", "x")
	h, err := adoption.HoldOf(u)
	if err != nil || h == nil || !xp.IsPaused(u) || !strings.Contains(h.Reason, "Bucket b: it waits for nothing but a user") {
		t.Fatalf("the XR must be held and report that it is ready; got %+v, %v", h, err)
	}
	if patches := s.requests("patch"); len(patches) > 1 {
		t.Errorf("only the reason may be written; got %v", patches)
	}
	a := newFastAdopter(s)
	for _, u := range []string{"b", "x"} {
		gvr := xorders
		if u == "b" {
			gvr = buckets
		}
		if err := a.Consent(t.Context(), adoption.Unverified, s.get(t, gvr, "", u)); err != nil {
			t.Fatal(err)
		}
	}
	plans, err := a.Adopt(t.Context(), adoption.Unverified, monday, selector, xp.RefTo(xr))
	if err != nil || !plans[xp.RefTo(xr).ID()].Done {
		t.Fatalf("got %+v, %v", plans, err)
	}
}
