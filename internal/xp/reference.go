package xp

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Owners returns the owners of an object, from its owner references. Each has the namespace of the
// object: a namespaced owner is in it.
func Owners(u *unstructured.Unstructured) []Ref {
	var refs []Ref
	owners, _ := OwnerReferences(u)
	for _, o := range owners {
		refs = append(refs, Ref{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: u.GetNamespace(), Name: o.Name})
	}

	return refs
}

// Uses returns what a Usage protects and what uses that, as far as the Usage names them. Crossplane
// writes the names when it has resolved the selectors.
func Uses(usage *unstructured.Unstructured) []Ref {
	var refs []Ref
	for _, field := range []string{"of", "by"} {
		if r, ok := usageRef(usage, field); ok {
			refs = append(refs, r)
		}
	}

	return refs
}

// MapNamespaces rewrites the references of u from mapped namespaces to the new ones: the namespace
// of each field of the spec whose name ends in Ref or Refs, as Crossplane and providers name
// references, and the label with the claim's namespace. The manifest in an Object of
// provider-kubernetes stays as it is: that is the external resource.
func MapNamespaces(u *unstructured.Unstructured, mapping map[string]string) {
	labels := u.GetLabels()
	if to, ok := mapping[labels[LabelClaimNamespace]]; ok && labels[LabelClaimNamespace] != "" {
		labels[LabelClaimNamespace] = to
		u.SetLabels(labels)
	}
	if spec, ok := u.Object["spec"].(map[string]any); ok {
		mapFields(spec, mapping)
	}
	// A namespaced XR composes in its own namespace, which changes with the XR.
	if u.GetNamespace() == "" {
		for _, name := range []string{FieldUnresolvedRefs, FieldConditions} {
			refs, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", name)
			mapFields(map[string]any{"noteRefs": refs}, mapping)
		}
	}
}

func mapFields(fields map[string]any, mapping map[string]string) {
	for name, value := range fields {
		if name == "manifest" {
			continue
		}
		switch v := value.(type) {
		case map[string]any:
			if isReference(name) {
				mapNamespace(v, mapping)
			}
			mapFields(v, mapping)
		case []any:
			for _, entry := range v {
				m, ok := entry.(map[string]any)
				if !ok {
					continue
				}
				if isReference(name) {
					mapNamespace(m, mapping)
				}
				mapFields(m, mapping)
			}
		}
	}
}

// isReference reports whether a field holds a reference. The selector of a Usage has a namespace
// too, and provider-kubernetes has two references with other names.
func isReference(field string) bool {
	return strings.HasSuffix(field, "Ref") || strings.HasSuffix(field, "Refs") || field == "dependsOn" || field == "patchesFrom" || field == "resourceSelector"
}

func mapNamespace(ref map[string]any, mapping map[string]string) {
	namespace, _ := ref["namespace"].(string)
	if to, mapped := mapping[namespace]; namespace != "" && mapped {
		ref["namespace"] = to
	}
}
