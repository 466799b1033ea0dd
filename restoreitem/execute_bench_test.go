package restoreitem

import (
	"fmt"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A plainMapper maps kinds without a server.
type plainMapper struct{}

func (plainMapper) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	return gvk.GroupVersion().WithResource(gvk.Kind + "s"), false, nil
}

func (plainMapper) IsClaimKind(schema.GroupVersionKind) (bool, error) { return false, nil }

// BenchmarkExecute measures an action on an item, without Velero's part of the call.
func BenchmarkExecute(b *testing.B) {
	log, _ := logtest.NewNullLogger()
	log.SetLevel(logrus.InfoLevel)
	for _, n := range []int{10, 1000} {
		mrs := make([]*unstructured.Unstructured, 0, n)
		for i := range n {
			mrs = append(mrs, xptest.MR(fmt.Sprintf("b%d", i), xptest.ControlledBy(xptest.XR("x", xptest.UID("old"))), xptest.Reconciled()))
		}
		xr := xptest.XR("x", xptest.UID("new"), xptest.Refs(mrs...))
		claim := xptest.Claim("o", xptest.OfXR(xr))
		secret := xptest.Secret("s")
		order := NewOrder(velero.ResourceSelector{}, plainMapper{}, log, Shared{})
		adopt := NewAdopt(velero.ResourceSelector{}, live(xr), nil, log, Shared{})
		for _, action := range []struct {
			name    string
			execute func(*velero.RestoreItemActionExecuteInput) (*velero.RestoreItemActionExecuteOutput, error)
		}{{"1-order", order.Execute}, {"2-adopt", adopt.Execute}} {
			for _, item := range []*unstructured.Unstructured{mrs[0], xr, claim, secret} {
				b.Run(fmt.Sprintf("action=%s/kind=%s/composed=%d", action.name, item.GetKind(), n), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						in := &velero.RestoreItemActionExecuteInput{Item: item.DeepCopy(), ItemFromBackup: item, Restore: restoreOf(nil)}
						if _, err := action.execute(in); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
