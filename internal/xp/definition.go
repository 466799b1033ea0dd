package xp

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A DefinedKind is a kind of XR or claim that an XRD defines.
type DefinedKind struct {
	schema.GroupVersionKind

	// XRD is the name of the XRD.
	XRD string
	// Since is the transition time of the XRD's condition for this kind, by Crossplane's clock, or
	// the creation of the XRD, by the API server's, whichever is later.
	Since time.Time
}

// DefinedKinds returns the served kinds of an XRD: the kind of its XRs, then the kind of its claims
// if it has one.
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
		kinds = append(kinds, DefinedKind{GroupVersionKind: gv.WithKind(kind), XRD: xrd.GetName(), Since: latest(c.Since, xrd.GetCreationTimestamp().Time)})
	}

	return kinds
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}

	return a
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

// ScopeLegacy is the scope of an XRD of Crossplane v1, and of a v2 XRD with claims.
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
