package live

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// bulkServer is a server that returns all groups and kinds at once, except those in failing.
type bulkServer struct {
	*server

	failing map[schema.GroupVersion]error
	err     error
}

func (g *bulkServer) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	if g.err != nil {
		return nil, nil, g.err
	}
	all, err := g.ServerGroups()
	if err != nil {
		return nil, nil, err
	}
	var groups []*metav1.APIGroup
	for i := range all.Groups {
		groups = append(groups, &all.Groups[i])
	}
	var lists []*metav1.APIResourceList
	for groupVersion, resources := range g.kinds {
		gv, _ := schema.ParseGroupVersion(groupVersion)
		if g.failing[gv] == nil {
			lists = append(lists, &metav1.APIResourceList{GroupVersion: groupVersion, APIResources: resources})
		}
	}
	if len(g.failing) > 0 {
		return groups, lists, &discovery.ErrGroupDiscoveryFailed{Groups: g.failing}
	}

	return groups, lists, nil
}

func TestDiscover(t *testing.T) {
	g := &bulkServer{server: surveyed()}
	c := NewCluster(g, g)
	if err := c.Discover(); err != nil {
		t.Fatal(err)
	}
	kinds, unread, err := c.Kinds(context.Background(), xp.CategoryComposite, xp.CategoryClaim, xp.CategoryManaged)
	if err != nil || len(kinds) != 3 || len(unread) > 0 || len(g.kindReads) > 0 {
		t.Errorf("one request must return all kinds; got %v, %v, %v, and requested %v", kinds, unread, err, g.kindReads)
	}
	delete(g.kinds, "example.org/v1alpha1")
	if err := c.Discover(); err != nil {
		t.Fatal(err)
	}
	if kinds, _, err = c.Kinds(context.Background(), xp.CategoryComposite); err != nil || len(kinds) > 0 {
		t.Errorf("a discovery must replace the kinds that were known before; got %v, %v", kinds, err)
	}
}

func TestDiscoverInParts(t *testing.T) {
	gv := schema.GroupVersion{Group: "cloud.example.org", Version: "v1alpha1"}
	g := &bulkServer{server: surveyed(), failing: map[schema.GroupVersion]error{gv: errDown}}
	c := NewCluster(g, g)
	if err := c.Discover(); err != nil {
		t.Fatal(err)
	}
	if kinds, _, err := c.Kinds(context.Background(), xp.CategoryManaged); err != nil || len(kinds) != 1 || len(g.kindReads) != 1 {
		t.Errorf("a failed group must be requested separately; got %v, %v, and requested %v", kinds, err, g.kindReads)
	}
	g.err = errDown
	if err := c.Discover(); !errors.Is(err, errDown) {
		t.Errorf("without an answer no kind is known; got %v", err)
	}
}

func TestWithoutShortNames(t *testing.T) {
	g := &bulkServer{server: surveyed()}
	for gv, all := range g.kinds {
		for n := range all {
			if all[n].Name == "configmaps" || all[n].Name == "buckets" {
				g.kinds[gv][n].ShortNames = []string{"short" + all[n].Name}
			}
		}
	}
	c := NewCluster(g, g)
	got, err := c.WithoutShortNames([]string{"ShortBuckets", "secrets", "*"})
	if diff := cmp.Diff([]string{"buckets.cloud.example.org", "secrets", "*"}, got); diff != "" || err != nil {
		t.Errorf("a short name stands for a resource: %v -want, +got:\n%s", err, diff)
	}
	g.err = errors.New("down")
	if _, err := c.WithoutShortNames([]string{"po"}); !errors.Is(err, g.err) {
		t.Errorf("a server that does not answer is an error, got %v", err)
	}
	if got, err := c.WithoutShortNames(nil); got != nil || err != nil {
		t.Errorf("no filter needs no server, got %v, %v", got, err)
	}
}
