package backupitem

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Velero gets each requested item from the API server, also if it has it.
func TestTreeRequestsWhatIsDue(t *testing.T) {
	objects, shared := platform()
	const many = 10
	var xrs, early []*unstructured.Unstructured
	want := map[velero.ResourceIdentifier]int{}
	for n := range many {
		name := fmt.Sprint("b", n)
		xr := xptest.XR(fmt.Sprint("x", n), xptest.Refs(xptest.MR(name)))
		mr := xptest.MR(name, xptest.ControlledBy(xr))
		xrs, objects = append(xrs, xr), append(objects, xr, mr)
		if n%2 == 0 {
			early = append(early, mr)
		} else {
			want[bucket(name)] = 1
		}
	}
	s := newSession(t, clusterOf(objects...))
	for _, mr := range early {
		s.take(mr, &velerov1.Backup{})
	}
	got, lists := map[velero.ResourceIdentifier]int{}, map[velero.ResourceIdentifier]int{}
	for _, xr := range xrs {
		of := s.take(xr, &velerov1.Backup{})
		for _, i := range of.Items {
			got[i]++
		}
		for _, i := range of.Before {
			lists[i]++
		}
	}
	for _, i := range shared {
		want[i] = maxRequests
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the plugin must ask for a shared object a few times, since one request of Velero's can fail, and never for one that Velero backs up already: -want, +got:\n%s", diff)
	}
	for _, i := range shared {
		if lists[i] != many {
			t.Errorf("each XR's list for the restore must have %v: got it %d times of %d", i, lists[i], many)
		}
	}
}
