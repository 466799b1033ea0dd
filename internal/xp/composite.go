package xp

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// An Instance is a view of what XRs and claims have in common: the choice of Composition and
// revision. XRs of Crossplane v2 have it in spec.crossplane. XRs of v1, claims and v2's
// LegacyCluster XRs have it in spec.
type Instance struct {
	*unstructured.Unstructured
}

// path returns the path of a field that Crossplane owns.
func (i Instance) path(fields ...string) []string {
	if hasV2Schema(i.Unstructured) {
		return append([]string{"spec", "crossplane"}, fields...)
	}

	return append([]string{"spec"}, fields...)
}

// Field returns a merge patch that sets one of the fields that Crossplane owns.
func (i Instance) Field(name string, value any) map[string]any {
	path := i.path(name)
	patch := map[string]any{path[len(path)-1]: value}
	for n := len(path) - 2; n >= 0; n-- {
		patch = map[string]any{path[n]: patch}
	}

	return patch
}

// UpdatePolicyPath returns the path of the composition update policy.
func (i Instance) UpdatePolicyPath() []string { return i.path("compositionUpdatePolicy") }

// UpdatePolicy returns the composition update policy. It returns false if none is set, which means
// Automatic.
func (i Instance) UpdatePolicy() (string, bool) {
	s, found, err := unstructured.NestedString(i.Object, i.UpdatePolicyPath()...)

	return s, found && err == nil
}

// SetUpdatePolicy sets the composition update policy. It fails if the present value is not a
// string: a release could not restore that.
func (i Instance) SetUpdatePolicy(policy string) error {
	_, _, err := unstructured.NestedString(i.Object, i.UpdatePolicyPath()...)
	if err == nil {
		err = unstructured.SetNestedField(i.Object, policy, i.UpdatePolicyPath()...)
	}
	if err != nil {
		return fmt.Errorf("cannot set the composition update policy of %s: %w", String(i.Unstructured), err)
	}

	return nil
}

// RemoveUpdatePolicy removes the composition update policy, so that the default applies: Automatic.
func (i Instance) RemoveUpdatePolicy() {
	unstructured.RemoveNestedField(i.Object, i.UpdatePolicyPath()...)
}

// Revision returns the name of the CompositionRevision in use, "" if there is none yet.
func (i Instance) Revision() string { return Get[string](i.Object, i.path(fieldRevision, "name")...) }

// Composition returns the name of the Composition in use, "" if there is none yet.
func (i Instance) Composition() string {
	return Get[string](i.Object, i.path(fieldComposition, "name")...)
}

// RevisionSelector returns the labels by which the XR or claim selects a revision; nil if it does
// not.
func (i Instance) RevisionSelector() map[string]string {
	labels, _, _ := unstructured.NestedStringMap(i.Object, i.path("compositionRevisionSelector", "matchLabels")...)

	return labels
}

// A Composite is a view of an XR.
type Composite struct {
	Instance
}

// CompositeFrom returns a view of u as an XR. It does not check that u is an XR.
func CompositeFrom(u *unstructured.Unstructured) Composite {
	return Composite{Instance{u}}
}

// MostRefs is how many resourceRefs are read. A reference takes at least 41 bytes, so an XR of 1.5
// MiB, which etcd takes by default, has at most 38,000.
const MostRefs = 1 << 16

// ResourceRefs returns the composed resources that the XR lists, in its order. A ref without a
// namespace gets the XR's. Refs without a name, which Crossplane skips, are left out. It fails if
// the field is not a list of references, or too long.
func (c Composite) ResourceRefs() ([]Ref, error) {
	v := Get[any](c.Object, c.path("resourceRefs")...)
	if v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, reason.Malformed.Errorf("cannot read the resourceRefs of %s: they are a %T, not a list", String(c.Unstructured), v)
	}
	if len(list) > MostRefs {
		return nil, reason.Malformed.Errorf("cannot read the resourceRefs of %s: they are %d, and %d are supported", String(c.Unstructured), len(list), MostRefs)
	}
	refs := make([]Ref, 0, len(list))
	for n, entry := range list {
		r, err := refFrom(entry)
		if err != nil {
			return nil, reason.Malformed.Errorf("cannot read resourceRef %d of %s: %w", n, String(c.Unstructured), err)
		}
		if r.Name == "" {
			continue
		}
		// A namespaced XR composes in its own namespace only, whatever a ref names (crossplane
		// composition_functions.go).
		r.Namespace = cmp.Or(c.GetNamespace(), r.Namespace)
		refs = append(refs, r)
	}

	return refs, nil
}

// SavedRefs returns the resourceRefs of the backup's copy of an XR, without the unresolved ones. If
// the list of unresolved refs can't be read, another writer made it. All refs are returned then, so
// a restore waits for more than it has to, which is safe.
func (c Composite) SavedRefs() ([]Ref, error) {
	refs, err := c.ResourceRefs()
	if err != nil {
		return nil, err
	}
	unresolved, _ := UnresolvedRefs(c.Unstructured)
	skip := IDs(unresolved)

	return slices.DeleteFunc(refs, func(r Ref) bool { return skip[r.ID()] }), nil
}

// RemoveResourceRefs removes the resourceRefs, so that the XR composes new resources.
func (c Composite) RemoveResourceRefs() {
	unstructured.RemoveNestedField(c.Object, c.path("resourceRefs")...)
}

// ClaimRef returns the claim of the XR. It returns false if there is none, as for all XRs of
// Crossplane v2's own schema.
func (c Composite) ClaimRef() (Ref, bool) {
	r, ok := refAt(c.Unstructured, "spec", "claimRef")

	return r, ok && r.Name != ""
}

// A Claim is a view of a claim.
type Claim struct {
	Instance
}

// ClaimFrom returns a view of u as a claim. It does not check that u is a claim.
func ClaimFrom(u *unstructured.Unstructured) Claim {
	return Claim{Instance{u}}
}

// CompositeRef returns the claim's XR. It returns false if the claim has none yet.
func (c Claim) CompositeRef() (Ref, bool) {
	r, ok := refAt(c.Unstructured, "spec", "resourceRef")

	return r, ok && r.Name != ""
}

// Bound reports whether the claim and the XR name each other. One reference alone proves nothing.
func Bound(claim Claim, xr Composite) bool {
	to, ok := claim.CompositeRef()
	if !ok || to.ID() != RefTo(xr.Unstructured).ID() {
		return false
	}
	backRef, ok := xr.ClaimRef()

	return ok && backRef.ID() == RefTo(claim.Unstructured).ID()
}

// Controls reports whether the live owner is the controller of the live object u.
func Controls(owner, u *unstructured.Unstructured) bool {
	c := metav1.GetControllerOfNoCopy(u)

	return c != nil && c.UID != "" && c.UID == owner.GetUID()
}

// Composed reports whether the live object u, which the XR lists, is a composed resource of the XR.
// Either the XR controls it, or nothing controls it and it has the label of the XR's tree. A
// restore without this plugin leaves the latter, until Crossplane reconciles the XR.
func Composed(xr Composite, u *unstructured.Unstructured) bool {
	if _, ok := Controller(u); ok {
		return Controls(xr.Unstructured, u)
	}
	// A tenant can write labels on an XR of their own, but such an XR composes in its own namespace
	// only.
	if xr.GetNamespace() != "" && u.GetNamespace() != xr.GetNamespace() {
		return false
	}

	return Label(u, LabelComposite) == cmp.Or(Label(xr.Unstructured, LabelComposite), xr.GetName())
}

// SecretRef returns the Secret in which u publishes its connection details. It returns false if u
// publishes none. A namespaced object publishes in its own namespace.
func SecretRef(u *unstructured.Unstructured) (Ref, bool) {
	to := Get[map[string]any](u.Object, "spec", "writeConnectionSecretToRef")
	namespace, name := cmp.Or(u.GetNamespace(), Get[string](to, "namespace")), Get[string](to, "name")
	if namespace == "" || name == "" {
		return Ref{}, false
	}

	return RefToSecret(namespace, name), true
}

// UsesSecretStore reports whether a claim, XR or MR publishes its connection details with an
// External Secret Store, an alpha feature of Crossplane up to v1.20.
func UsesSecretStore(u *unstructured.Unstructured) bool {
	return Has(u.Object, "spec", "publishConnectionDetailsTo") && !hasV2Schema(u) && (IsClaim(u) || IsComposite(u) || IsManaged(u))
}

// A Condition is a condition in the status of an object.
type Condition struct {
	Status  string
	Reason  string
	Message string
	// Since is the last transition time, zero if there is none.
	Since time.Time
	// Generation is the observedGeneration, 0 if there is none, as with Crossplane v1.
	Generation int64
}

// ConditionOf returns the condition of the given type. It returns false if the object has none.
func ConditionOf(u *unstructured.Unstructured, conditionType string) (Condition, bool) {
	for _, entry := range Get[[]any](u.Object, "status", "conditions") {
		if Get[string](entry, "type") != conditionType {
			continue
		}
		c := Condition{
			Status: Get[string](entry, "status"), Reason: Get[string](entry, "reason"), Message: Get[string](entry, "message"),
			Generation: Get[int64](entry, "observedGeneration"),
		}
		c.Since, _ = time.Parse(time.RFC3339, Get[string](entry, "lastTransitionTime"))

		return c, true
	}

	return Condition{}, false
}

// IsCurrent reports whether a condition is about the current generation. A condition that was
// restored with the status is about the backup.
func IsCurrent(u *unstructured.Unstructured, c Condition) bool {
	return c.Generation == 0 || c.Generation == u.GetGeneration()
}

// IsTrue reports whether the condition of the given type is True.
func IsTrue(u *unstructured.Unstructured, conditionType string) bool {
	c, _ := ConditionOf(u, conditionType)

	return c.Status == "True"
}

// IsPaused reports whether the pause annotation keeps controllers from u. Only the exact value
// "true" does (crossplane-runtime pkg/meta).
func IsPaused(u *unstructured.Unstructured) bool {
	return Annotation(u, AnnotationPaused) == "true"
}

// IsIdle reports whether no controller reconciles u: it is paused, or an MR with empty
// managementPolicies, which have the same effect (crossplane-runtime
// pkg/reconciler/managed/policies.go).
func IsIdle(u *unstructured.Unstructured) bool {
	policies, ok := ManagementPolicies(u)

	return IsPaused(u) || ok && len(policies) == 0 && IsManaged(u)
}

// Composes reports whether a Composition or CompositionRevision is for XRs of xr's kind.
func Composes(composition *unstructured.Unstructured, xr Composite) bool {
	return slices.Contains(RunBy(composition), xr.GroupVersionKind().GroupKind())
}
