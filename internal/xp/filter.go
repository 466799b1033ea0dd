package xp

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MatchesResource reports whether one of Velero's filters by resource is for a resource. Velero has
// an API server complete what people write (velero pkg/util/collections,
// GetResourceIncludesExcludes): the plural or the singular name, with or without the group or the
// beginning of that. Short names are known to the API server alone, so what is filtered by these is
// not found.
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
