package adoption

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A deletion can't be undone. A held object that is being deleted stays held, even when it waits
// for nothing else: Crossplane and providers do not delete a paused object (crossplane
// internal/controller/apiextensions/composite/reconciler.go; crossplane-runtime
// pkg/reconciler/managed/reconciler.go), so a user can still choose. The object's operation ends
// with that message.
const (
	// keepExternalNext is how to keep the external resources when their XR is deleted.
	keepExternalNext = "; to keep the external resources, first set the managementPolicies of each composed MR to all but Delete (on v1 deletionPolicy: " +
		"Orphan), then remove that annotation, and restore it again when it is gone: docs/gitops.md, \"It was deleted while it was held\""
	// restoreAgainNext is the next step when there is nothing left to choose.
	restoreAgainNext = "; if you need it, restore it again when it is gone"
)

// deleted returns what happens to a held XR that is being deleted, and the next step.
func (t *tree) deleted(u *unstructured.Unstructured) reason.Message {
	if !xp.IsPaused(u) {
		return reason.BeingDeleted.Messagef("%s is being deleted, and so is what it composes%s", xp.String(u), restoreAgainNext)
	}
	why := reason.DeletedWhileHeld.Messagef("%s is being deleted, and its hold stops Crossplane from that; to delete it with all that it composes, remove its "+
		"annotation %s%s", xp.String(u), xp.AnnotationPaused, keepExternalNext)
	// With foreground propagation the garbage collector deletes the XR's dependents first, even if
	// the XR is paused.
	too, left, absent := t.composedDeleted()
	if len(left) > 0 {
		why.Text += "; these were deleted while they only observed, so their external resources are still there, and nothing manages them: " + xp.SomeOf(left)
	}
	if len(too) > 0 {
		why.Text += "; these are being deleted too, with their external resources: " + xp.SomeOf(too)
	}
	if len(absent) > 0 {
		why.Text += "; these were deleted before it, with their external resources unless they only observed, or never restored: " + xp.SomeOf(absent)
	}

	return why
}

// composedDeleted returns the composed resources that are being deleted, those that leave their
// external resource behind, and the others that are gone.
func (t *tree) composedDeleted() (too, left, absent []xp.Ref) {
	for _, r := range t.hold.Refs {
		u := t.snapshot.Get(r)
		_, unknown := t.snapshot.isUnknown(r)
		switch {
		case u == nil && !t.snapshot.leftBy(r).IsZero(), u != nil && u.GetDeletionTimestamp() != nil && !t.snapshot.leftExternalOf(u).IsZero():
			left = append(left, r)
		case u == nil && !unknown:
			absent = append(absent, r)
		case u != nil && u.GetDeletionTimestamp() != nil:
			too = append(too, r)
		}
	}

	return too, left, absent
}

// claimDeleted is deleted for the XR's claim; zero if the claim is not held or not being deleted.
func (t *tree) claimDeleted() reason.Message {
	claim, _ := t.heldClaim()
	if claim == nil || claim.GetDeletionTimestamp() == nil {
		return reason.Message{}
	}

	return deletedClaim(claim, xp.RefTo(t.xr.Unstructured))
}

func deletedClaim(claim *unstructured.Unstructured, xr xp.Ref) reason.Message {
	if !xp.IsPaused(claim) {
		return reason.BeingDeleted.Messagef("%s is being deleted, and so is %s%s", xp.String(claim), xr, restoreAgainNext)
	}

	return reason.DeletedWhileHeld.Messagef("%[1]s is being deleted, and its hold stops Crossplane from deleting %[2]s too; to delete both, with all that they "+
		"compose, remove the annotation %[3]s of both; to keep %[2]s, remove the finalizers of %[1]s, and restore it again when it is gone: docs/gitops.md, "+
		"\"It was deleted while it was held\"", xp.String(claim), xr, xp.AnnotationPaused)
}

// deletedManaged returns what happens to a held MR that is being deleted, and the next step.
func deletedManaged(u *unstructured.Unstructured, h *Hold) reason.Message {
	if why := h.leftExternal(u); !why.IsZero() {
		return why
	}
	if !xp.IsPaused(u) {
		return reason.BeingDeleted.Messagef("%s is being deleted%s", xp.String(u), restoreAgainNext)
	}

	return reason.DeletedWhileHeld.Messagef("%s is being deleted, and its hold stops its provider from that; to delete it with its external resource, remove its "+
		"annotation %s; to keep that, first remove Delete from its managementPolicies (on v1 set deletionPolicy: Orphan), and restore it again when it is gone",
		xp.String(u), xp.AnnotationPaused)
}
