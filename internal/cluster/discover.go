package cluster

import (
	"fmt"
	"slices"
	"strings"

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
	found := make([]metav1.APIGroup, len(groups))
	for n, g := range groups {
		found[n] = *g
	}
	c.setGroups(found)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return fmt.Errorf("cannot read which kinds are served: %w", err)
		}
		c.kinds[gv] = kinds{resources: list.APIResources, read: c.now()}
	}

	return nil
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
		for _, r := range k.resources {
			for n, filter := range filters {
				if slices.Contains(r.ShortNames, strings.ToLower(filter)) {
					full[n] = gv.WithResource(r.Name).GroupResource().String()
				}
			}
		}
	}

	return full, nil
}

// ServedVersion returns a kind in a version in which it was served when its group was first read:
// the given version if none is. It skips the versions in unanswered, and adds those that do not
// answer, with the error.
func (c *Cluster) ServedVersion(gvk schema.GroupVersionKind, unanswered map[schema.GroupVersion]error) (schema.GroupVersionKind, error) {
	groups, err := c.cachedGroups()
	if err != nil {
		return gvk, err
	}
	for _, version := range groups.versionsOf(gvk.Group) {
		other := gvk.GroupKind().WithVersion(version)
		gv := other.GroupVersion()
		if unanswered[gv] != nil {
			continue
		}
		cached, err := c.cachedKinds(gv)
		if err != nil {
			unanswered[gv] = err

			continue
		}
		if _, ok := cached.find(gvk.Kind); ok {
			return other, nil
		}
	}

	return gvk, nil
}
