package hold

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// ReleasePatch returns the patch that lifts the hold of u and gives the user's own settings back.
func ReleasePatch(u *unstructured.Unstructured, h *Hold) map[string]any {
	annotations := map[string]any{Annotation: nil, xp.AnnotationPaused: nullable(h.Paused)}
	maps.Copy(annotations, withoutRequest(u.GetAnnotations()))
	if xp.HasAnnotation(u, xp.AnnotationMustRestore) {
		annotations[xp.AnnotationMustRestore] = nil // Velero 1.18.3 removes it, 1.18.1 does not.
	}
	p := patch(u, annotations)
	if h.Pinned {
		set(p, nullable(h.PolicyOf(u)), xp.Instance{Unstructured: u}.UpdatePolicyPath()...)
	}
	h.restoreOriginals(u, p)

	return p
}

// restoreOriginals adds to a patch of a live object what saveOriginals changed.
func (h *Hold) restoreOriginals(u *unstructured.Unstructured, p map[string]any) {
	if len(h.Status) > 0 {
		set(p, nullable(h.RestoreStatus), "metadata", "annotations", xp.AnnotationRestoreStatus)
	}
	// A value that another writer has set since stays.
	if h.Observes && xp.OnlyObserves(u) {
		var own []any
		for _, policy := range h.Policies {
			own = append(own, policy)
		}
		set(p, nil, "spec", fieldPolicies)
		if own != nil {
			set(p, own, "spec", fieldPolicies)
		}
	}
}

// PolicyOf returns the composition update policy that u gets when its hold is lifted; nil for none.
// It is the policy of the backup, unless another writer has set Manual, the hold's own value, since
// the restore (for example to pin the XR in Git).
func (h *Hold) PolicyOf(u *unstructured.Unstructured) *string {
	i := xp.Instance{Unstructured: u}
	created := u.GetCreationTimestamp()
	if policy, _ := i.UpdatePolicy(); policy != xp.UpdateManual || created.IsZero() {
		return h.UpdatePolicy
	}
	path := i.UpdatePolicyPath()
	others, _ := othersAt(u, path)
	for _, m := range others {
		if manager, _ := m["manager"].(string); isWrittenHere(u, m) && !isControllers(manager) && !h.hadEntry(m) && h.hasWritten(u, m, path) {
			return new(xp.UpdateManual)
		}
	}

	return h.UpdatePolicy
}

// hasWritten reports whether an entry of managedFields, which is newer than u, proves that its
// manager wrote the field at path since the restore. An Update entry gets a new time when its
// manager updates any field, and keeps the fields that it had in the backup: for each object with
// spec.crossplane these include the API server's default. For a field that the manager had in the
// backup, only the value that it applied client-side is proof.
func (h *Hold) hasWritten(u *unstructured.Unstructured, entry map[string]any, path []string) bool {
	if entry["operation"] != string(metav1.ManagedFieldsOperationUpdate) {
		return true
	}
	managed := slices.ContainsFunc(unpackManagers(h.Fields), func(m map[string]any) bool {
		_, ok := managedAt(m, path)

		return ok && m["manager"] == entry["manager"] && m["operation"] == entry["operation"]
	})
	var applied map[string]any
	if !managed || json.Unmarshal([]byte(xp.Annotation(u, xp.AnnotationLastApplied)), &applied) != nil {
		return !managed
	}
	policy, _, _ := unstructured.NestedString(applied, path...)

	return policy == xp.UpdateManual
}

// hadEntry reports whether an entry of managedFields is from the backup. Its time proves nothing,
// since a writer can set any.
func (h *Hold) hadEntry(entry map[string]any) bool {
	return slices.ContainsFunc(unpackManagers(h.Fields), func(m map[string]any) bool {
		return m["manager"] == entry["manager"] && m["operation"] == entry["operation"] && m["time"] == entry["time"]
	})
}

// NameOf returns s if it can be the name of a Composition or a revision, else "". A user who can
// write an XR can put a text of any length there.
func NameOf(s string) string {
	if len(validation.NameIsDNSSubdomain(s, false)) > 0 {
		return ""
	}

	return s
}

// WithPauseOf returns the hold with another writer's change to the pause of u: removed, or another
// value. If u is unpaused it keeps a recorded value other than "true".
func (h *Hold) WithPauseOf(u *unstructured.Unstructured) *Hold {
	value, ok := u.GetAnnotations()[xp.AnnotationPaused]
	theirs := *h
	switch {
	case xp.IsPaused(u):
	case ok:
		theirs.Paused = &value
	case h.OwnPause():
		theirs.Paused = nil
	}

	return &theirs
}

// RemoveBackedUpHold removes a hold that u has from the backup, and gives u its own settings back,
// before u is created. It ignores a mark that can't be read.
func RemoveBackedUpHold(u *unstructured.Unstructured) error {
	h, err := Of(u)
	if err != nil || h == nil {
		return nil //nolint:nilerr // A mark that can't be read is no hold.
	}
	returnAnnotation(u, Annotation, nil)
	if h.Freed {
		return nil
	}
	returnAnnotation(u, xp.AnnotationPaused, h.Paused)
	h.returnStatus(u)
	h.ReturnPolicies(u)
	if !h.Pinned {
		return nil
	}

	return returnUpdatePolicy(u, h.UpdatePolicy)
}

// returnStatus gives u, which is about to be created, its own annotation for its status back.
func (h *Hold) returnStatus(u *unstructured.Unstructured) {
	if len(h.Status) > 0 {
		returnAnnotation(u, xp.AnnotationRestoreStatus, h.RestoreStatus)
	}
}

// ReturnPolicies gives u, which is about to be created, its own managementPolicies back.
func (h *Hold) ReturnPolicies(u *unstructured.Unstructured) {
	switch {
	case !h.Observes || !xp.OnlyObserves(u):
	case len(h.Policies) == 0:
		unstructured.RemoveNestedField(u.Object, "spec", "managementPolicies")
	default:
		_ = unstructured.SetNestedStringSlice(u.Object, h.Policies, "spec", "managementPolicies") // The path was just read.
	}
}

// returnAnnotation gives u, which is about to be created, its own value of an annotation back; nil
// for none.
func returnAnnotation(u *unstructured.Unstructured, name string, own *string) {
	annotations := u.GetAnnotations()
	delete(annotations, name)
	if own != nil {
		annotations[name] = *own
	}
	u.SetAnnotations(annotations)
}

// returnUpdatePolicy is returnAnnotation for the composition update policy.
func returnUpdatePolicy(u *unstructured.Unstructured, own *string) error {
	if own == nil {
		xp.Instance{Unstructured: u}.RemoveUpdatePolicy()

		return nil
	}

	return xp.Instance{Unstructured: u}.SetUpdatePolicy(*own)
}
