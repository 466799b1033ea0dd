package restoreitem

import (
	"fmt"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestRememberedHolds(t *testing.T) {
	requested := &RequestedItems{}
	mr, xr := xptest.MR("b"), xptest.XR("x")
	requested.held.add(xp.RefTo(mr), true, adoption.Hold{Observes: true, Restore: "velero/monday"}, &adoption.Hold{Policies: []string{"*"}})
	requested.held.add(xp.RefTo(xr), false, adoption.Hold{Quarantine: true}, &adoption.Hold{Refs: []xp.Ref{xp.RefTo(mr)}})
	requested.held.add(xp.RefTo(xptest.MR("copy")), true, adoption.Hold{Clone: "b"}, &adoption.Hold{})
	if h := requested.held.get(xp.RefTo(mr).ID()); h == nil || !h.Observes || len(h.Policies) != 1 {
		t.Errorf("a second hold needs each reason of the first: %+v", h)
	}
	if h := requested.held.get(xp.RefTo(xr).ID()); h == nil || !h.Quarantine || len(h.Refs) > 0 {
		t.Errorf("the hold must not repeat the XR's list: %+v", h)
	}
	if requested.held.get(xp.RefTo(xptest.MR("copy")).ID()) != nil {
		t.Error("a copy must have no operation")
	}
	marked := map[string]any{"metadata": map[string]any{"annotations": map[string]any{adoption.AnnotationHold: "{}"}}}
	lifts := map[string]any{"metadata": map[string]any{"annotations": map[string]any{adoption.AnnotationHold: nil}}}
	for _, u := range []*unstructured.Unstructured{mr, xr} {
		requested.OnStep(adoption.Change{Target: u, Patch: marked})
		if requested.held.get(xp.RefTo(u).ID()) == nil {
			t.Errorf("the mark must keep %s held", xp.String(u))
		}
		requested.OnStep(adoption.Change{Target: u, Patch: lifts})
		if requested.held.get(xp.RefTo(u).ID()) != nil {
			t.Errorf("the release must remove the hold of %s", xp.String(u))
		}
	}
}

// There can be tens of thousands of equal holds.
func TestRememberedHoldsAreSmall(t *testing.T) {
	m := &rememberedHolds{}
	for n := range 1000 {
		m.add(xp.RefTo(xptest.MR(fmt.Sprintf("b-%d", n))), true, adoption.Hold{Quarantine: true, Restore: "velero/monday", Since: strconv.Itoa(n)}, &adoption.Hold{})
	}
	if len(m.by.entries) != 1000 || len(m.same.entries) != 1 {
		t.Errorf("got %d holds of %d kinds", len(m.by.entries), len(m.same.entries))
	}
}
