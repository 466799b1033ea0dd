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

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// changedFollowing says that somebody has had a held XR or claim follow another Composition, or
// another revision, than it did in the backup; "" if nobody has. While it is paused Crossplane
// changes neither. What they want comes about when the hold is lifted, as it would without a
// restore, and that can delete.
func changedFollowing(u *unstructured.Unstructured, h *Hold) string {
	if !xp.IsPaused(u) || h.Again {
		return ""
	}
	i := xp.Instance{Unstructured: u}
	var changes []string
	for _, c := range []struct{ field, before, now string }{
		{"compositionRef", h.Composition, i.Composition()}, {"compositionRevisionRef", h.Revision, i.Revision()},
	} {
		if c.before != "" && c.now != c.before {
			now := cmp.Or(c.now, "none")
			if nameOf(c.now) != c.now {
				now = "what can't be the name of one"
			}
			changes = append(changes, fmt.Sprintf("its %s from %s to %s", c.field, c.before, now))
		}
	}
	if len(changes) == 0 {
		return ""
	}

	return fmt.Sprintf("%s follows something else than in the backup: somebody has changed %s while it was held; %s. When it is adopted Crossplane deletes what "+
		"that composes no longer, with its external resources. If it is not to, change it back", xp.String(u), strings.Join(changes, " and "),
		writtenBy(u, "who is not known, since its managedFields name nobody (kubectl get --show-managed-fields)"))
}

// policyOf is the composition update policy that u has without its hold: what it had in the backup,
// unless somebody has written the hold's own since, as one does who pins it in Git.
func (h *Hold) policyOf(u *unstructured.Unstructured) *string {
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

// hasWritten reports whether an entry of managedFields that is newer than u is about a field at a
// path. Who has updated something else since has a newer entry too, with what they managed in the
// backup: with each object that has spec.crossplane the API server's default. Of these only what
// they have applied client-side tells.
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

// hadEntry reports whether an entry of managedFields is one of the backup, whatever time somebody
// has written there.
func (h *Hold) hadEntry(entry map[string]any) bool {
	return slices.ContainsFunc(unpackManagers(h.Fields), func(m map[string]any) bool {
		return m["manager"] == entry["manager"] && m["operation"] == entry["operation"] && m["time"] == entry["time"]
	})
}

// following is the hold of an XR with the policy of its claim, which is not held any more:
// Crossplane carries that over to the XR each time that it reconciles the claim, and v1 can't
// reconcile a claim again whose revision it has carried over to an XR of another policy (crossplane
// internal/controller/apiextensions/claim/syncer_ssa.go).
func (t *tree) following(h *Hold) *Hold {
	r, ok := t.xr.ClaimRef()
	if !ok || !h.Pinned {
		return h
	}
	claim := t.snapshot.Get(r)
	if claim == nil || !xp.Bound(xp.ClaimFrom(claim), t.xr) || xp.IsPaused(claim) || xp.HasAnnotation(claim, AnnotationHold) {
		return h
	}
	if policy, ok := (xp.Instance{Unstructured: claim}).UpdatePolicy(); ok {
		theirs := *h
		theirs.UpdatePolicy = &policy

		return &theirs
	}

	return h
}

// nameOf is what can be the name of a Composition or of a revision, else "": whoever can write an
// XR can write anything there, of any length.
func nameOf(s string) string {
	if len(validation.NameIsDNSSubdomain(s, false)) > 0 {
		return ""
	}

	return s
}

// remarkFollowing says so of a held XR that is paused, and of its claim.
func (t *tree) remarkFollowing(u *unstructured.Unstructured) {
	why := []string{changedFollowing(u, t.hold)}
	if claim, h := t.heldClaim(); claim != nil {
		why = append(why, changedFollowing(claim, h))
	}
	for _, w := range why {
		if w != "" {
			t.plan.Remarks = append(t.plan.Remarks, w)
		}
	}
}

// heldClaim returns the XR's claim and its hold; nil if there is none, or it is not held.
func (t *tree) heldClaim() (*unstructured.Unstructured, *Hold) {
	r, ok := t.xr.ClaimRef()
	if !ok {
		return nil, nil
	}
	claim := t.snapshot.Get(r)
	if claim == nil || !xp.Bound(xp.ClaimFrom(claim), t.xr) {
		return nil, nil
	}
	h, err := t.snapshot.holdOf(claim)
	if err != nil || h == nil || h.Freed {
		return nil, nil
	}

	return claim, h
}
