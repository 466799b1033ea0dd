package adoption

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
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
	why.Text += t.composedDeleted()

	return why
}

// composedDeleted returns which composed resources are being deleted, or are gone. With foreground
// propagation the garbage collector deletes the XR's dependents first, even if the XR is paused.
func (t *tree) composedDeleted() (text string) {
	const (
		left   = "; these were deleted while they only observed, so their external resources are still there, and nothing manages them: "
		too    = "; these are being deleted too, with their external resources: "
		absent = "; these were deleted before it, with their external resources unless they only observed, or never restored: "
	)
	found := map[string][]xp.Ref{}
	for _, r := range t.hold.Refs {
		u := t.snapshot.Get(r)
		_, unknown := t.snapshot.isUnknown(r)
		switch {
		case u == nil && !t.snapshot.leftBy(r).IsZero(), u != nil && u.GetDeletionTimestamp() != nil && !t.snapshot.leftExternalOf(u).IsZero():
			found[left] = append(found[left], r)
		case u == nil && !unknown:
			found[absent] = append(found[absent], r)
		case u != nil && u.GetDeletionTimestamp() != nil:
			found[too] = append(found[too], r)
		}
	}
	all := []string{text}
	for _, what := range []string{left, too, absent} {
		if len(found[what]) > 0 {
			all = append(all, what, xp.SomeOf(found[what]))
		}
	}

	return strings.Join(all, "")
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
func deletedManaged(u *unstructured.Unstructured, h *hold.Hold) reason.Message {
	if why := leftExternal(u, h); !why.IsZero() {
		return why
	}
	if !xp.IsPaused(u) {
		return reason.BeingDeleted.Messagef("%s is being deleted%s", xp.String(u), restoreAgainNext)
	}

	return reason.DeletedWhileHeld.Messagef("%s is being deleted, and its hold stops its provider from that; to delete it with its external resource, remove its "+
		"annotation %s; to keep that, first remove Delete from its managementPolicies (on v1 set deletionPolicy: Orphan), and restore it again when it is gone",
		xp.String(u), xp.AnnotationPaused)
}

// leftExternal returns that the provider of an MR, which is being deleted or gone, leaves its
// external resource behind only because the hold makes it observe; the zero Message if it does not.
// Without Delete in managementPolicies a provider takes its finalizer off at once (crossplane-runtime
// pkg/reconciler/managed/reconciler.go, policies.go), so its own policies would come too late.
func leftExternal(u *unstructured.Unstructured, h *hold.Hold) reason.Message {
	if !h.Observes || h.OwnPause() || xp.IsPaused(u) || !xp.OnlyObserves(u) {
		return reason.Message{}
	}
	own := u.DeepCopy()
	h.ReturnPolicies(own)
	if !xp.MayDelete(own) {
		return reason.Message{}
	}

	return reason.DeletedWhileObserved.Messagef("%s was deleted while it only observed, so its provider leaves its external resource %q behind, and nothing "+
		"manages that. Restore it again when it is gone, and it manages it as before; to delete both, delete it once it is released",
		xp.String(u), xp.Annotation(u, xp.AnnotationExternalName))
}

// leftBehind is what a deleted MR left behind.
type leftBehind struct {
	target *unstructured.Unstructured
	why    reason.Message
}

// keepDeleted records what an MR left behind that does not exist any more. u is its last state. One
// that is not being deleted has only left the listing that was watched.
func (s *Snapshot) keepDeleted(u *unstructured.Unstructured) {
	if u.GetDeletionTimestamp() == nil || !hold.IsMarked(u) {
		return
	}
	h, err := s.key.HoldOf(u)
	if err != nil || h == nil {
		return
	}
	if why := leftExternal(u, h); !why.IsZero() {
		r := cloneRef(xp.RefTo(u))
		s.leftBehind[r.ID()] = leftBehind{target: xp.IdentityOnly(r, u.GetUID(), ""), why: why}
	}
}

// leftBy returns what r left behind, which is not in the cluster any more, if that was seen.
func (s *Snapshot) leftBy(r xp.Ref) reason.Message { return s.leftBehind[r.ID()].why }

// LeftBehind returns the notices about MRs that were deleted while they only observed, in a stable
// order.
func (s *Snapshot) LeftBehind() []Notice {
	var notices []Notice
	for _, l := range s.leftBehind {
		notices = append(notices, Notice{Target: l.target, Event: EventStopped, Message: l.why.String(), Warning: true})
	}
	slices.SortFunc(notices, func(a, b Notice) int { return xp.RefTo(a.Target).Compare(xp.RefTo(b.Target)) })

	return notices
}

// leftExternalOf is leftExternal of the hold of u; the zero Message if there is none.
func (s *Snapshot) leftExternalOf(u *unstructured.Unstructured) reason.Message {
	h, err := s.holdOf(u)
	if err != nil || h == nil || !hold.IsMarked(u) {
		return reason.Message{}
	}

	return leftExternal(u, h)
}
