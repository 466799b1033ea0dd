package backupitem

import (
	"fmt"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// BenchmarkTree measures Tree for an XR and all that it composes, with an API server that answers
// at once.
func BenchmarkTree(b *testing.B) {
	for _, composed := range []int{10, 100} {
		b.Run(fmt.Sprint("composed=", composed), func(b *testing.B) {
			xr := xptest.XRV2("x", xptest.Reconciled())
			var items []*unstructured.Unstructured
			for n := range composed {
				items = append(items, xptest.NamespacedMR(fmt.Sprint("b", n), xptest.ControlledBy(xr), xptest.Reconciled()))
			}
			items = append(items, xptest.With(xr, xptest.Refs(items...)))
			log, _ := logtest.NewNullLogger()
			cluster := clusterOf(items...)
			cluster.modern = true
			b.ReportAllocs()
			for b.Loop() {
				tree := NewTree(NewResolver(cluster), log)
				for _, item := range items {
					if _, _, _, _, err := tree.Execute(item.DeepCopy(), &velerov1.Backup{}); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(items)), "ns/item")
		})
	}
}
