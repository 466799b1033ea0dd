package live

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// allResources is what a discovery client has that gets all groups and kinds in two requests if the API server can do that, from Kubernetes 1.26 on.
type allResources interface {
	ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// Discover forgets which groups and kinds are served, and asks for all of them at once if it can.
func (c *Cluster) Discover() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups, c.kinds = nil, map[schema.GroupVersion]*metav1.APIResourceList{}
	all, ok := c.discovery.(allResources)
	if !ok {
		return nil
	}
	var groups []*metav1.APIGroup
	var lists []*metav1.APIResourceList
	err := c.again(nil, answering, func() (err error) {
		groups, lists, err = all.ServerGroupsAndResources()

		return err
	})
	// A group that failed is asked for by itself when it is needed.
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return fmt.Errorf("cannot ask which kinds are served: %w", err)
	}
	c.groups = &metav1.APIGroupList{}
	for _, g := range groups {
		c.groups.Groups = append(c.groups.Groups, *g)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return fmt.Errorf("cannot read which kinds are served: %w", err)
		}
		c.kinds[gv] = list
	}

	return nil
}
