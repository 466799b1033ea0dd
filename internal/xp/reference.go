package xp

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Owners returns what the owner references of an object in the namespace name. Those that are
// namespaced are in the namespace.
func Owners(u *unstructured.Unstructured) []Ref {
	var refs []Ref
	for _, o := range u.GetOwnerReferences() {
		refs = append(refs, Ref{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: u.GetNamespace(), Name: o.Name})
	}

	return refs
}

// Uses returns what a Usage protects and what it protects it for, as far as it names them: it has
// the names as soon as Crossplane has resolved its selectors.
func Uses(usage *unstructured.Unstructured) []Ref {
	var refs []Ref
	for _, field := range []string{"of", "by"} {
		if r, ok := usageRef(usage, field); ok {
			refs = append(refs, r)
		}
	}

	return refs
}

// MapNamespaces rewrites every reference of u into a namespace that is restored to another: in its
// spec, the namespace of each field whose name ends in Ref or Refs, as Crossplane and its providers
// name references, and the label that names the claim's namespace. What a provider-kubernetes
// Object manages stays where it is: it is the Object's external resource.
func MapNamespaces(u *unstructured.Unstructured, mapping map[string]string) {
	labels := u.GetLabels()
	if to, ok := mapping[labels[LabelClaimNamespace]]; ok && labels[LabelClaimNamespace] != "" {
		labels[LabelClaimNamespace] = to
		u.SetLabels(labels)
	}
	if spec, ok := u.Object["spec"].(map[string]any); ok {
		mapFields(spec, mapping)
	}
	// What a namespaced XR composes is in its own namespace, which is mapped with it.
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

// isReference reports whether a field holds a reference. Selectors of Usages name a namespace too,
// and two fields of provider-kubernetes are references by another name.
func isReference(field string) bool {
	return strings.HasSuffix(field, "Ref") || strings.HasSuffix(field, "Refs") || field == "dependsOn" || field == "patchesFrom" || field == "resourceSelector"
}

func mapNamespace(ref map[string]any, mapping map[string]string) {
	namespace, _ := ref["namespace"].(string)
	if to, mapped := mapping[namespace]; namespace != "" && mapped {
		ref["namespace"] = to
	}
}
