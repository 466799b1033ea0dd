package drill

import (
	"cmp"
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
//	  status: {endpoint: {type: string}}
//	  required: [region]
//	  claim: false                      # no claims on v1, and no X
//	  names: {categories: [shop]}       # other names of what users create
//	  with: {scope: Cluster}            # other fields of the XRD's spec
//	---
//	apiVersion: shorthand
//	kind: Composition
//	metadata: {name: "${scene}"}
//	spec:
//	  of: Shop
//	  resources: []         # those of function-patch-and-transform; claim as above
//	  function: "function"  # instead of function-patch-and-transform
//	  step: {}              # other fields of its step
//	  steps: []             # of the pipeline after that
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
	function, _ := spec["function"].(string)
	steps, _ := spec["steps"].([]any)

	return object("apiextensions.crossplane.io/v1", "Composition", u, map[string]any{
		"compositeTypeRef": map[string]any{"apiVersion": s.Name + ".example.org/v1alpha1", "kind": xrKind(of, claimed)},
		"mode":             "Pipeline",
		"pipeline": append([]any{with(map[string]any{
			"step": "compose", "functionRef": map[string]any{"name": cmp.Or(function, "function-patch-and-transform")},
			"input": map[string]any{"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": spec["resources"]},
		}, spec["step"])}, steps...),
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
	properties := map[string]any{"spec": ofSpec}
	if status, ok := spec["status"]; ok {
		properties["status"] = map[string]any{"type": "object", "properties": status}
	}
	more := map[string]any{
		"group": s.Name + ".example.org", "names": map[string]any{"kind": kind, "plural": plural(kind)}, "scope": "Namespaced",
		"versions": []any{map[string]any{
			"name": "v1alpha1", "served": true, "referenceable": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": properties}},
		}},
	}
	if s.Crossplane.IsV1() {
		apiVersion = "apiextensions.crossplane.io/v1"
		delete(more, "scope")
	}
	users, _ := more["names"].(map[string]any)
	if claimed {
		users = map[string]any{"kind": u.GetName(), "plural": plural(u.GetName())}
		more["claimNames"] = users
	}
	with(users, spec["names"])
	u.SetName(fmt.Sprintf("%s.%s.example.org", plural(kind), s.Name))

	return object(apiVersion, "CompositeResourceDefinition", u, more, spec["with"])
}

// object returns an object with the metadata of another, and a spec of two parts.
func object(apiVersion, kind string, of *unstructured.Unstructured, spec map[string]any, more any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": of.Object["metadata"], "spec": with(spec, more)}}
}

// with returns a map with the fields of another, if that is one, too.
func with(m map[string]any, more any) map[string]any {
	fields, _ := more.(map[string]any)
	maps.Copy(m, fields)

	return m
}

func xrKind(kind string, claimed bool) string {
	if claimed {
		return "X" + kind
	}

	return kind
}

func plural(kind string) string { return strings.ToLower(kind) + "s" }
