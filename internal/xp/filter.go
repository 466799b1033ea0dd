package xp

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MatchesResource reports whether one of Velero's resource filters selects a resource. A filter is
// the plural or singular name, with or without the group or the beginning of the group, since
// Velero has the API server complete it (velero pkg/util/collections, GetResourceIncludesExcludes).
// Only the API server knows short names, so filters with these match nothing here.
func MatchesResource(filters []string, resource schema.GroupResource) bool {
	return slices.ContainsFunc(filters, func(filter string) bool {
		if ok, err := path.Match(filter, resource.String()); ok && err == nil {
			return true
		}
		gr := schema.ParseGroupResource(strings.ToLower(filter))
		plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: gr.Resource})

		return (gr.Resource == resource.Resource || plural.Resource == resource.Resource) && strings.HasPrefix(resource.Group, gr.Group)
	})
}
