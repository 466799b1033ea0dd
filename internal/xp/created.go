package xp

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CreatedAs returns the kind, with the version, as which u can be created. Velero backs up the
// version that the API server prefers. That serves each object in each version, but validates a new
// one by the schema of the version in which it is created. Crossplane v2 prefers v2 of XRDs, which
// refuses the scope LegacyCluster, and with it claims and connection secrets; v1 accepts them and
// has the same fields (crossplane
// cluster/crds/apiextensions.crossplane.io_compositeresourcedefinitions.yaml).
func CreatedAs(u *unstructured.Unstructured) schema.GroupVersionKind {
	if IsDefinition(u) && ScopeOf(u) == ScopeLegacy {
		return KindDefinition
	}

	return u.GroupVersionKind()
}
