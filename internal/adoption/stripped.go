package adoption

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const warnStripped = "it was created without its hold, and is held again: a resource modifier of Velero, a webhook, a policy or another writer had " +
	"removed that: %s; check whether something has changed meanwhile, and make them leave the " +
	"annotations " + AnnotationHold + " and " + xp.AnnotationPaused + " (docs/gitops.md)"

// stripped returns the hold that the polling Restore put on u, if u was created without it and the
// hold is known; else nil. A program that changes objects at their creation can remove the hold
// before u exists, so that nothing on u shows it.
func (s *Snapshot) stripped(u *unstructured.Unstructured) *Hold {
	q := s.investigation
	if q == nil || q.Held == nil || u == nil || xp.HasAnnotation(u, AnnotationHold) || !s.isOfRestore(u) || !s.isSuspect(u) {
		return nil
	}
	if u.GetCreationTimestamp().Time.Before(q.Started) {
		return nil // It existed, and was left as it is.
	}

	return q.Held(xp.RefTo(u).ID())
}

// heldAgain plans to put the hold on again on an MR or a claim that was created without it, even if
// its controller has reconciled it. ok is false if nothing is to be done.
func (s *Snapshot) heldAgain(u *unstructured.Unstructured) (p Plan, ok bool) {
	if s.stripped(u) == nil {
		return Plan{}, false
	}
	if xp.IsManaged(u) {
		if p, ok = s.createdAgain(u); ok {
			return p, ok
		}
	}
	c, ok := s.holdMissing(u, s.investigation.Restore)
	if !ok {
		return Plan{}, false
	}
	c.Warning = reason.HoldRemoved.Messagef(warnStripped, lastWriterOf(u))

	return Plan{Change: c, Moving: true}, true
}

// holdBelow plans the same for a composed resource of an XR, or its claim, and reports whether
// there is such a hold.
func (t *tree) holdBelow(r xp.Ref, u *unstructured.Unstructured) bool {
	p, ok := t.snapshot.heldAgain(u)
	switch {
	case !ok:
		return false
	case !p.Failed.IsZero():
		t.plan.Failed = staysHeld(t.xr.Unstructured, p.Failed)
	default:
		t.plan.Also = append(t.plan.Also, p.Change)
		t.waitFor(r, true, reason.HoldRemoved.Messagef("%s: it was created without its hold, which is put on again", r))
	}

	return true
}

// quarantinePlan returns the Plan for an object in quarantine. Its only changes put the hold on
// again on what belongs to it and was created without its hold.
func (s *Snapshot) quarantinePlan(u *unstructured.Unstructured, h *Hold) Plan {
	if !xp.IsComposite(u) {
		return quarantined(h)
	}
	t := tree{snapshot: s, xr: xp.CompositeFrom(u), hold: h, plan: quarantined(h)}
	for _, r := range h.Refs {
		t.holdBelow(r, s.Get(r))
	}
	if claim := s.claimOf(t.xr); claim != nil {
		t.holdBelow(xp.RefTo(claim), claim)
	}

	return t.plan
}

// isQuarantineBroken reports whether an object that belongs in quarantine was created without its
// hold. It is held again even if reconciled: another cluster may manage the same external
// resources.
func (s *Snapshot) isQuarantineBroken(u *unstructured.Unstructured) bool {
	h := s.stripped(u)

	return h != nil && h.Quarantine
}
