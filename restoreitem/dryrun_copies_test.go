package restoreitem

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	riav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/restoreitemaction/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Velero gives actions copies, and a dry run gives them its own objects. So an action must not
// change an object of the backup or the cluster, and an item only if it returns that.
func TestActionsChangeWhatTheyReturn(t *testing.T) {
	log, _ := logtest.NewNullLogger()
	returned, zoo := 0, xptest.HostileObjects()
	xptest.Seeds(func(animal uint8, patch []byte) {
		u, ok := xptest.Patched(animal, patch)
		if !ok {
			return
		}
		for n := range uint8(5) {
			c := live()
			c.objects = zoo
			for _, a := range []riav2.RestoreItemAction{NewOrder(Crossplane(), kindsFn(served), log, Shared{}), NewAdopt(Crossplane(), c, nil, log, Shared{})} {
				input := inputFor(u, hostileRestore(n))
				original := &unstructured.Unstructured{Object: input.ItemFromBackup.UnstructuredContent()}
				item := &unstructured.Unstructured{Object: input.Item.UnstructuredContent()}
				before, beforeItem := original.DeepCopy(), item.DeepCopy()
				out, err := a.Execute(input)
				if !reflect.DeepEqual(before, original) {
					t.Fatalf("%s changes the backup's %s: %s", a.Name(), xp.String(before), cmp.Diff(before, original))
				}
				if err != nil || out.SkipRestore {
					continue // It is not used again.
				}
				if out.UpdatedItem != nil {
					returned++

					continue
				}
				if !reflect.DeepEqual(beforeItem, item) {
					t.Fatalf("%s changes %s and does not return it: %s", a.Name(), xp.String(before), cmp.Diff(beforeItem, item))
				}
			}
		}
	})
	if diff := cmp.Diff(xptest.HostileObjects(), zoo); diff != "" {
		t.Errorf("an action changed a live object: %s", diff)
	}
	if returned == 0 {
		t.Error("no action returned an item, so the test proves nothing")
	}
}

// Each composed resource reads its XR, which can list thousands.
func TestADryRunUnpacksAnXROnce(t *testing.T) {
	c := &simulatedCluster{packer: pack.New(), restored: map[xp.ID]pack.Object{}}
	x := xptest.XR("x")
	c.add(x)
	before := c.find(xp.RefTo(x).ID())
	c.add(xptest.MR("b"))
	if c.find(xp.RefTo(x).ID()) != before {
		t.Error("another object must not unpack the XR again")
	}
	c.add(x)
	if c.find(xp.RefTo(x).ID()) == before {
		t.Error("a new state must be read")
	}
}
