package backupitem

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Velero gets what an XR runs on from the API server each time that it is asked for it, which is three requests for each XR.
func TestTreeAsksForSharedAFewTimes(t *testing.T) {
	objects, shared := platform()
	const many = 10
	var xrs []*unstructured.Unstructured
	want := map[velero.ResourceIdentifier]int{}
	for n := range many {
		name := fmt.Sprint("b", n)
		xr := xptest.XR(fmt.Sprint("x", n), xptest.Refs(xptest.MR(name)))
		xrs, objects = append(xrs, xr), append(objects, xr, xptest.MR(name, xptest.ControlledBy(xr)))
		want[bucket(name)] = 1
	}
	links := NewLinks(clusterOf(objects...))
	log, _ := logtest.NewNullLogger()
	tree := NewTree(links, log)
	got, lists := map[velero.ResourceIdentifier]int{}, map[velero.ResourceIdentifier]int{}
	for _, xr := range xrs {
		stored, items, _, _, err := tree.Execute(xr.DeepCopy(), &velerov1.Backup{})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			got[i]++
		}
		before, _, err := xp.Tree(&unstructured.Unstructured{Object: stored.UnstructuredContent()})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range identifiers(before) {
			lists[i]++
		}
	}
	for _, i := range shared {
		want[i] = often
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("What is shared is asked for a few times, in case that Velero fails to get it once: -want, +got:\n%s", diff)
	}
	for _, i := range shared {
		if lists[i] != many {
			t.Errorf("Each XR's own list for the restore has %v: got it %d times of %d", i, lists[i], many)
		}
	}
}
