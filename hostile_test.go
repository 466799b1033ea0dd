package main

import (
	"fmt"
	"runtime"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/backupitem"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A fakeDiscovery is a discovery client for XRs and their platform. It counts calls.
type fakeDiscovery struct{ calls int }

func (d *fakeDiscovery) ServerGroups() (*metav1.APIGroupList, error) {
	d.calls++
	list := &metav1.APIGroupList{}
	for _, g := range []schema.GroupVersion{{Version: "v1"}, {Group: "example.org", Version: "v1alpha1"}, {Group: xp.GroupAPIExtensions, Version: "v1"}} {
		v := metav1.GroupVersionForDiscovery{GroupVersion: g.String(), Version: g.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: g.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}

	return list, nil
}

func (d *fakeDiscovery) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	d.calls++
	kinds, ok := map[string][]metav1.APIResource{
		"v1": {{Name: "secrets", Kind: "Secret", Namespaced: true}}, xptest.LegacyVersion: {{Name: "xorders", Kind: xptest.LegacyKind}},
		xp.GroupAPIExtensions + "/v1": {
			{Name: "compositeresourcedefinitions", Kind: "CompositeResourceDefinition"},
			{Name: "compositions", Kind: "Composition"},
			{Name: "compositionrevisions", Kind: "CompositionRevision"},
		},
	}[gv]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, gv)
	}

	return &metav1.APIResourceList{GroupVersion: gv, APIResources: kinds}, nil
}

// A tenant's XRs that list kinds that no server has cost a backup few requests and little memory.
func TestUnservedKindsAreCheap(t *testing.T) {
	const xrs, kinds = 20, 15_000
	const mostRequests, mostBytes = 10, 20 << 20
	discovery := &fakeDiscovery{}
	client := fake.NewSimpleDynamicClient(kruntime.NewScheme())
	links := backupitem.NewResolver(live.NewCluster(client, discovery))
	log, hook := logtest.NewNullLogger()
	tree, block := backupitem.NewTree(links, log), backupitem.NewItemBlock(links, log)
	before := heap()
	for x := range xrs {
		refs := make([]any, kinds)
		for n := range refs {
			ref := map[string]any{"apiVersion": fmt.Sprintf("g%d.x%d.org/v1", n, x), "kind": "K", "name": "n"}
			switch n % 3 {
			case 1:
				ref["apiVersion"], ref["kind"] = xptest.LegacyVersion, fmt.Sprintf("K%dx%d", n, x)
			case 2:
				ref["apiVersion"], ref["kind"] = fmt.Sprintf("example.org/v%d", n+x*kinds), xptest.LegacyKind+"s"
			}
			refs[n] = ref
		}
		xr := xptest.XR(fmt.Sprint("x", x), xptest.Field(refs, "spec", "resourceRefs"))
		if _, err := block.GetRelatedItems(xr.DeepCopy(), &velerov1.Backup{}); err != nil {
			t.Fatal(err)
		}
		if _, _, _, _, err := tree.Execute(xr, &velerov1.Backup{}); err != nil {
			t.Fatal(err)
		}
		if dangling, err := xp.UnresolvedRefs(xr); err != nil || len(dangling) != kinds {
			t.Fatalf("a restore would wait for %d of %d kinds that are not served, error %v", kinds-len(dangling), kinds, err)
		}
	}
	if lines := len(hook.AllEntries()); lines > xrs*30 {
		t.Errorf("%d lines were written for %d XRs", lines, xrs)
	}
	hook.Reset()
	if after := heap(); after > before+mostBytes {
		t.Errorf("%d bytes more are in use", after-before)
	}
	perXR := len(client.Actions()) / xrs
	const perXRLimit = 8 // The CompositionRevision, the Composition and the XRD, which are missing, each time.
	if discovery.calls > mostRequests || perXR > perXRLimit {
		t.Errorf("%d requests for the served kinds, and %d for each XR", discovery.calls, perXR)
	}
	runtime.KeepAlive(links)
}

// heap returns the bytes in use.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)

	return stats.HeapAlloc
}
