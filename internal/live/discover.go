package live

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// allResources is what a discovery client has that gets all groups and kinds in two requests if the
// API server can do that, from Kubernetes 1.26 on.
type allResources interface {
	ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// Discover forgets which groups and kinds are served, and asks for all of them at once if it can.
func (c *Cluster) Discover() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups, c.kinds = served{}, map[schema.GroupVersion]kinds{}
	all, ok := c.discovery.(allResources)
	if !ok {
		return nil
	}
	var groups []*metav1.APIGroup
	var lists []*metav1.APIResourceList
	err := c.withRetry(nil, apiServerName, func() (err error) {
		groups, lists, err = all.ServerGroupsAndResources()

		return err
	})
	// A group that failed is asked for by itself when it is needed.
	failed, inPart := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !inPart {
		return fmt.Errorf("cannot ask which kinds are served: %w", err)
	}
	c.asking.Lock()
	for gv := range failed {
		c.silent[serverOf(gv)] = true
	}
	c.asking.Unlock()
	found := &metav1.APIGroupList{}
	for _, g := range groups {
		found.Groups = append(found.Groups, *g)
	}
	c.setGroups(found)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return fmt.Errorf("cannot read which kinds are served: %w", err)
		}
		c.kinds[gv] = kinds{list: list, read: c.now()}
	}

	return nil
}

// isKnown reports whether a kind was among those that were served when its group was last asked
// for.
func (c *Cluster) isKnown(gvk schema.GroupVersionKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.kinds[gvk.GroupVersion()].find(gvk.Kind)

	return ok
}

// lookUp fails with an error that isUnserved knows if a kind is not among those that were served
// when that was last asked. It asks only for groups and versions that are served, if these did not
// answer or the server could not tell all at once.
func (c *Cluster) lookUp(gvk schema.GroupVersionKind) error {
	if _, err := c.groupList(); err != nil {
		return err
	}
	unknown := &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	if !c.hasListed(gvk.GroupVersion()) {
		return unknown
	}
	list, err := c.kindsOf(gvk.GroupVersion())
	if err != nil {
		return err
	}
	if _, ok := find(list, gvk.Kind); !ok {
		return unknown
	}

	return nil
}

// hasListed reports whether a group and version was among those that were served when they were
// last asked for.
func (c *Cluster) hasListed(gv schema.GroupVersion) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return gv == schema.GroupVersion{Version: "v1"} || c.groups.versions[gv]
}
