package e2e

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// mrKind returns a kind of the cloud's provider that XRs of the version compose.
func (s *suite) mrKind(kind string) schema.GroupVersionKind {
	group := "cloud.m.example.org"
	if s.version == stack.V1 {
		group = "cloud.example.org"
	}

	return schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: kind}
}

// leftover returns a Usage of an XR's bucket by its network, as Crossplane 1.18.0 left one when the
// Composition dropped it: it has all references to the XR, but the XR does not list it.
func (s *suite) leftover(xr *unstructured.Unstructured, scene, suffix string) *unstructured.Unstructured {
	uses := map[string]any{}
	for _, path := range [][]string{{"spec", "resourceRefs"}, {"spec", "crossplane", "resourceRefs"}} {
		refs, _, _ := unstructured.NestedSlice(xr.Object, path...)
		for _, entry := range refs {
			m, _ := entry.(map[string]any)
			field, ok := map[any]string{"Bucket": "of", "Network": "by"}[m["kind"]]
			if !ok {
				continue
			}
			uses[field] = map[string]any{"apiVersion": m["apiVersion"], "kind": m["kind"], "resourceRef": map[string]any{"name": m["name"]}}
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": uses}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "protection.crossplane.io", Version: "v1beta1", Kind: "Usage"})
	if s.version == stack.V1 {
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1beta1", Kind: "Usage"})
	}
	u.SetName(xr.GetName() + "-" + suffix)
	u.SetNamespace(xr.GetNamespace())
	u.SetLabels(map[string]string{"crossplane.io/composite": xr.GetName(), "scene": scene})
	u.SetAnnotations(map[string]string{"crossplane.io/composition-resource-name": "usage"})

	return u
}
