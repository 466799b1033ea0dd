package adoption

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// settling is the option of a mark which says that the provider has found the external resource or,
// with lost, no longer finds it.
func settling(since time.Time, lost bool) xptest.Option {
	return func(u *unstructured.Unstructured) {
		h, err := HoldOf(u)
		if err == nil {
			h.Settling, h.Lost = since.Format(time.RFC3339), lost
			xp.Annotate(u, AnnotationHold, Unverified.mark(xp.RefTo(u), h))
		}
		if err != nil {
			panic(err) // The test is wrong.
		}
	}
}

// While an MR settles, its Plan and its XR's can change with time alone.
func TestSettlingEnds(t *testing.T) {
	x := xptest.XR("x")
	of := func(name string, began time.Time) *unstructured.Unstructured {
		return heldFor(xptest.MR(name, xptest.ControlledBy(x)), Hold{Observes: true}, unpaused(), xptest.Reconciled(), settling(began, false))
	}
	first, second := of("b", noon.Add(-2*time.Second)), of("c", noon.Add(-time.Second))
	xr := held(xptest.XR("x", xptest.Refs(second, first)), xptest.SeenPaused())
	w := snapshot(xr, first, second, xptest.Revision(xptest.RevisionName, x))
	for _, of := range []*unstructured.Unstructured{xr, first} {
		if got, want := Next(w, xp.RefTo(of)).NextAt, noon.Add(3*time.Second); !got.Equal(want) {
			t.Errorf("the first MR to settle counts: the plan of %s changes at %s, want %s", xp.String(of), got, want)
		}
	}
}
