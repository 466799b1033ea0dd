package adoption

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// changedFollowing returns a warning if another writer has changed the Composition or the revision
// of a held XR or claim since the backup; else zero. Crossplane changes neither while the object is
// paused. The change takes effect when the hold is lifted, as it would without a restore, and can
// then delete composed resources.
func changedFollowing(u *unstructured.Unstructured, h *Hold) reason.Message {
	if !xp.IsPaused(u) || h.Again {
		return reason.Message{}
	}
	i := xp.Instance{Unstructured: u}
	var changes []string
	for _, c := range []struct{ field, before, now string }{
		{"compositionRef", h.Composition, i.Composition()}, {"compositionRevisionRef", h.Revision, i.Revision()},
	} {
		if c.before != "" && c.now != c.before {
			now := cmp.Or(c.now, "none")
			if NameOf(c.now) != c.now {
				now = "a text that can't be its name"
			}
			changes = append(changes, fmt.Sprintf("its %s from %s to %s", c.field, c.before, now))
		}
	}
	if len(changes) == 0 {
		return reason.Message{}
	}

	return reason.CompositionChanged.Messagef("%s: another writer has changed %s while it was held; %s. After its adoption Crossplane deletes what it does "+
		"not compose any more, with the external resources. To avoid that, change it back", xp.String(u), strings.Join(changes, " and "),
		LastWriterOf(u))
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

// following returns the hold with the update policy of the XR's claim, if the claim is not held any
// more. Crossplane copies this policy to the XR each time that it reconciles the claim. v1 can't
// reconcile a claim again if it has copied the claim's revision to an XR with another policy
// (crossplane internal/controller/apiextensions/claim/syncer_ssa.go).
func (t *tree) following(h *Hold) *Hold {
	claim := t.snapshot.claimOf(t.xr)
	if claim == nil || !h.Pinned || xp.IsPaused(claim) || xp.HasAnnotation(claim, AnnotationHold) {
		return h
	}
	if policy, ok := (xp.Instance{Unstructured: claim}).UpdatePolicy(); ok {
		theirs := *h
		theirs.UpdatePolicy = &policy

		return &theirs
	}

	return h
}

// NameOf returns s if it can be the name of a Composition or a revision, else "". A user who can
// write an XR can put a text of any length there.
func NameOf(s string) string {
	if len(validation.NameIsDNSSubdomain(s, false)) > 0 {
		return ""
	}

	return s
}

// heldClaim returns the XR's claim and its hold; nil if there is no claim, or it is not held.
func (t *tree) heldClaim() (*unstructured.Unstructured, *Hold) {
	claim := t.snapshot.claimOf(t.xr)
	if claim == nil {
		return nil, nil
	}
	if h, _ := t.snapshot.holdOf(claim); h != nil && !h.Freed { // An unreadable hold is judged with the claim.
		return claim, h
	}

	return nil, nil
}
