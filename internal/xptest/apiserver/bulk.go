package apiserver

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// A BulkServer returns all groups and kinds at once, except those in Failing. With Err it returns
// none.
type BulkServer struct {
	*Server

	Failing map[schema.GroupVersion]error
	Err     error
}

// ServerGroupsAndResources returns all groups and kinds.
func (g *BulkServer) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	all, err := g.ServerGroups()
	if g.Err != nil || err != nil {
		return nil, nil, g.Err
	}
	var groups []*metav1.APIGroup
	for i := range all.Groups {
		groups = append(groups, &all.Groups[i])
	}
	var lists []*metav1.APIResourceList
	for groupVersion, resources := range g.Kinds {
		gv, _ := schema.ParseGroupVersion(groupVersion)
		if g.Failing[gv] == nil {
			lists = append(lists, &metav1.APIResourceList{GroupVersion: groupVersion, APIResources: resources})
		}
	}
	if len(g.Failing) > 0 {
		return groups, lists, &discovery.ErrGroupDiscoveryFailed{Groups: g.Failing}
	}

	return groups, lists, nil
}
