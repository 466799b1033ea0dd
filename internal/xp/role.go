package xp

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// IsComposite tells whether u is an XR: by the finalizer that Crossplane gives to each, or by its fields if it was never reconciled.
// There may be no XRD to ask: a restore can start before there is one.
func IsComposite(u *unstructured.Unstructured) bool {
	if slices.Contains(u.GetFinalizers(), FinalizerComposite) {
		return true
	}
	if isModern(u) {
		return true
	}
	_, refs, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "resourceRefs")
	_, claim, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "claimRef")

	return (refs || claim) && selectsComposition(u)
}

// IsClaim tells whether u is a claim, as IsComposite does for XRs.
func IsClaim(u *unstructured.Unstructured) bool {
	if u.GetNamespace() == "" {
		return false
	}
	if slices.Contains(u.GetFinalizers(), FinalizerClaim) {
		return true
	}
	_, bound := refAt(u, "spec", "resourceRef")

	return bound && selectsComposition(u) && !IsComposite(u)
}

// IsManaged tells whether u is an MR, which a provider reconciles with something outside of the cluster.
func IsManaged(u *unstructured.Unstructured) bool {
	if slices.Contains(u.GetFinalizers(), FinalizerManaged) {
		return true
	}
	_, named := u.GetAnnotations()[AnnotationExternalName]
	_, spec, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "forProvider")

	return named && spec
}

// IsComposed tells whether u says that an XR composed it. Only its controller reference and that XR's resourceRefs together prove it.
func IsComposed(u *unstructured.Unstructured) bool {
	_, name := u.GetAnnotations()[AnnotationResourceName]

	return u.GetLabels()[LabelComposite] != "" && (name || metav1.GetControllerOfNoCopy(u) != nil)
}

// IsConnectionSecret tells whether u is a Secret that Crossplane or a provider published connection details in.
func IsConnectionSecret(u *unstructured.Unstructured) bool {
	t, _, _ := unstructured.NestedString(u.Object, "type")

	return isCore(u, "Secret") && t == SecretTypeConnection
}

// IsRevision tells whether u is a CompositionRevision.
func IsRevision(u *unstructured.Unstructured) bool {
	return u.GetKind() == "CompositionRevision" && u.GroupVersionKind().Group == GroupAPIExtensions
}

// IsPlatform tells whether u is an XRD, a Composition or a CompositionRevision, which all XRs of a kind share.
func IsPlatform(u *unstructured.Unstructured) bool {
	switch u.GetKind() {
	case "CompositeResourceDefinition", "Composition", "CompositionRevision":
		return u.GroupVersionKind().Group == GroupAPIExtensions
	default:
		return false
	}
}

// Rebuilt tells whether u is something that the control plane makes anew by itself and that does harm when it is restored. It returns
// the reason for a person, "" for anything else.
func Rebuilt(u *unstructured.Unstructured) string {
	group, kind := u.GroupVersionKind().Group, u.GetKind()
	switch {
	case group == GroupPackage && kind == "Lock":
		return "the package manager rebuilds the Lock; a restored one makes missing packages look installed"
	case group == GroupPackage && strings.HasSuffix(kind, "Revision"):
		return "its package makes it again; a restored one is left without its controller"
	case group == GroupOperations && kind == "Operation":
		return "a restored Operation would run again"
	case kind == "ProviderConfigUsage" && u.GetLabels()["crossplane.io/provider-config"] != "":
		return "its managed resource makes it again; Crossplane deletes one without its owner"
	default:
		return ""
	}
}

func isCore(u *unstructured.Unstructured, kind string) bool {
	return u.GetAPIVersion() == "v1" && u.GetKind() == kind
}

// isModern tells whether u has the schema of Crossplane v2. A spec.crossplane alone proves nothing: the author of any CRD can have one (that of
// Upbound's ControlPlane says which version of Crossplane to run), and the author of a v1 XRD too.
func isModern(u *unstructured.Unstructured) bool {
	_, refs, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "crossplane", "resourceRefs")

	return refs || selectsComposition(u, "crossplane")
}

func selectsComposition(u *unstructured.Unstructured, under ...string) bool {
	for _, field := range []string{"compositionRef", "compositionSelector", "compositionRevisionRef", "compositionUpdatePolicy"} {
		path := append(append([]string{"spec"}, under...), field)
		if _, found, _ := unstructured.NestedFieldNoCopy(u.Object, path...); found {
			return true
		}
	}

	return false
}
