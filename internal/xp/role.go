package xp

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsComposite reports whether u is an XR: by the finalizer that Crossplane gives to each, or by its
// fields if it was never reconciled. There may be no XRD to ask: a restore can start before there
// is one.
func IsComposite(u *unstructured.Unstructured) bool {
	if hasFinalizer(u, FinalizerComposite) {
		return true
	}
	if hasV2Schema(u) {
		return true
	}
	_, refs, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "resourceRefs")
	_, claim, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "claimRef")

	return (refs || claim) && selectsComposition(u)
}

// IsClaim reports whether u is a claim, as IsComposite does for XRs.
func IsClaim(u *unstructured.Unstructured) bool {
	if u.GetNamespace() == "" {
		return false
	}
	if hasFinalizer(u, FinalizerClaim) {
		return true
	}
	_, bound := refAt(u, "spec", "resourceRef")

	return bound && selectsComposition(u) && !IsComposite(u)
}

// Categories that Crossplane gives to the kinds of XRDs, and providers to those of MRs.
const (
	CategoryClaim     = "claim"
	CategoryComposite = "composite"
	CategoryManaged   = "managed"
)

// AreReconciled reports whether a kind of the categories is one of claims, XRs or MRs.
func AreReconciled(categories []string) bool {
	return slices.ContainsFunc(categories, func(c string) bool { return c == CategoryClaim || c == CategoryComposite || c == CategoryManaged })
}

// IsManaged reports whether u is an MR, which a provider reconciles with something outside of the
// cluster.
func IsManaged(u *unstructured.Unstructured) bool {
	if hasFinalizer(u, FinalizerManaged) {
		return true
	}
	_, spec, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "forProvider")

	return spec && HasAnnotation(u, AnnotationExternalName)
}

// Publishes reports whether u is an MR that publishes connection details in a Secret.
func Publishes(u *unstructured.Unstructured) bool {
	_, ok := SecretRef(u)

	return ok && IsManaged(u) && !IsComposite(u) && !IsClaim(u)
}

// IsComposed reports whether u says that an XR composed it. Only its controller reference and that
// XR's resourceRefs together prove it.
func IsComposed(u *unstructured.Unstructured) bool {
	return Label(u, LabelComposite) != "" && (HasAnnotation(u, AnnotationResourceName) || metav1.GetControllerOfNoCopy(u) != nil)
}

// IsConnectionSecret reports whether u is a Secret that Crossplane or a provider published
// connection details in.
func IsConnectionSecret(u *unstructured.Unstructured) bool {
	t, _, _ := unstructured.NestedString(u.Object, "type")

	return isCore(u, "Secret") && t == SecretTypeConnection
}

// IsRevision reports whether u is a CompositionRevision.
func IsRevision(u *unstructured.Unstructured) bool {
	return u.GetKind() == "CompositionRevision" && u.GroupVersionKind().Group == GroupAPIExtensions
}

// IsUsage reports whether u is a Usage or ClusterUsage, which protects what it uses from deletion.
func IsUsage(u *unstructured.Unstructured) bool {
	switch group := u.GroupVersionKind().Group; u.GetKind() {
	case "Usage":
		return group == GroupAPIExtensions || group == GroupProtection
	case "ClusterUsage":
		return group == GroupProtection
	default:
		return false
	}
}

// IsProviderConfig reports whether u says how a provider authenticates, or where it or Crossplane
// publishes, which many MRs share.
func IsProviderConfig(u *unstructured.Unstructured) bool {
	return IsProviderConfigKind(u.GetKind()) && IsCustomGroup(u.GroupVersionKind().Group)
}

// IsProviderConfigKind reports whether providers name what they authenticate with, or publish with,
// like that.
func IsProviderConfigKind(kind string) bool {
	return kind == "ProviderConfig" || kind == "ClusterProviderConfig" || kind == KindStoreConfig
}

// IsSchedule reports whether u is a CronOperation or WatchOperation, which starts Operations by
// itself.
func IsSchedule(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().Group == GroupOperations && (u.GetKind() == "CronOperation" || u.GetKind() == "WatchOperation")
}

// ScheduleKinds are the kinds of which IsSchedule knows objects.
func ScheduleKinds() []schema.GroupKind {
	return []schema.GroupKind{{Group: GroupOperations, Kind: "CronOperation"}, {Group: GroupOperations, Kind: "WatchOperation"}}
}

// IsPackageRevision reports whether u is a revision of a package: of a provider, a function or a
// configuration.
func IsPackageRevision(u *unstructured.Unstructured) bool {
	return isPackageRevisionKind(u.GroupVersionKind())
}

func isPackageRevisionKind(gvk schema.GroupVersionKind) bool {
	return gvk.Group == GroupPackage && strings.HasSuffix(gvk.Kind, "Revision")
}

// IsPackage reports whether u is a package: a provider, a function or a configuration.
func IsPackage(u *unstructured.Unstructured) bool {
	switch u.GetKind() {
	case "Provider", "Function", "Configuration":
		return u.GroupVersionKind().Group == GroupPackage
	default:
		return false
	}
}

// IsPlatform reports whether u is an XRD, a Composition or a CompositionRevision, which all XRs of
// a kind share.
func IsPlatform(u *unstructured.Unstructured) bool { return IsPlatformKind(u.GroupVersionKind()) }

// IsPlatformKind reports whether XRDs, Compositions or CompositionRevisions are of a kind.
func IsPlatformKind(gvk schema.GroupVersionKind) bool {
	switch gvk.Kind {
	case "CompositeResourceDefinition", "Composition", "CompositionRevision":
		return gvk.Group == GroupAPIExtensions
	default:
		return false
	}
}

// IsCrossplaneGroup reports whether a group is one of Crossplane's own, rather than a provider's or
// of people's XRDs.
func IsCrossplaneGroup(group string) bool {
	switch group {
	case GroupAPIExtensions, GroupPackage, GroupOperations, GroupProtection:
		return true
	default:
		return false
	}
}

func isCore(u *unstructured.Unstructured, kind string) bool {
	return u.GetAPIVersion() == "v1" && u.GetKind() == kind
}

// hasV2Schema reports whether u has the schema of Crossplane v2. A spec.crossplane alone proves
// nothing: the author of any CRD can have one (that of Upbound's ControlPlane says which version of
// Crossplane to run), and the author of a v1 XRD too.
func hasV2Schema(u *unstructured.Unstructured) bool {
	_, refs, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "crossplane", "resourceRefs")

	return refs || selectsComposition(u, "crossplane")
}

// NeedsV2 reports whether u is something that Crossplane v1 does not know: an XR or XRD of v2's
// schema, or a kind of a group that came with v2.
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

// IsNative reports whether u is a Composition or a revision of one that composes without a
// pipeline, which Crossplane does only up to v1.
func IsNative(u *unstructured.Unstructured) bool {
	if kind := u.GetKind(); !IsPlatform(u) || kind != "Composition" && kind != "CompositionRevision" {
		return false
	}
	mode, _, _ := unstructured.NestedString(u.Object, "spec", "mode")
	_, resources, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "resources")

	return mode == "Resources" || mode == "" && resources
}

func selectsComposition(u *unstructured.Unstructured, under ...string) bool {
	fields, _ := u.Object["spec"].(map[string]any)
	for _, name := range under {
		fields, _ = fields[name].(map[string]any)
	}
	for _, name := range []string{"compositionRef", "compositionSelector", "compositionRevisionRef", "compositionUpdatePolicy"} {
		if _, found := fields[name]; found {
			return true
		}
	}

	return false
}
