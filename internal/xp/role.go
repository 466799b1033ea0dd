package xp

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsComposite reports whether u is an XR: by Crossplane's finalizer, or by its fields if it was
// never reconciled. It asks no XRD, since a restore can start before there is one.
func IsComposite(u *unstructured.Unstructured) bool {
	if hasFinalizer(u, FinalizerComposite) || hasV2Schema(u) {
		return true
	}

	return (Has(u.Object, "spec", "resourceRefs") || Has(u.Object, "spec", "claimRef")) && selectsComposition(u, "spec")
}

// IsClaim reports whether u is a claim, by the same means as IsComposite.
func IsClaim(u *unstructured.Unstructured) bool {
	if u.GetNamespace() == "" {
		return false
	}
	if hasFinalizer(u, FinalizerClaim) {
		return true
	}
	_, bound := refAt(u, "spec", "resourceRef")

	return bound && selectsComposition(u, "spec") && !IsComposite(u)
}

// Categories of CRDs: Crossplane gives them to the kinds of XRDs, providers to the kinds of MRs.
const (
	CategoryClaim     = "claim"
	CategoryComposite = "composite"
	CategoryManaged   = "managed"
)

// AreReconciled reports whether the categories of a kind are those of claims, XRs or MRs.
func AreReconciled(categories []string) bool {
	return slices.ContainsFunc(categories, func(c string) bool { return c == CategoryClaim || c == CategoryComposite || c == CategoryManaged })
}

// IsManaged reports whether u is an MR. An object that also looks like an XR or a claim is none: a
// user can write any finalizer, and a provider has no kind in common with an XRD.
func IsManaged(u *unstructured.Unstructured) bool {
	managed := hasFinalizer(u, FinalizerManaged) || Has(u.Object, "spec", "forProvider") && HasAnnotation(u, AnnotationExternalName)

	return managed && !IsComposite(u) && !IsClaim(u)
}

// IsUntouched reports whether u looks like an MR that no provider has begun to reconcile.
func IsUntouched(u *unstructured.Unstructured) bool {
	group := u.GroupVersionKind().Group

	return Has(u.Object, "spec", "forProvider") && IsCustomGroup(group) && !IsCrossplaneGroup(group) && !IsManaged(u) && !IsComposite(u) && !IsClaim(u)
}

// Publishes reports whether u is an MR that publishes connection details in a Secret.
func Publishes(u *unstructured.Unstructured) bool {
	_, ok := SecretRef(u)

	return ok && IsManaged(u)
}

// IsComposed reports whether u claims to be a composed resource. Its controller reference and the
// resourceRefs of that XR together are the proof.
func IsComposed(u *unstructured.Unstructured) bool {
	return Label(u, LabelComposite) != "" && (HasAnnotation(u, AnnotationResourceName) || metav1.GetControllerOfNoCopy(u) != nil)
}

// IsConnectionSecret reports whether u is a Secret of the type in which Crossplane and providers
// publish connection details.
func IsConnectionSecret(u *unstructured.Unstructured) bool {
	return isCore(u, "Secret") && Get[string](u.Object, "type") == SecretTypeConnection
}

// IsRevision reports whether u is a CompositionRevision.
func IsRevision(u *unstructured.Unstructured) bool {
	return u.GetKind() == "CompositionRevision" && u.GroupVersionKind().Group == GroupAPIExtensions
}

// IsUsage reports whether u is a Usage or ClusterUsage, which protects other objects from deletion.
func IsUsage(u *unstructured.Unstructured) bool {
	return slices.Contains(UsageKinds(), u.GroupVersionKind().GroupKind())
}

// IsProviderConfig reports whether u is a ProviderConfig or ClusterProviderConfig. Many MRs share
// one.
func IsProviderConfig(u *unstructured.Unstructured) bool {
	return IsProviderConfigKind(u.GetKind()) && IsCustomGroup(u.GroupVersionKind().Group)
}

// IsProviderConfigKind reports whether providers use this kind for authentication.
func IsProviderConfigKind(kind string) bool {
	return kind == "ProviderConfig" || kind == "ClusterProviderConfig"
}

// IsSchedule reports whether u is a CronOperation or WatchOperation, which starts Operations.
func IsSchedule(u *unstructured.Unstructured) bool {
	return slices.Contains(ScheduleKinds(), u.GroupVersionKind().GroupKind())
}

// ScheduleKinds returns the kinds for which IsSchedule is true.
func ScheduleKinds() []schema.GroupKind {
	return []schema.GroupKind{{Group: GroupOperations, Kind: "CronOperation"}, {Group: GroupOperations, Kind: "WatchOperation"}}
}

// IsPackageRevision reports whether u is a revision of a Provider, Function or Configuration.
func IsPackageRevision(u *unstructured.Unstructured) bool {
	return isPackageRevisionKind(u.GroupVersionKind())
}

func isPackageRevisionKind(gvk schema.GroupVersionKind) bool {
	return gvk.Group == GroupPackage && strings.HasSuffix(gvk.Kind, "Revision")
}

// IsPackage reports whether u is a Provider, Function or Configuration.
func IsPackage(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().Group == GroupPackage && slices.Contains([]string{"Provider", "Function", "Configuration"}, u.GetKind())
}

// IsPlatform reports whether u is an XRD, Composition or CompositionRevision, which all XRs of a
// kind share.
func IsPlatform(u *unstructured.Unstructured) bool { return IsPlatformKind(u.GroupVersionKind()) }

// IsPlatformKind reports whether a kind is that of XRDs, Compositions or CompositionRevisions.
func IsPlatformKind(gvk schema.GroupVersionKind) bool {
	return slices.Contains([]schema.GroupKind{KindDefinition.GroupKind(), KindComposition.GroupKind(), KindRevision.GroupKind()}, gvk.GroupKind())
}

// IsCrossplaneGroup reports whether an API group is one of Crossplane's own, not a provider's or an
// XRD's.
func IsCrossplaneGroup(group string) bool {
	return slices.Contains([]string{GroupAPIExtensions, GroupPackage, GroupOperations, GroupProtection}, group)
}

func isCore(u *unstructured.Unstructured, kind string) bool {
	return u.GetAPIVersion() == "v1" && u.GetKind() == kind
}

// hasV2Schema reports whether u has the schema of Crossplane v2. A spec.crossplane alone is no
// proof. The author of any CRD or v1 XRD can have such a field: in Upbound's ControlPlane it is the
// version of Crossplane to run.
func hasV2Schema(u *unstructured.Unstructured) bool {
	return Has(u.Object, "spec", "crossplane", "resourceRefs") || selectsComposition(u, "spec", "crossplane")
}

// NeedsV2 reports whether Crossplane v1 does not know u: an XR or XRD with v2's schema, or a kind
// of a group that came with v2.
func NeedsV2(u *unstructured.Unstructured) bool {
	switch group := u.GroupVersionKind().Group; {
	case group == GroupProtection, group == GroupOperations:
		return true
	case IsDefinition(u):
		return ScopeOf(u) != ScopeLegacy
	default:
		return !IsCrossplaneGroup(group) && hasV2Schema(u)
	}
}

// IsNative reports whether u is a Composition or CompositionRevision without a pipeline, which only
// Crossplane v1 supports.
func IsNative(u *unstructured.Unstructured) bool {
	mode := Get[string](u.Object, "spec", "mode")

	return IsPlatform(u) && !IsDefinition(u) && (mode == "Resources" || mode == "" && Has(u.Object, "spec", "resources"))
}

// selectsComposition reports whether the fields at a path choose a Composition or how to follow it.
func selectsComposition(u *unstructured.Unstructured, path ...string) bool {
	fields := Get[map[string]any](u.Object, path...)
	for _, name := range [...]string{fieldComposition, fieldRevision, "compositionSelector", "compositionUpdatePolicy"} {
		if _, found := fields[name]; found {
			return true
		}
	}

	return false
}
