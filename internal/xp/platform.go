package xp

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds of Crossplane's own that decide whether an XR can be reconciled.
var (
	KindDefinition       = schema.GroupVersionKind{Group: GroupAPIExtensions, Version: "v1", Kind: "CompositeResourceDefinition"}
	KindFunction         = schema.GroupVersionKind{Group: GroupPackage, Version: "v1", Kind: "Function"}
	KindComposition      = schema.GroupVersionKind{Group: GroupAPIExtensions, Version: "v1", Kind: "Composition"}
	KindRevision         = schema.GroupVersionKind{Group: GroupAPIExtensions, Version: "v1", Kind: "CompositionRevision"}
	KindFunctionRevision = schema.GroupVersionKind{Group: GroupPackage, Version: "v1", Kind: "FunctionRevision"}
	KindProviderRevision = schema.GroupVersionKind{Group: GroupPackage, Version: "v1", Kind: "ProviderRevision"}
	KindRuntimeConfig    = schema.GroupVersionKind{Group: GroupPackage, Version: "v1beta1", Kind: "DeploymentRuntimeConfig"}
)

// IsDefinition reports whether u is an XRD.
func IsDefinition(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == KindDefinition.GroupKind()
}

// DefinitionKinds returns the kinds that an XRD defines, served or not: the kind of its XRs, then
// the kind of its claims if it has one.
func DefinitionKinds(xrd *unstructured.Unstructured) []schema.GroupKind {
	var kinds []schema.GroupKind
	group, names := definitionNames(xrd, "kind")
	for _, kind := range names {
		kinds = append(kinds, schema.GroupKind{Group: group, Kind: kind})
	}

	return kinds
}

// DefinitionResources returns the resources of DefinitionKinds.
func DefinitionResources(xrd *unstructured.Unstructured) []schema.GroupResource {
	var resources []schema.GroupResource
	group, names := definitionNames(xrd, "plural")
	for _, plural := range names {
		resources = append(resources, schema.GroupResource{Group: group, Resource: plural})
	}

	return resources
}

// definitionNames returns the group of an XRD, and one form of the names of its XRs and its claims:
// "kind" or "plural".
func definitionNames(xrd *unstructured.Unstructured, form string) (group string, names []string) {
	group, _, _ = unstructured.NestedString(xrd.Object, "spec", "group")
	for _, of := range []string{"names", "claimNames"} {
		if name, _, _ := unstructured.NestedString(xrd.Object, "spec", of, form); name != "" {
			names = append(names, name)
		}
	}

	return group, names
}

// EnforcedComposition returns the Composition that an XRD enforces for its XRs, "" if none.
func EnforcedComposition(xrd *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(xrd.Object, "spec", "enforcedCompositionRef", "name")

	return name
}

// DefaultUpdatePolicy returns the policy of an XRD's XRs that have none, "" if they have none then.
func DefaultUpdatePolicy(xrd *unstructured.Unstructured) string {
	policy, _, _ := unstructured.NestedString(xrd.Object, "spec", "defaultCompositionUpdatePolicy")

	return policy
}

// HasDefaultRevisionSelector reports whether an XRD's XRs that name no revision, and select none,
// get a selector.
func HasDefaultRevisionSelector(xrd *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedFieldNoCopy(xrd.Object, "spec", "defaultCompositionRevisionSelector")

	return found
}

// Defines reports whether an XRD defines a kind, of XRs or of claims, served or not.
func Defines(xrd *unstructured.Unstructured, gk schema.GroupKind) bool {
	return slices.Contains(DefinitionKinds(xrd), gk)
}

// RunBy returns the kinds of XRs that an XRD, a Composition or a CompositionRevision is for. An
// XRD's kind of claims is included.
func RunBy(platform *unstructured.Unstructured) []schema.GroupKind {
	if IsDefinition(platform) {
		return DefinitionKinds(platform)
	}
	m, _, err := unstructured.NestedStringMap(platform.Object, "spec", "compositeTypeRef")
	if err != nil || m["kind"] == "" {
		return nil
	}

	return []schema.GroupKind{schema.FromAPIVersionAndKind(m["apiVersion"], m["kind"]).GroupKind()}
}

// Referenced returns the apiVersion in which Crossplane reads the XRs of an XRD, "" if no version
// is referenceable.
func Referenced(xrd *unstructured.Unstructured) string {
	group, _, _ := unstructured.NestedString(xrd.Object, "spec", "group")
	field, _, _ := unstructured.NestedFieldNoCopy(xrd.Object, "spec", "versions")
	versions, _ := field.([]any)
	for _, v := range versions {
		m, _ := v.(map[string]any)
		if name, _ := m["name"].(string); m["referenceable"] == true && name != "" {
			return schema.GroupVersion{Group: group, Version: name}.String()
		}
	}

	return ""
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

// Functions returns the names of the Functions in the pipeline of a Composition or its revision,
// without duplicates.
func Functions(revision *unstructured.Unstructured) []string {
	field, _, _ := unstructured.NestedFieldNoCopy(revision.Object, "spec", "pipeline")
	pipeline, _ := field.([]any)
	var names []string
	for _, step := range pipeline {
		m, ok := step.(map[string]any)
		if !ok {
			continue
		}
		if name, _, _ := unstructured.NestedString(m, "functionRef", "name"); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}

	return names
}

// ComposedNames returns the composition-resource-names in the inputs of a pipeline, as
// function-patch-and-transform has them, with the kind of each. The kind is zero if the base has
// none. The names that other functions choose are stored nowhere.
func ComposedNames(revision *unstructured.Unstructured) map[string]schema.GroupKind {
	field, _, _ := unstructured.NestedFieldNoCopy(revision.Object, "spec", "pipeline")
	pipeline, _ := field.([]any)
	names := map[string]schema.GroupKind{}
	for _, step := range pipeline {
		m, _ := step.(map[string]any)
		field, _, _ := unstructured.NestedFieldNoCopy(m, "input", "resources")
		resources, _ := field.([]any)
		for _, r := range resources {
			entry, _ := r.(map[string]any)
			base, _ := entry["base"].(map[string]any)
			apiVersion, _ := base["apiVersion"].(string)
			kind, _ := base["kind"].(string)
			if name, _ := entry["name"].(string); name != "" {
				names[name] = schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
			}
		}
	}

	return names
}

// IsActive reports whether the package manager runs this package revision.
func IsActive(revision *unstructured.Unstructured) bool {
	state, _, _ := unstructured.NestedString(revision.Object, "spec", "desiredState")

	return state == "Active"
}

// Endpoint returns the address of the Function of an active revision, "" if it does not run yet.
func Endpoint(revision *unstructured.Unstructured) string {
	endpoint, _, _ := unstructured.NestedString(revision.Object, "status", "endpoint")

	return endpoint
}
