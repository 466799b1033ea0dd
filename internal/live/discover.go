package live

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// allResources is the part of a discovery client that reads all groups and kinds in two requests,
// which API servers support from Kubernetes 1.26 on.
type allResources interface {
	ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// Discover clears the cache of groups and kinds, and reads all of them at once if the client can.
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
	// A group that failed is read separately when it is needed.
	failed, inPart := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !inPart {
		return fmt.Errorf("cannot ask which kinds are served: %w", err)
	}
	c.silentMu.Lock()
	for gv := range failed {
		c.silent[serverOf(gv)] = true
	}
	c.silentMu.Unlock()
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

// isKnown reports whether a kind was served when its group and version was last read.
func (c *Cluster) isKnown(gvk schema.GroupVersionKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.kinds[gvk.GroupVersion()].find(gvk.Kind)

	return ok
}

// lookUp returns an error that isUnserved matches if a kind was not served when the kinds were last
// read. It sends requests only for groups and versions that are served and were not read, because
// they did not answer or because the server can't list all at once.
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

// hasListed reports whether a group and version was served when the groups were last read.
func (c *Cluster) hasListed(gv schema.GroupVersion) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return gv == schema.GroupVersion{Version: "v1"} || c.groups.versions[gv]
}

// WithoutShortNames returns resource filters of Velero with the full names of resources in place of
// short names, which only the API server knows. It keeps what is no short name.
func (c *Cluster) WithoutShortNames(filters []string) ([]string, error) {
	if len(filters) == 0 {
		return filters, nil
	}
	if err := c.Discover(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	full := slices.Clone(filters)
	for gv, k := range c.kinds {
		for _, r := range k.list.APIResources {
			for n, filter := range filters {
				if slices.Contains(r.ShortNames, strings.ToLower(filter)) {
					full[n] = gv.WithResource(r.Name).GroupResource().String()
				}
			}
		}
	}

	return full, nil
}
