package xp

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A DefinedKind is a kind of XR or claim that an XRD defines.
type DefinedKind struct {
	schema.GroupVersionKind

	// XRD is the name of its definition.
	XRD string
	// Since is when Crossplane last said that the API server serves it.
	Since time.Time
}

// DefinedKinds returns the kinds that an XRD defines and that are served: that of its XRs, and of
// its claims if it offers any.
func DefinedKinds(xrd *unstructured.Unstructured) []DefinedKind {
	gv := schema.GroupVersion{Version: servedVersion(xrd)}
	gv.Group, _, _ = unstructured.NestedString(xrd.Object, "spec", "group")
	var kinds []DefinedKind
	for _, k := range []struct{ names, condition string }{{"names", "Established"}, {"claimNames", "Offered"}} {
		kind, _, _ := unstructured.NestedString(xrd.Object, "spec", k.names, "kind")
		c, ok := ConditionOf(xrd, k.condition)
		if kind == "" || !ok || c.Status != "True" {
			continue
		}
		kinds = append(kinds, DefinedKind{GroupVersionKind: gv.WithKind(kind), XRD: xrd.GetName(), Since: c.Since})
	}

	return kinds
}

func servedVersion(xrd *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(xrd.Object, "spec", "versions")
	for _, v := range versions {
		m, ok := v.(map[string]any)
		if !ok {
			continue
		}
		name, _ := m["name"].(string)
		if served, _ := m["served"].(bool); served {
			return name
		}
	}

	return ""
}

// ScopeLegacy is that of an XRD of Crossplane v1, and of one of v2 that has claims.
const ScopeLegacy = "LegacyCluster"

// ScopeOf returns the scope of the XRs that an XRD defines.
func ScopeOf(xrd *unstructured.Unstructured) string {
	if scope, _, _ := unstructured.NestedString(xrd.Object, "spec", "scope"); scope != "" {
		return scope
	}
	if xrd.GroupVersionKind().Version == "v2" {
		return "Namespaced"
	}

	return ScopeLegacy
}
