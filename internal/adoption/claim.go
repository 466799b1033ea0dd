package adoption

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// nextForClaim plans for a claim whose XR did not exist when the claim was restored.
func nextForClaim(s *Snapshot, claim xp.Claim, h *hold.Hold) Plan {
	if h == nil {
		t := tree{snapshot: s}
		t.checkReleased(claim.Unstructured)
		t.plan.Done = len(t.plan.Waiting) == 0 && t.plan.Patch == nil

		return s.planUnheldClaim(claim, t.plan)
	}
	const stays = "%s stays held, so that Crossplane composes no second XR for it: its XR %s "
	r, ok := claim.CompositeRef()
	if !ok {
		u := claim.Unstructured

		return s.planManual(u, h, Plan{Change: s.key.Lift(u, h, "it had no XR in the backup; give its own settings back")})
	}
	if t := (tree{snapshot: s}); t.awaitKnown(r) {
		return t.plan
	}
	switch u := s.Get(r); {
	case claim.GetDeletionTimestamp() != nil:
		return Plan{Failed: deletedClaim(claim.Unstructured, r)}
	case u == nil:
		return Plan{Failed: reason.ClaimWithoutXR.Messagef(stays+"was not restored. Restore again from a backup that has the XR, without "+
			"--include-cluster-resources=false", xp.String(claim.Unstructured), r.Name)}
	case !xp.Bound(claim, xp.CompositeFrom(u)):
		return Plan{Failed: reason.ClaimWithoutXR.Messagef(stays+"is not bound to it. Correct the claimRef of %s or the resourceRef of the claim, then restore again",
			xp.String(claim.Unstructured), r.Name, r)}
	case xp.IsClaim(u): // An object that is its own XR would be planned for without end.
		return Plan{Failed: reason.ClaimAndXR.Messagef(stays+"looks like a claim too. Correct the resourceRef of the claim, then restore again",
			xp.String(claim.Unstructured), r.Name)}
	default:
		return next(s, r)
	}
}

// claimOf returns the claim of an XR; nil if there is none. Any XR can name any claim, so both must
// name each other.
func (s *Snapshot) claimOf(xr xp.Composite) *unstructured.Unstructured {
	r, ok := xr.ClaimRef()
	if !ok {
		return nil
	}
	if claim := s.Get(r); claim != nil && xp.Bound(xp.ClaimFrom(claim), xr) {
		return claim
	}

	return nil
}

// releaseClaim plans the release of the XR's claim, and reports whether nothing is left to do for
// it. The XR keeps its mark until Crossplane has reconciled a claim that this plugin held.
func (t *tree) releaseClaim() bool {
	r, ok := t.xr.ClaimRef()
	if !ok {
		return true
	}
	if t.awaitKnown(r) {
		return false
	}
	claim := t.snapshot.claimOf(t.xr)
	if claim == nil {
		return !t.awaitReference(r)
	}
	h, err := t.snapshot.holdOf(claim)
	switch {
	case err != nil:
		t.waitFor(r, false, whyUnusable(claim, err))
	case h != nil && h.Quarantine:
		t.awaitQuarantineEnd(r, h)
	case h != nil:
		t.releaseHeldClaim(claim, h)

		return false
	case t.hold == nil:
		t.checkReleased(claim)
		if t.snapshot.isSuspect(claim) && t.snapshot.isOfRestore(claim) && t.plan.Patch == nil {
			t.plan.Change = hold.DropSettings(claim) // A hold has left settings on it.
		}
	case !xp.IsPaused(claim):
		t.checkReconciled(claim)
		t.clearRequest(claim)
	}

	return len(t.plan.Waiting) == 0 && t.plan.Patch == nil
}

// awaitReference waits until the restored claim names its XR again, and reports whether it has to.
func (t *tree) awaitReference(r xp.Ref) bool {
	claim, found := t.claimOfThisRestore()
	if !found || t.hold == nil {
		return false
	}
	if _, named := xp.ClaimFrom(claim).CompositeRef(); named {
		return false
	}
	t.waitFor(r, true, reason.ClaimReplaced.Messagef("%s: another writer has removed its hold and its resourceRef, and Crossplane will create another XR. "+
		"Give it its resourceRef back at once", r))

	return true
}

// unclaimed returns the Plan for an adopted XR whose claim has another XR; else p. A GitOps
// controller can apply the claim before the restore, and Crossplane then creates a new XR for it.
func (t *tree) unclaimed(p Plan) Plan {
	r, ok := t.xr.ClaimRef()
	if !ok || !p.Done || t.snapshot.investigation == nil || !t.snapshot.isRequested(t.xr.Unstructured) {
		return p
	}
	claim := t.snapshot.Get(r)
	if claim == nil {
		return p
	}
	other, named := xp.ClaimFrom(claim).CompositeRef()
	if !named || other.ID() == xp.RefTo(t.xr.Unstructured).ID() {
		return p
	}
	p.Done, p.Lost = false, true
	p.Failed = reason.ComposedTwice.Messagef("%s is adopted, but its claim %s already had another XR, %s, so what both compose may exist twice. Nothing of "+
		"that is deleted. To give the claim this one, %s", xp.String(t.xr.Unstructured), r, other, xp.HowToGetBack(r))

	return p
}

// holdClaimAgain plans to put the hold of the XR's claim on again, if another writer has removed
// it. Crossplane copies settings of a claim to its XR, such as the composition update policy. While
// the XR is paused this plugin has not released the claim, so the removal is not its own.
func (t *tree) holdClaimAgain() {
	r, ok := t.xr.ClaimRef()
	if !ok || t.awaitKnown(r) {
		return
	}
	claim := t.snapshot.claimOf(t.xr)
	if claim == nil || !t.snapshot.isSuspect(claim) {
		return
	}
	if h, err := t.snapshot.holdOf(claim); h != nil || err != nil {
		return
	}
	if c, ok := t.snapshot.holdMissing(claim, t.hold.Restore); ok {
		t.plan.Also = append(t.plan.Also, c)
		t.waitFor(r, true, reason.HoldRemoved.Messagef("%s: another writer has removed its hold, which is put on again", r))
	}
}

// releaseHeldClaim plans the release of a held claim whose XR is adopted.
func (t *tree) releaseHeldClaim(claim *unstructured.Unstructured, h *hold.Hold) {
	if h.Freed {
		t.plan.Change = t.snapshot.key.Lift(claim, h, hold.StepFreed)

		return
	}
	if t.plan.Failed = t.claimDeleted(); !t.plan.Failed.IsZero() {
		return
	}
	switch {
	case xp.IsPaused(claim) && xp.IsClaim(claim) && h.OwnPause():
		t.checkStatus(claim, h) // It stays paused, so no reconcile needs a proof.
	case xp.IsPaused(claim):
		t.checkSeen(claim)
	default:
		t.checkReconciled(claim) // Another writer has removed the pause. That does no harm while the XR is held.
	}
	if len(t.plan.Waiting) == 0 && !t.takeSecret(claim) && !t.awaitUser(xp.RefTo(claim), h) {
		t.plan.Change = t.snapshot.key.Lift(claim, h.WithPauseOf(claim), "its XR is adopted; give its own settings back")
		t.plan.Warning = changedFollowing(claim, h)
	}
}
