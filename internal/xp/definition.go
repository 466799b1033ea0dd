package xp

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsDefinition reports whether u is an XRD.
func IsDefinition(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == KindDefinition.GroupKind()
}

// definitionNames are the fields with the names of the XRs and of the claims of an XRD, each with the
// condition that the kind is served.
//
//nolint:gochecknoglobals // It is a constant list.
var definitionNames = []struct{ field, condition string }{{"names", ConditionEstablished}, {"claimNames", "Offered"}}

// DefinitionKinds returns the kinds that an XRD defines, served or not: the kind of its XRs, then
// the kind of its claims if it has one.
func DefinitionKinds(xrd *unstructured.Unstructured) []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, names := range definitionNames {
		if kind := Get[string](xrd.Object, "spec", names.field, "kind"); kind != "" {
			kinds = append(kinds, schema.GroupKind{Group: Get[string](xrd.Object, "spec", "group"), Kind: kind})
		}
	}

	return kinds
}

// DefinitionResources returns the resources of DefinitionKinds.
func DefinitionResources(xrd *unstructured.Unstructured) []schema.GroupResource {
	var resources []schema.GroupResource
	for _, names := range definitionNames {
		if plural := Get[string](xrd.Object, "spec", names.field, "plural"); plural != "" {
			resources = append(resources, schema.GroupResource{Group: Get[string](xrd.Object, "spec", "group"), Resource: plural})
		}
	}

	return resources
}

// Defines reports whether an XRD defines a kind, of XRs or of claims, served or not.
func Defines(xrd *unstructured.Unstructured, gk schema.GroupKind) bool {
	return slices.Contains(DefinitionKinds(xrd), gk)
}

// A DefinedKind is a kind of XR or claim that an XRD defines.
type DefinedKind struct {
	schema.GroupVersionKind

	// XRD is the name of the XRD.
	XRD string
	// Since is the transition time of the XRD's condition for this kind, by Crossplane's clock, or
	// the creation of the XRD, by the API server's, whichever is later.
	Since time.Time
}

// DefinedKinds returns those of DefinitionKinds that are served.
func DefinedKinds(xrd *unstructured.Unstructured) []DefinedKind {
	gv := schema.GroupVersion{Group: Get[string](xrd.Object, "spec", "group"), Version: versionThat(xrd, "served")}
	var kinds []DefinedKind
	for _, names := range definitionNames {
		kind := Get[string](xrd.Object, "spec", names.field, "kind")
		c, _ := ConditionOf(xrd, names.condition)
		if kind == "" || c.Status != "True" {
			continue
		}
		if created := xrd.GetCreationTimestamp().Time; created.After(c.Since) {
			c.Since = created
		}
		kinds = append(kinds, DefinedKind{GroupVersionKind: gv.WithKind(kind), XRD: xrd.GetName(), Since: c.Since})
	}

	return kinds
}

// versionThat returns the first version of an XRD that is served, or referenceable; "" if none is.
func versionThat(xrd *unstructured.Unstructured, is string) string {
	for _, v := range Get[[]any](xrd.Object, "spec", "versions") {
		if name := Get[string](v, "name"); name != "" && Get[bool](v, is) {
			return name
		}
	}

	return ""
}

// Referenced returns the apiVersion in which Crossplane reads the XRs of an XRD, "" if no version
// is referenceable.
func Referenced(xrd *unstructured.Unstructured) string {
	version := versionThat(xrd, "referenceable")
	if version == "" {
		return ""
	}

	return schema.GroupVersion{Group: Get[string](xrd.Object, "spec", "group"), Version: version}.String()
}

// EnforcedComposition returns the Composition that an XRD enforces for its XRs, "" if none.
func EnforcedComposition(xrd *unstructured.Unstructured) string {
	return Get[string](xrd.Object, "spec", "enforcedCompositionRef", "name")
}

// DefaultUpdatePolicy returns the policy of an XRD's XRs that have none, "" if they have none then.
func DefaultUpdatePolicy(xrd *unstructured.Unstructured) string {
	return Get[string](xrd.Object, "spec", "defaultCompositionUpdatePolicy")
}

// HasDefaultRevisionSelector reports whether an XRD's XRs that name no revision, and select none,
// get a selector.
func HasDefaultRevisionSelector(xrd *unstructured.Unstructured) bool {
	return Has(xrd.Object, "spec", "defaultCompositionRevisionSelector")
}

// ScopeLegacy is the scope of an XRD of Crossplane v1, and of a v2 XRD with claims.
const ScopeLegacy = "LegacyCluster"

// ScopeOf returns the scope of the XRs that an XRD defines.
func ScopeOf(xrd *unstructured.Unstructured) string {
	if scope := Get[string](xrd.Object, "spec", "scope"); scope != "" {
		return scope
	}
	if xrd.GroupVersionKind().Version == "v2" {
		return "Namespaced"
	}

	return ScopeLegacy
}

// CreatedAs returns the kind, with the version, as which u can be created. Velero backs up the
// version that the API server prefers. That serves each object in each version, but validates a new
// one by the schema of the version in which it is created. Crossplane v2 prefers v2 of XRDs, which
// refuses the scope LegacyCluster, and with it claims and connection secrets; v1 accepts them and
// has the same fields (crossplane
// cluster/crds/apiextensions.crossplane.io_compositeresourcedefinitions.yaml).
func CreatedAs(u *unstructured.Unstructured) schema.GroupVersionKind {
	if IsDefinition(u) && ScopeOf(u) == ScopeLegacy {
		return KindDefinition
	}

	return u.GroupVersionKind()
}

// RunBy returns the kinds of XRs that an XRD, a Composition or a CompositionRevision is for. An
// XRD's kind of claims is included.
func RunBy(platform *unstructured.Unstructured) []schema.GroupKind {
	if IsDefinition(platform) {
		return DefinitionKinds(platform)
	}
	m := Strings(platform.Object, "spec", "compositeTypeRef")
	if m["kind"] == "" {
		return nil
	}

	return []schema.GroupKind{schema.FromAPIVersionAndKind(m["apiVersion"], m["kind"]).GroupKind()}
}

// Finalizers of an XRD (crossplane internal/controller/apiextensions/definition and offered). While
// an XRD that is being deleted has them, Crossplane deletes every XR and every claim of its kinds.
const (
	finalizerDefined = "defined.apiextensions.crossplane.io"
	finalizerOffered = "offered.apiextensions.crossplane.io"
)

// XRDTerminating returns, for a message, what the deletion of an XRD means, what it waits for, and
// what to do.
func XRDTerminating(xrd *unstructured.Unstructured) string {
	var waits []string
	for _, f := range xrd.GetFinalizers() {
		switch f {
		case finalizerDefined:
			waits = append(waits, "its finalizer "+f+" until all of its XRs are gone")
		case finalizerOffered:
			waits = append(waits, "its finalizer "+f+" until all of its claims are gone")
		default:
			waits = append(waits, "its finalizer "+f)
		}
	}
	if len(waits) == 0 {
		waits = append(waits, "what it owns")
	}

	return fmt.Sprintf("its XRD %[1]s is being deleted, and Crossplane deletes the claims and XRs of its kinds, or waits until they are gone. "+
		`It waits for %[2]s. Wait until it is gone ("%[3]s" shows what is left), then apply it again`, xrd.GetName(), strings.Join(waits, " and for "),
		NewCommand("kubectl", "get").On(xrd.GetName()).Word("-A"))
}

// IsActivationPolicy reports whether u is a ManagedResourceActivationPolicy.
func IsActivationPolicy(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == KindActivationPolicy.GroupKind()
}

// ManagedKind returns the kind that an MRD, or a CRD, defines.
func ManagedKind(mrd *unstructured.Unstructured) schema.GroupKind {
	return schema.GroupKind{Group: Get[string](mrd.Object, "spec", "group"), Kind: Get[string](mrd.Object, "spec", "names", "kind")}
}

// IsInactive reports whether an MRD keeps its kind from being served, which is the default.
func IsInactive(mrd *unstructured.Unstructured) bool {
	return Get[string](mrd.Object, "spec", "state") != "Active"
}

// Activates reports whether a policy activates the MRD of a name. It matches as Crossplane does
// (crossplane apis/apiextensions/v1alpha1, ActivationPolicy).
func Activates(policy *unstructured.Unstructured, name string) bool {
	return slices.ContainsFunc(Get[[]any](policy.Object, "spec", "activate"), func(p any) bool {
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
