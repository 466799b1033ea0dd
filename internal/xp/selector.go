package xp

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CustomResources returns the resources that can be Crossplane's, as include and exclude lists of
// Velero with globs. XRDs and providers choose the kinds, and Velero reads the lists once, when
// there may be no XRD yet. The group of a custom resource has a dot, so its resource.group has two.
// CRDs are excluded: item, original and Restore together must stay below 4 MiB (velero
// pkg/plugin/framework, go-plugin's default), and a CRD can exceed that.
func CustomResources() (include, exclude []string) {
	return []string{"*.*.*"}, []string{"*.k8s.io", "*.velero.io"}
}

// IsCustomGroup reports whether CustomResources includes the resources of a group.
func IsCustomGroup(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") && !strings.HasSuffix(group, ".velero.io")
}

// KubernetesResources returns the resources of Kubernetes that an XR can compose, without Secrets,
// as CustomResources does. Velero calls no action for Namespaces.
func KubernetesResources() (include, exclude []string) {
	return []string{
		"configmaps", "endpoints", "limitranges", "persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "replicationcontrollers",
		"resourcequotas", "serviceaccounts", "services", "*.apps", "*.autoscaling", "*.batch", "*.policy", "*.k8s.io",
	}, []string{"customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io"}
}

// RuntimeResources returns the resources of Kubernetes, without Secrets, that Crossplane makes to
// run packages and to let users use XRDs.
func RuntimeResources() []string {
	return []string{"deployments.apps", "services", "serviceaccounts", "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"}
}

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

// MatchesNamespace reports whether one of the patterns in a list of Velero's matches a namespace. It
// ignores invalid ones.
func MatchesNamespace(patterns []string, namespace string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, namespace)

		return ok && err == nil
	})
}

// IncludesNamespace reports whether the lists of a Backup or Restore include a namespace.
func IncludesNamespace(included, excluded []string, namespace string) bool {
	return (len(included) == 0 || MatchesNamespace(included, namespace)) && !MatchesNamespace(excluded, namespace)
}
