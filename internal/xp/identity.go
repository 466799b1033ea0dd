package xp

import (
	"cmp"
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
	case Annotation(mr, AnnotationExternalName) != "", HasFlag(mr, FieldUnnamed):
		return Known
	case id:
		return Recoverable
	case mayExist(mr):
		return Unknown
	default:
		return NeverCreated
	}
}

// mayExist reports whether an MR without a name may have an external resource.
func mayExist(mr *unstructured.Unstructured) bool {
	if HasAnnotation(mr, AnnotationCreateSucceeded) || isObserved(mr) || IsTrue(mr, ConditionReady) {
		return true
	}
	// A provider announces a create before it tries. If the create failed and none ever succeeded,
	// the provider tries again, wherever the MR is.
	if HasAnnotation(mr, AnnotationCreateFailed) {
		return false
	}

	return HasAnnotation(mr, AnnotationCreatePending) || hasFinalizer(mr, FinalizerManaged)
}

// isObserved reports whether the provider of an MR has written anything about its external resource.
func isObserved(mr *unstructured.Unstructured) bool {
	return len(Get[map[string]any](mr.Object, "status", "atProvider")) > 0
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
	id := Get[string](mr.Object, "status", "atProvider", "id")

	return id, id != ""
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
	return Has(mr.Object, "spec", "managementPolicies")
}

// OnlyObserves reports whether the provider of an MR changes no external resource. Providers read the
// policies as a set, so Observe can be there more than once (crossplane-runtime
// pkg/reconciler/managed/policies.go).
func OnlyObserves(mr *unstructured.Unstructured) bool {
	policies, _ := ManagementPolicies(mr)

	return slices.Equal(slices.Compact(policies), []string{PolicyObserve})
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
	orphans := Get[string](mr.Object, "spec", "deletionPolicy") == "Orphan"

	return slices.Contains(policies, "Delete") || (!ok || slices.Contains(policies, PolicyAll)) && !orphans
}

// GroupFamily returns the API group of an MR without the part that marks namespaced MRs. Namespaced
// and cluster-scoped kinds of a provider manage the same external resources.
func GroupFamily(group string) string {
	return strings.Replace(group, ".m.", ".", 1)
}

// A Managing is an MR as a manager of an external resource.
type Managing struct {
	Ref

	// Account is the ProviderConfig of the MR, without an API version. Two MRs of one kind with the
	// same Account use the same ProviderConfig.
	Account Ref
	// Observes is true if the provider changes nothing.
	Observes bool
}

// ManagingOf reads an MR.
func ManagingOf(mr *unstructured.Unstructured) Managing {
	return Managing{Ref: RefTo(mr), Account: AccountOf(mr), Observes: OnlyObserves(mr)}
}

// AccountOf returns the ProviderConfig that an MR names, without an API version, since an MR names
// none. A ProviderConfig in a namespace differs from one of the same name elsewhere. A namespaced
// MR that names no kind means the cluster-scoped one (crossplane-runtime apis/common).
func AccountOf(mr *unstructured.Unstructured) Ref {
	kind := Get[string](mr.Object, "spec", "providerConfigRef", "kind")
	r := Ref{Kind: cmp.Or(kind, "ProviderConfig"), Name: Get[string](mr.Object, "spec", "providerConfigRef", "name")}
	switch {
	case mr.GetNamespace() == "":
	case kind == "":
		r.Kind = "ClusterProviderConfig"
	case kind == "ProviderConfig":
		r.Namespace = mr.GetNamespace()
	}

	return r
}

// IsUpjet reports whether upjet reconciles an MR. Every kind of upjet has spec.initProvider, which
// its providers write even if it is empty.
//
// Upjet does not look an external-name up in the cloud. It reads its Terraform state of the
// external resource. A provider that has just started, or that sees an MR under a new UID, builds
// this state from the external-name and status.atProvider (upjet pkg/controller, Connect of
// external_tfpluginsdk.go and external_tfpluginfw.go). Without that status, or if the ID that it
// builds is not the one that Terraform had, it can find nothing under a correct external-name, and
// creates a second resource (upjet issue 561).
func IsUpjet(mr *unstructured.Unstructured) bool {
	return Has(mr.Object, "spec", "initProvider") && IsManaged(mr)
}

// IsNeverObserved reports whether an MR of upjet, which creates what it does not find, shows no
// sign that the external-name belongs to an external resource. Upjet fills status.atProvider when
// it has observed the resource. Nothing else is a sign: upjet notes that an asynchronous create
// succeeded when the create begins (upjet pkg/controller/external_async_tfpluginsdk.go, Create).
func IsNeverObserved(mr *unstructured.Unstructured) bool {
	return IsUpjet(mr) && !isObserved(mr) && !IsPaused(mr) && MayCreate(mr) && IdentityOf(mr) == Known
}

// IsOperationOngoing reports whether a provider of upjet runs, or may run, an asynchronous operation
// on an MR whose outcome is not in the MR yet. Its condition AsyncOperation says so in the versions
// that fork Terraform. In the others only a create shows: the provider has noted that the create
// began, has filled no status.atProvider since, and its condition LastAsyncOperation is older (upjet
// pkg/resource/conditions.go, pkg/controller/external_async_tfpluginsdk.go and api.go). An update
// shows in neither.
func IsOperationOngoing(mr *unstructured.Unstructured) bool {
	if c, _ := ConditionOf(mr, "AsyncOperation"); c.Status == "True" && c.Reason == "Ongoing" {
		return true
	}
	begun, err := time.Parse(time.RFC3339, Annotation(mr, AnnotationCreateSucceeded))
	if err != nil || isObserved(mr) || !IsUpjet(mr) || !MayCreate(mr) {
		return false
	}
	c, _ := ConditionOf(mr, "LastAsyncOperation")

	return c.Since.Before(begun)
}
