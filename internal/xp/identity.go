package xp

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An Identity says how well it is known which external resource an MR manages.
type Identity string

// Identities.
const (
	// Known MRs have an external-name, or are of a kind that never has one, and no create is in
	// flight.
	Known Identity = "named"
	// CreatePending MRs were being created: whether there is an external resource, and which, only
	// the cloud knows.
	CreatePending Identity = "create in flight"
	// Recoverable MRs have no external-name, but their provider says what the external resource is
	// called there. For some kinds that is the external-name, for others not.
	Recoverable Identity = "recoverable"
	// Unknown MRs have neither, and there may be an external resource.
	Unknown Identity = "unknown"
	// NeverCreated MRs never had an external resource.
	NeverCreated Identity = "unborn"
)

// IdentityOf classes an MR as it is, or was when it was backed up. A provider whose external-names
// are not the names of the objects writes them after the create. An asynchronous one does so by
// late initialisation only, and not at all if its managementPolicies don't have that (upjet issue
// 531). What is not surely unborn is Unknown: one that is taken for unborn by mistake is created a
// second time.
func IdentityOf(mr *unstructured.Unstructured) Identity {
	switch _, id := ProviderID(mr); {
	case createIncomplete(mr):
		return CreatePending
	case Annotation(mr, AnnotationExternalName) != "", isUnnamed(mr):
		return Known
	case id:
		return Recoverable
	case wasCreated(mr):
		return Unknown
	default:
		return NeverCreated
	}
}

// SetUnnamed writes onto the backup's copy of an MR that it needs no external-name, as
// SetRestoreFirst does.
func SetUnnamed(mr *unstructured.Unstructured) {
	if metadata, ok := mr.Object["metadata"].(map[string]any); ok {
		metadata[FieldUnnamed] = true
	}
}

// isUnnamed reads what SetUnnamed wrote.
func isUnnamed(mr *unstructured.Unstructured) bool {
	unnamed, _, _ := unstructured.NestedBool(mr.Object, "metadata", FieldUnnamed)

	return unnamed
}

// SetDoubted writes onto the backup's copy of an MR that no external-name is to be made of what its
// provider calls it, as SetRestoreFirst does.
func SetDoubted(mr *unstructured.Unstructured) {
	if metadata, ok := mr.Object["metadata"].(map[string]any); ok {
		metadata[FieldDoubted] = true
	}
}

// IsDoubted reads what SetDoubted wrote.
func IsDoubted(mr *unstructured.Unstructured) bool {
	doubted, _, _ := unstructured.NestedBool(mr.Object, "metadata", FieldDoubted)

	return doubted
}

// wasCreated reports whether there may be an external resource of an MR without a name.
func wasCreated(mr *unstructured.Unstructured) bool {
	v, _, _ := unstructured.NestedFieldNoCopy(mr.Object, "status", "atProvider")
	atProvider, _ := v.(map[string]any)
	ready, _ := ConditionOf(mr, ConditionReady)
	if HasAnnotation(mr, AnnotationCreateSucceeded) || len(atProvider) > 0 || ready.Status == "True" {
		return true
	}
	// A create is announced before it is tried. If it failed, and never succeeded, then the
	// provider tries it again wherever the MR is.
	if HasAnnotation(mr, AnnotationCreateFailed) {
		return false
	}

	return HasAnnotation(mr, AnnotationCreatePending) || hasFinalizer(mr, FinalizerManaged)
}

// createIncomplete reports whether the newest that an MR says of its creation is that it is about
// to happen, as providers do (crossplane-runtime pkg/meta, ExternalCreateIncomplete), and nothing
// proves that its provider has found an external resource since.
//
// A provider that is stopped between the create and its note of that leaves an MR like this. Most
// refuse to go on, and make it Synced=False. One whose external-names are deterministic, such as
// provider-kubernetes, goes on, observes, and never writes the note (crossplane-runtime
// pkg/reconciler/managed/reconciler.go, WithDeterministicExternalName). So Synced proves it if it
// has turned True after the announcement: who has announced a create writes status only once that
// has ended, and has noted how before. That Synced is True is not enough: it stays so from the time
// before while what somebody has deleted outside is created again. Nor is its observedGeneration:
// an annotation makes no new generation. Times are of seconds, so the same one proves nothing.
func createIncomplete(mr *unstructured.Unstructured) bool {
	at := func(annotation string) time.Time {
		t, _ := time.Parse(time.RFC3339, Annotation(mr, annotation))

		return t
	}
	pending := at(AnnotationCreatePending)

	if pending.IsZero() || !pending.After(at(AnnotationCreateSucceeded)) || !pending.After(at(AnnotationCreateFailed)) {
		return false
	}
	synced, _ := ConditionOf(mr, ConditionSynced)

	return synced.Status != "True" || !synced.Since.After(pending)
}

// ProviderID returns what an MR's provider says that the external resource is called, which is not
// the external-name for all kinds.
func ProviderID(mr *unstructured.Unstructured) (string, bool) {
	id, _, _ := unstructured.NestedString(mr.Object, "status", "atProvider", "id")

	return id, id != ""
}

// SetExternalName says which external resource an MR manages.
func SetExternalName(mr *unstructured.Unstructured, name string) {
	Annotate(mr, AnnotationExternalName, name)
}

// ManagementPolicies returns what an MR's provider may do; ok is false if it does not say, which
// means everything.
func ManagementPolicies(mr *unstructured.Unstructured) (policies []string, ok bool) {
	policies, ok, err := unstructured.NestedStringSlice(mr.Object, "spec", "managementPolicies")

	return policies, ok && err == nil
}

// HasPolicies reports whether an MR that an API server has stored is of a kind with
// managementPolicies: it gives them their default, ["*"], if nobody sets them (crossplane-runtime
// apis/common/v1, ResourceSpec), and drops them where the CRD has none.
func HasPolicies(mr *unstructured.Unstructured) bool {
	_, ok, _ := unstructured.NestedFieldNoCopy(mr.Object, "spec", "managementPolicies")

	return ok
}

// OnlyObserves reports whether an MR's provider changes nothing outside of the cluster.
func OnlyObserves(mr *unstructured.Unstructured) bool {
	policies, _ := ManagementPolicies(mr)

	return slices.Equal(policies, []string{PolicyObserve})
}

// MayWrite reports whether an MR's provider does more than to observe. Without any policy it does
// not even do that.
func MayWrite(mr *unstructured.Unstructured) bool {
	policies, ok := ManagementPolicies(mr)

	return (!ok || len(policies) > 0) && !OnlyObserves(mr)
}

// MayCreate reports whether an MR's provider creates an external resource if it finds none.
func MayCreate(mr *unstructured.Unstructured) bool {
	policies, ok := ManagementPolicies(mr)

	return !ok || slices.Contains(policies, PolicyAll) || slices.Contains(policies, "Create")
}

// GroupFamily is the API group of an MR without what tells namespaced MRs from cluster-scoped ones:
// both kinds manage the same external resources.
func GroupFamily(group string) string {
	return strings.Replace(group, ".m.", ".", 1)
}
