// Package xptest builds Crossplane's objects for tests, as the API server returns them: JSON values
// only, each object with its own UID. Only tests import it. Begin with Object; options.go has what
// changes it.
package xptest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Kinds of the objects, and the namespace of the namespaced ones.
const (
	Namespace       = "team-a"
	LegacyVersion   = "example.org/v1alpha1"
	LegacyKind      = "XOrder"
	ClaimKind       = "OrderClaim"
	ModernVersion   = "example.org/v1"
	ModernKind      = "Order"
	ManagedVersion  = "cloud.example.org/v1alpha1"
	ManagedKind     = "Bucket"
	RevisionName    = "orders-1a2b3c"
	CompositionName = "orders"
)

// An Option changes an object under construction.
type Option func(u *unstructured.Unstructured)

// Object returns an object with what the options set. It gets a UID if they set none.
func Object(apiVersion, kind, namespace, name string, o ...Option) *unstructured.Unstructured {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}}
	for _, option := range o {
		option(u)
	}
	if u.GetUID() == "" {
		u.SetUID(types.UID("uid of " + xp.String(u)))
	}

	return u
}

// XR returns a reconciled XR with the schema of Crossplane v1, which v2 calls LegacyCluster.
func XR(name string, o ...Option) *unstructured.Unstructured {
	return Object(LegacyVersion, LegacyKind, "", name, append([]Option{
		Finalizers(xp.FinalizerComposite),
		Field(map[string]any{"name": CompositionName}, "spec", "compositionRef"),
		Field(map[string]any{"name": RevisionName}, "spec", "compositionRevisionRef"),
	}, o...)...)
}

// XRV2 returns a reconciled, namespaced XR with the schema of Crossplane v2.
func XRV2(name string, o ...Option) *unstructured.Unstructured {
	return Object(ModernVersion, ModernKind, Namespace, name, append([]Option{
		Finalizers(xp.FinalizerComposite),
		Field(map[string]any{"name": CompositionName}, "spec", "crossplane", "compositionRef"),
		Field(map[string]any{"name": RevisionName}, "spec", "crossplane", "compositionRevisionRef"),
	}, o...)...)
}

// Claim returns a reconciled claim without an XR.
func Claim(name string, o ...Option) *unstructured.Unstructured {
	return Object(LegacyVersion, ClaimKind, Namespace, name, append([]Option{
		Finalizers(xp.FinalizerClaim),
		Field(map[string]any{"name": CompositionName}, "spec", "compositionRef"),
		Field(map[string]any{"name": RevisionName}, "spec", "compositionRevisionRef"),
	}, o...)...)
}

// MR returns a reconciled, cluster-scoped MR.
func MR(name string, o ...Option) *unstructured.Unstructured {
	return Object(ManagedVersion, ManagedKind, "", name, append([]Option{
		Finalizers(xp.FinalizerManaged),
		Annotated(xp.AnnotationExternalName, name),
		Field(map[string]any{"region": "eu"}, "spec", "forProvider"),
	}, o...)...)
}

// NamespacedMR returns an MR in Namespace.
func NamespacedMR(name string, o ...Option) *unstructured.Unstructured {
	return MR(name, append([]Option{In(Namespace)}, o...)...)
}

// Secret returns a connection secret.
func Secret(name string, o ...Option) *unstructured.Unstructured {
	return Object("v1", "Secret", Namespace, name, append([]Option{Field(xp.SecretTypeConnection, "type")}, o...)...)
}

// Revision returns a CompositionRevision for XRs of xr's kind. A Composition that is in the cluster
// controls it.
func Revision(name string, xr *unstructured.Unstructured, o ...Option) *unstructured.Unstructured {
	return Object(xp.GroupAPIExtensions+"/v1", "CompositionRevision", "", name, append([]Option{
		Labelled(xp.LabelCompositionName, CompositionName), compositeType(xr), ControlledBy(Composition(CompositionName, xr)),
	}, o...)...)
}

// Composition returns a Composition for XRs of xr's kind.
func Composition(name string, xr *unstructured.Unstructured, o ...Option) *unstructured.Unstructured {
	return Object(xp.GroupAPIExtensions+"/v1", "Composition", "", name, append([]Option{compositeType(xr)}, o...)...)
}

// XRD returns an XRD without a spec.
func XRD(name string, o ...Option) *unstructured.Unstructured {
	return Object(xp.GroupAPIExtensions+"/v1", "CompositeResourceDefinition", "", name, o...)
}

func compositeType(xr *unstructured.Unstructured) Option {
	return Field(map[string]any{"apiVersion": xr.GetAPIVersion(), "kind": xr.GetKind()}, "spec", "compositeTypeRef")
}

// ManagedDefinition returns the active ManagedResourceDefinition of an MR's kind. plural is its
// resource.
func ManagedDefinition(plural string, mr *unstructured.Unstructured, o ...Option) *unstructured.Unstructured {
	gvk := mr.GroupVersionKind()

	return Object(xp.KindManagedDefinition.GroupVersion().String(), xp.KindManagedDefinition.Kind, "", plural+"."+gvk.Group, append([]Option{
		Field(map[string]any{"group": gvk.Group, "names": map[string]any{"kind": gvk.Kind, "plural": plural}, "state": "Active"}, "spec"),
	}, o...)...)
}

// Inactive makes a ManagedResourceDefinition inactive.
func Inactive() Option { return Field("Inactive", "spec", "state") }

// ActivationPolicy returns a ManagedResourceActivationPolicy.
func ActivationPolicy(name string, o ...Option) *unstructured.Unstructured {
	return Object(xp.KindActivationPolicy.GroupVersion().String(), xp.KindActivationPolicy.Kind, "", name, o...)
}

// Activating sets the patterns of a ManagedResourceActivationPolicy.
func Activating(patterns ...any) Option { return Field(patterns, "spec", "activate") }
