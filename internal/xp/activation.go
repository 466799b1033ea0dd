package xp

import (
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds that decide whether Crossplane v2 serves the kind of an MR. A provider brings a
// ManagedResourceDefinition (MRD) for each kind. An active MRD makes the CRD. If the provider has
// the capability safe-start, its MRDs are inactive until a policy or a user activates them.
var (
	KindManagedDefinition = schema.GroupVersionKind{Group: GroupAPIExtensions, Version: "v1alpha1", Kind: "ManagedResourceDefinition"}
	KindActivationPolicy  = schema.GroupVersionKind{Group: GroupAPIExtensions, Version: "v1alpha1", Kind: "ManagedResourceActivationPolicy"}

	ResourceManagedDefinition = schema.GroupResource{Group: GroupAPIExtensions, Resource: "managedresourcedefinitions"}
	ResourceActivationPolicy  = schema.GroupResource{Group: GroupAPIExtensions, Resource: "managedresourceactivationpolicies"}
)

// ReasonAwaitingActivation is the reason on a provider revision that has no Deployment since none
// of its MRDs is active (Crossplane v2.4 and later).
const ReasonAwaitingActivation = "AwaitingActivation"

// IsActivationPolicy reports whether u is a ManagedResourceActivationPolicy.
func IsActivationPolicy(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == KindActivationPolicy.GroupKind()
}

// ManagedKind returns the kind that an MRD defines.
func ManagedKind(mrd *unstructured.Unstructured) schema.GroupKind {
	group, _, _ := unstructured.NestedString(mrd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(mrd.Object, "spec", "names", "kind")

	return schema.GroupKind{Group: group, Kind: kind}
}

// IsInactive reports whether an MRD keeps its kind from being served. The default state is
// inactive.
func IsInactive(mrd *unstructured.Unstructured) bool {
	state, _, _ := unstructured.NestedString(mrd.Object, "spec", "state")

	return state != "Active"
}

// Activates reports whether a policy activates the MRD of a name. It matches as Crossplane does
// (crossplane apis/apiextensions/v1alpha1, ActivationPolicy).
func Activates(policy *unstructured.Unstructured, name string) bool {
	field, _, _ := unstructured.NestedFieldNoCopy(policy.Object, "spec", "activate")
	patterns, _ := field.([]any)

	return slices.ContainsFunc(patterns, func(p any) bool {
		pattern, _ := p.(string)
		ok, err := path.Match(pattern, name)

		return ok && err == nil
	})
}

// HowToActivate returns, as part of a message, how a user activates the inactive MRD of a name.
func HowToActivate(name string) string {
	patch := NewCommand("kubectl", "patch", "managedresourcedefinition").Word("--type=merge").With("-p", `{"spec":{"state":"Active"}}`).On(name)

	return `activate it: add it to spec.activate of a ManagedResourceActivationPolicy, or run "` + patch.String() + `", which can't be undone`
}
