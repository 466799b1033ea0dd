package exchange

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const orphan = "Orphan"

// Deletes reports whether a provider deletes the external resource of an MR that is deleted
// (crossplane-runtime pkg/reconciler/managed/policies.go, ShouldDelete).
func Deletes(mr *unstructured.Unstructured) bool {
	policies, ok := xp.ManagementPolicies(mr)
	all := !ok || slices.Equal(policies, []string{xp.PolicyAll})
	deletion, _, _ := unstructured.NestedString(mr.Object, "spec", "deletionPolicy")
	if all {
		return deletion != orphan
	}

	return slices.Contains(policies, "Delete") || slices.Contains(policies, xp.PolicyAll)
}

// Keep returns the patch that keeps an MR's external resource when the MR is deleted; ok is false
// if its kind has no field for that. It sets the policy Observe, which all providers support. Not
// all support every policy but Delete.
func Keep(mr *unstructured.Unstructured) (patch map[string]any, ok bool) {
	spec := map[string]any{}
	if xp.HasPolicies(mr) {
		spec["managementPolicies"] = []any{xp.PolicyObserve}
	}
	if _, has, _ := unstructured.NestedFieldNoCopy(mr.Object, "spec", "deletionPolicy"); has {
		spec["deletionPolicy"] = orphan
	}

	return map[string]any{"spec": spec}, len(spec) > 0
}
