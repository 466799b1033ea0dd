package adoption

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// ofMany returns an XR that composes n MRs, and these.
func ofMany(name string, n int) (xr *unstructured.Unstructured, mrs []*unstructured.Unstructured) {
	for i := range n {
		mrs = append(mrs, xptest.MR(fmt.Sprintf("%s-%d", name, i), xptest.ControlledBy(xptest.XR(name)), xptest.Reconciled()))
	}

	return xptest.XR(name, xptest.Refs(mrs...)), mrs
}

// BenchmarkMark measures Put and HoldOf for an XR.
func BenchmarkMark(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		xr, _ := ofMany("x", n)
		b.Run(fmt.Sprintf("put/composed=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Put(xr.DeepCopy(), Hold{Restore: restoreName, Since: restoredAt}); err != nil {
					b.Fatal(err)
				}
			}
		})
		marked := held(xr)
		b.Run(fmt.Sprintf("read/composed=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(xp.Annotation(marked, AnnotationHold))))
			for b.Loop() {
				if h, err := HoldOf(marked); err != nil || len(h.Refs) != n {
					b.Fatal(h, err)
				}
			}
		})
	}
}

// BenchmarkNext plans for all XRs of a Snapshot, with ten MRs each.
func BenchmarkNext(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("xrs=%d", n), func(b *testing.B) {
			w := snapshot(xptest.Revision(xptest.RevisionName, xptest.XR("x")))
			for i := range n {
				xr, mrs := ofMany(fmt.Sprintf("x%05d", i), 10)
				w.Add(held(xr, xptest.SeenPaused()))
				for _, mr := range mrs {
					w.Add(mr)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				subjects := w.Subjects()
				w.Needs(subjects)
				for _, r := range subjects {
					if p := Next(w, r); p.Adopted != 10 {
						b.Fatalf("%+v", p)
					}
				}
			}
		})
	}
}
