package drill

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// shorthand is the apiVersion of what stands for an XRD or a Composition in a scene's files, so that
// one file serves all versions of Crossplane:
//
//	apiVersion: shorthand
//	kind: XRD
//	metadata: {name: Shop}  # the kind of XRs; on v1 that of claims, and XShop that of XRs
//	spec:
//	  fields: {region: {type: string}}  # of the spec of XRs
//	  required: [region]
//	  claim: false                      # no claims on v1, and no X
//	  with: {scope: Cluster}            # other fields of the XRD's spec
//	---
//	apiVersion: shorthand
//	kind: Composition
//	metadata: {name: "${scene}"}
//	spec: {of: Shop, resources: []}  # those of function-patch-and-transform; claim as above
const shorthand = "shorthand"

// expand returns what a shorthand stands for, and any other object as it is.
func (s Scene) expand(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u.GetAPIVersion() != shorthand {
		return u
	}
	spec, _ := u.Object["spec"].(map[string]any)
	claim, said := spec["claim"].(bool)
	claimed := s.Crossplane.IsV1() && (claim || !said)
	if u.GetKind() == "XRD" {
		return s.definition(u, spec, claimed)
	}
	of, _ := spec["of"].(string)

	return object("apiextensions.crossplane.io/v1", "Composition", u, map[string]any{
		"compositeTypeRef": map[string]any{"apiVersion": s.Name + ".example.org/v1alpha1", "kind": xrKind(of, claimed)},
		"mode":             "Pipeline",
		"pipeline": []any{map[string]any{
			"step": "compose", "functionRef": map[string]any{"name": "function-patch-and-transform"},
			"input": map[string]any{"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": spec["resources"]},
		}},
	}, spec["with"])
}

func (s Scene) definition(u *unstructured.Unstructured, spec map[string]any, claimed bool) *unstructured.Unstructured {
	kind, apiVersion := xrKind(u.GetName(), claimed), "apiextensions.crossplane.io/v2"
	ofSpec := map[string]any{"type": "object"}
	for field, in := range map[string]string{"fields": "properties", "required": "required", "rules": "x-kubernetes-validations"} {
		if value, ok := spec[field]; ok {
			ofSpec[in] = value
		}
	}
	more := map[string]any{
		"group": s.Name + ".example.org", "names": map[string]any{"kind": kind, "plural": plural(kind)}, "scope": "Namespaced",
		"versions": []any{map[string]any{
			"name": "v1alpha1", "served": true, "referenceable": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": ofSpec}}},
		}},
	}
	if s.Crossplane.IsV1() {
		apiVersion = "apiextensions.crossplane.io/v1"
		delete(more, "scope")
	}
	if claimed {
		more["claimNames"] = map[string]any{"kind": u.GetName(), "plural": plural(u.GetName())}
	}
	u.SetName(fmt.Sprintf("%s.%s.example.org", plural(kind), s.Name))

	return object(apiVersion, "CompositeResourceDefinition", u, more, spec["with"])
}

// object returns an object with the metadata of another, and a spec of two parts.
func object(apiVersion, kind string, of *unstructured.Unstructured, spec map[string]any, with any) *unstructured.Unstructured {
	more, _ := with.(map[string]any)
	maps.Copy(spec, more)

	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": of.Object["metadata"], "spec": spec}}
}

func xrKind(kind string, claimed bool) string {
	if claimed {
		return "X" + kind
	}

	return kind
}

func plural(kind string) string { return strings.ToLower(kind) + "s" }
