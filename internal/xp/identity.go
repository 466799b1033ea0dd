package xp

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An Identity is how well it is known which external resource an MR manages.
type Identity string

// Identities.
const (
	// Known MRs have an external-name, or are of a kind that never has one, and no create is
	// pending.
	Known Identity = "named"
	// CreatePending MRs were being created. Only the cloud knows whether there is an external
	// resource, and which.
	CreatePending Identity = "create in flight"
	// Recoverable MRs have no external-name, but status.atProvider has an id. For some kinds this
	// id is the external-name, for others it is not.
	Recoverable Identity = "recoverable"
	// Unknown MRs have neither, and may have an external resource.
	Unknown Identity = "unknown"
	// NeverCreated MRs have never had an external resource.
	NeverCreated Identity = "unborn"
)

// IdentityOf classifies an MR, live or from a backup. A provider that does not derive
// external-names from names of objects writes them after the create. An asynchronous provider
// writes them by late initialisation only, so never if the managementPolicies lack that (upjet
// issue 531). An MR that may have been created is Unknown: if it were taken for NeverCreated by
// mistake, its external resource would be created a second time.
func IdentityOf(mr *unstructured.Unstructured) Identity {
	switch _, id := ProviderID(mr); {
	case createIncomplete(mr):
		return CreatePending
	case Annotation(mr, AnnotationExternalName) != "", isUnnamed(mr):
		return Known
	case id:
		return Recoverable
	case mayExist(mr):
		return Unknown
	default:
		return NeverCreated
	}
}

// SetUnnamed notes on the backup's copy of an MR that it needs no external-name.
func SetUnnamed(mr *unstructured.Unstructured) {
	if metadata, ok := mr.Object["metadata"].(map[string]any); ok {
		metadata[FieldUnnamed] = true
	}
}

// isUnnamed reads the note of SetUnnamed.
func isUnnamed(mr *unstructured.Unstructured) bool {
	unnamed, _, _ := unstructured.NestedBool(mr.Object, "metadata", FieldUnnamed)

	return unnamed
}

// SetDoubted notes on the backup's copy of an MR that its external-name must not be derived from
// the id of its provider.
func SetDoubted(mr *unstructured.Unstructured) {
	if metadata, ok := mr.Object["metadata"].(map[string]any); ok {
		metadata[FieldDoubted] = true
	}
}

// IsDoubted reads the note of SetDoubted.
func IsDoubted(mr *unstructured.Unstructured) bool {
	doubted, _, _ := unstructured.NestedBool(mr.Object, "metadata", FieldDoubted)

	return doubted
}

// mayExist reports whether an MR without a name may have an external resource.
func mayExist(mr *unstructured.Unstructured) bool {
	v, _, _ := unstructured.NestedFieldNoCopy(mr.Object, "status", "atProvider")
	atProvider, _ := v.(map[string]any)
	ready, _ := ConditionOf(mr, ConditionReady)
	if HasAnnotation(mr, AnnotationCreateSucceeded) || len(atProvider) > 0 || ready.Status == "True" {
		return true
	}
	// A provider announces a create before it tries. If the create failed and none ever succeeded,
	// the provider tries again, wherever the MR is.
	if HasAnnotation(mr, AnnotationCreateFailed) {
		return false
	}

	return HasAnnotation(mr, AnnotationCreatePending) || hasFinalizer(mr, FinalizerManaged)
}

// createIncomplete reports whether the newest note of an MR about its creation is that a create is
// about to happen (crossplane-runtime pkg/meta, ExternalCreateIncomplete), and nothing proves that
// the provider has found an external resource since.
//
// A provider that stops between the create and its next note leaves an MR like this. Most providers
// then refuse to go on and set Synced to False. A provider with deterministic external-names, such
// as provider-kubernetes, goes on, observes, and never writes the note (crossplane-runtime
// pkg/reconciler/managed/reconciler.go, WithDeterministicExternalName).
//
// So Synced is the proof, if it has turned True after the announcement: a provider that announces a
// create writes status only after the create has ended and its result is noted. These prove
// nothing:
//   - Synced=True alone: it stays True while a provider recreates a resource that a user deleted
//     outside.
//   - observedGeneration: an annotation does not change the generation.
//   - The same second: times have a resolution of one second.
func createIncomplete(mr *unstructured.Unstructured) bool {
	timeOf := func(annotation string) time.Time {
		t, _ := time.Parse(time.RFC3339, Annotation(mr, annotation))

		return t
	}
	pending := timeOf(AnnotationCreatePending)

	if pending.IsZero() || !pending.After(timeOf(AnnotationCreateSucceeded)) || !pending.After(timeOf(AnnotationCreateFailed)) {
		return false
	}
	synced, _ := ConditionOf(mr, ConditionSynced)

	return synced.Status != "True" || !synced.Since.After(pending)
}

// ProviderID returns status.atProvider.id, the id of the external resource. For some kinds it is
// not the external-name. It returns false if there is none.
func ProviderID(mr *unstructured.Unstructured) (string, bool) {
	id, _, _ := unstructured.NestedString(mr.Object, "status", "atProvider", "id")

	return id, id != ""
}

// SetExternalName sets the external-name of an MR.
func SetExternalName(mr *unstructured.Unstructured, name string) {
	Annotate(mr, AnnotationExternalName, name)
}

// ManagementPolicies returns what the provider of an MR may do. It returns false if the MR has
// none, which means everything.
func ManagementPolicies(mr *unstructured.Unstructured) (policies []string, ok bool) {
	policies, ok, err := unstructured.NestedStringSlice(mr.Object, "spec", "managementPolicies")

	return policies, ok && err == nil
}

// HasPolicies reports whether the kind of a stored MR has managementPolicies. The API server
// defaults them to ["*"] (crossplane-runtime apis/common/v1, ResourceSpec), and drops them if the
// CRD has none.
func HasPolicies(mr *unstructured.Unstructured) bool {
	_, ok, _ := unstructured.NestedFieldNoCopy(mr.Object, "spec", "managementPolicies")

	return ok
}

// OnlyObserves reports whether the provider of an MR changes no external resource.
func OnlyObserves(mr *unstructured.Unstructured) bool {
	policies, _ := ManagementPolicies(mr)

	return slices.Equal(policies, []string{PolicyObserve})
}

// MayWrite reports whether the provider of an MR does more than observe. With an empty list of
// policies it does nothing.
func MayWrite(mr *unstructured.Unstructured) bool {
	policies, ok := ManagementPolicies(mr)

	return (!ok || len(policies) > 0) && !OnlyObserves(mr)
}

// MayCreate reports whether the provider of an MR creates an external resource if it finds none.
func MayCreate(mr *unstructured.Unstructured) bool {
	policies, ok := ManagementPolicies(mr)

	return !ok || slices.Contains(policies, PolicyAll) || slices.Contains(policies, "Create")
}

// MayDelete reports whether the provider of an MR deletes the external resource with the MR. Delete
// in managementPolicies counts more than deletionPolicy (crossplane-runtime
// pkg/reconciler/managed/policies.go).
func MayDelete(mr *unstructured.Unstructured) bool {
	policies, ok := ManagementPolicies(mr)
	policy, _, _ := unstructured.NestedString(mr.Object, "spec", "deletionPolicy")

	return slices.Contains(policies, "Delete") || (!ok || slices.Contains(policies, PolicyAll)) && policy != "Orphan"
}

// GroupFamily returns the API group of an MR without the part that marks namespaced MRs. Namespaced
// and cluster-scoped kinds of a provider manage the same external resources.
func GroupFamily(group string) string {
	return strings.Replace(group, ".m.", ".", 1)
}
