package xp

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An Instance is a view of an XR or a claim: of what the two have in common, which is a choice of
// Composition and revision. Crossplane v2 keeps it in spec.crossplane; v1, claims and v2's
// LegacyCluster XRs keep it in spec.
type Instance struct {
	*unstructured.Unstructured
}

// path of a field that Crossplane owns.
func (i Instance) path(fields ...string) []string {
	if hasV2Schema(i.Unstructured) {
		return append([]string{"spec", "crossplane"}, fields...)
	}

	return append([]string{"spec"}, fields...)
}

// Field returns the patch that sets the named field of those that Crossplane owns, nested as it is
// in the object.
func (i Instance) Field(name string, value any) map[string]any {
	path := i.path(name)
	patch := map[string]any{path[len(path)-1]: value}
	for n := len(path) - 2; n >= 0; n-- {
		patch = map[string]any{path[n]: patch}
	}

	return patch
}

// UpdatePolicyPath is where the composition update policy is.
func (i Instance) UpdatePolicyPath() []string { return i.path("compositionUpdatePolicy") }

// UpdatePolicy returns the composition update policy; ok is false if it is not set, which means
// Automatic.
func (i Instance) UpdatePolicy() (string, bool) {
	s, found, err := unstructured.NestedString(i.Object, i.path("compositionUpdatePolicy")...)

	return s, found && err == nil
}

// SetUpdatePolicy sets the composition update policy. It fails if that is something else than a
// policy, of which nobody could give back what it was.
func (i Instance) SetUpdatePolicy(policy string) error {
	if _, _, err := unstructured.NestedString(i.Object, i.path("compositionUpdatePolicy")...); err != nil {
		return fmt.Errorf("cannot set the composition update policy of %s: %w", String(i.Unstructured), err)
	}
	if err := unstructured.SetNestedField(i.Object, policy, i.path("compositionUpdatePolicy")...); err != nil {
		return fmt.Errorf("cannot set the composition update policy of %s: %w", String(i.Unstructured), err)
	}

	return nil
}

// RemoveUpdatePolicy removes the composition update policy, which means Automatic.
func (i Instance) RemoveUpdatePolicy() {
	unstructured.RemoveNestedField(i.Object, i.path("compositionUpdatePolicy")...)
}

// Revision returns the name of the CompositionRevision that is in use, "" if there is none yet.
func (i Instance) Revision() string {
	s, _, _ := unstructured.NestedString(i.Object, i.path("compositionRevisionRef", "name")...)

	return s
}

// Composition returns the name of the Composition that is in use, "" if there is none yet.
func (i Instance) Composition() string {
	s, _, _ := unstructured.NestedString(i.Object, i.path("compositionRef", "name")...)

	return s
}

// A Composite is a view of an XR.
type Composite struct {
	Instance
}

// CompositeFrom returns the view of u as an XR. It does not check that it is one.
func CompositeFrom(u *unstructured.Unstructured) Composite {
	return Composite{Instance{u}}
}

// ResourceRefs returns what the XR composes, in its order; a ref without a namespace means the XR's
// own. Refs without a name, which Crossplane skips, are left out. It fails if the list is not one
// of references.
func (c Composite) ResourceRefs() ([]Ref, error) {
	path := c.path("resourceRefs")
	v, found, err := unstructured.NestedFieldNoCopy(c.Object, path...)
	if err != nil || !found || v == nil {
		return nil, nil //nolint:nilerr // A path through something that is not an object holds no refs.
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("cannot read the resourceRefs of %s: they are a %T, not a list", String(c.Unstructured), v)
	}
	refs := make([]Ref, 0, len(list))
	for n, entry := range list {
		r, err := refFrom(entry)
		if err != nil {
			return nil, fmt.Errorf("cannot read resourceRef %d of %s: %w", n, String(c.Unstructured), err)
		}
		if r.Name == "" {
			continue
		}
		// A namespaced XR composes in its own namespace only, whatever a ref says (crossplane
		// composition_functions.go).
		if c.GetNamespace() != "" {
			r.Namespace = c.GetNamespace()
		}
		refs = append(refs, r)
	}

	return refs, nil
}

// SavedRefs returns what the backup's copy of an XR composes, without what a restore must not wait
// for. A list of the latter that can't be read is not this plugin's; without it what is missing is
// waited for, which is safe.
func (c Composite) SavedRefs() ([]Ref, error) {
	refs, err := c.ResourceRefs()
	if err != nil {
		return nil, err
	}
	dangling, _ := UnresolvedRefs(c.Unstructured)
	left := make(map[ID]bool, len(dangling))
	for _, r := range dangling {
		left[r.ID()] = true
	}

	return slices.DeleteFunc(refs, func(r Ref) bool { return left[r.ID()] }), nil
}

// RemoveResourceRefs takes off what the XR composes, so that it composes anew.
func (c Composite) RemoveResourceRefs() {
	unstructured.RemoveNestedField(c.Object, c.path("resourceRefs")...)
}

// ClaimRef returns the claim that the XR is bound to; ok is false if there is none, as for all XRs
// of Crossplane v2's own schema.
func (c Composite) ClaimRef() (Ref, bool) {
	r, ok := refAt(c.Unstructured, "spec", "claimRef")

	return r, ok && r.Name != ""
}

// A Claim is a view of a claim.
type Claim struct {
	Instance
}

// ClaimFrom returns the view of u as a claim. It does not check that it is one.
func ClaimFrom(u *unstructured.Unstructured) Claim {
	return Claim{Instance{u}}
}

// CompositeRef returns the claim's XR; ok is false if it has none yet.
func (c Claim) CompositeRef() (Ref, bool) {
	r, ok := refAt(c.Unstructured, "spec", "resourceRef")

	return r, ok && r.Name != ""
}

// Bound reports whether the claim and the XR name each other, which is what makes them belong
// together.
func Bound(claim Claim, xr Composite) bool {
	to, ok := claim.CompositeRef()
	if !ok || to.ID() != RefTo(xr.Unstructured).ID() {
		return false
	}
	back, ok := xr.ClaimRef()

	return ok && back.ID() == RefTo(claim.Unstructured).ID()
}

// Controls reports whether the live owner controls the live object u.
func Controls(owner, u *unstructured.Unstructured) bool {
	c := metav1.GetControllerOfNoCopy(u)

	return c != nil && c.UID != "" && c.UID == owner.GetUID()
}

// Composed reports whether the live object u, which the XR references, is one that it composed: it
// controls it, or nothing does and u carries the label of the XR's tree. A restore without this
// plugin leaves it like that until Crossplane reconciles the XR.
func Composed(xr Composite, u *unstructured.Unstructured) bool {
	if _, ok := Controller(u); ok {
		return Controls(xr.Unstructured, u)
	}
	// A tenant can write labels on an XR of their own, which composes in its own namespace only.
	if xr.GetNamespace() != "" && u.GetNamespace() != xr.GetNamespace() {
		return false
	}
	root := Label(xr.Unstructured, LabelComposite)
	if root == "" {
		root = xr.GetName()
	}

	return Label(u, LabelComposite) == root
}

// SecretRef returns the Secret that u publishes its connection details in: namespace and name; ok
// is false if it publishes none. A namespaced object publishes in its own namespace.
func SecretRef(u *unstructured.Unstructured) (Ref, bool) {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "writeConnectionSecretToRef")
	m, ok := v.(map[string]any)
	if !ok {
		return Ref{}, false
	}
	name, _ := m["name"].(string)
	namespace, _ := m["namespace"].(string)
	if u.GetNamespace() != "" {
		namespace = u.GetNamespace()
	}

	return Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}, name != "" && namespace != ""
}

// A Condition is what Crossplane says of an object's state.
type Condition struct {
	Status  string
	Reason  string
	Message string
	// Since is when the status last changed; zero if it does not say.
	Since time.Time
	// Generation is that of the object which this was said of; 0 if it does not say, as with
	// Crossplane v1.
	Generation int64
}

// ConditionOf returns the condition of the given type; ok is false if the object has none.
func ConditionOf(u *unstructured.Unstructured, conditionType string) (Condition, bool) {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	list, _ := value.([]any) // Anything else holds none.
	for _, entry := range list {
		m, ok := entry.(map[string]any)
		if !ok || m["type"] != conditionType {
			continue
		}
		var c Condition
		c.Status, _ = m["status"].(string)
		c.Reason, _ = m["reason"].(string)
		c.Message, _ = m["message"].(string)
		since, _ := m["lastTransitionTime"].(string)
		c.Since, _ = time.Parse(time.RFC3339, since)
		c.Generation, _ = m["observedGeneration"].(int64)

		return c, true
	}

	return Condition{}, false
}

// IsPaused reports whether Crossplane leaves u alone: only the exact value "true" does
// (crossplane-runtime pkg/meta).
func IsPaused(u *unstructured.Unstructured) bool {
	return Annotation(u, AnnotationPaused) == "true"
}

// Composes reports whether a Composition or CompositionRevision is for XRs of xr's kind.
func Composes(composition *unstructured.Unstructured, xr Composite) bool {
	return slices.Contains(RunBy(composition), xr.GroupVersionKind().GroupKind())
}
