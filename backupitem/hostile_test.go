package backupitem

import (
	"fmt"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A tenant's XR can list as much as etcd takes. The backup of all waits for each request.
func TestManyMissingAreNotAskedForOneByOne(t *testing.T) {
	const many = 10_000
	refs := make([]any, many)
	for i := range refs {
		refs[i] = map[string]any{"apiVersion": xptest.ManagedVersion, "kind": xptest.ManagedKind, "name": fmt.Sprint("b", i)}
	}
	xr := xptest.XR("x", xptest.Field(refs, "spec", "resourceRefs"))
	// It was not labelled, and is found all the same.
	last := xptest.MR(fmt.Sprint("b", many-1), xptest.ControlledBy(xr), xptest.Without("metadata", "labels"))
	objects, _ := platform()
	c := clusterOf(append(objects, xr, last)...)
	log, _ := logtest.NewNullLogger()
	_, items, _, _, err := NewTree(NewLinks(c), log).Execute(xr, &velerov1.Backup{})
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, n := range c.asked {
		asked += n
	}
	if asked > 100 || len(c.lists) > 10 {
		t.Errorf("%d refs made %d requests and %d lists", many, asked, len(c.lists))
	}
	found := false
	for _, i := range items {
		found = found || i == bucket(last.GetName())
	}
	if dangling, _ := xp.Dangling(xr); !found || len(dangling) != many-1 {
		t.Errorf("of %d refs one is found; got %d that dangle, %v", many, len(dangling), items[max(0, len(items)-3):])
	}
}
