package adoption

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// warnStripped is what is told of what may have been reconciled without its hold, which is on
// again.
const warnStripped = "it came back without the hold that the restore had put on it, and is held again: resource modifiers of Velero's, a webhook or a policy " +
	"have taken it off, or somebody has: %s; see whether something has changed meanwhile, and have them leave the annotations " + AnnotationHold + " and " +
	xp.AnnotationPaused + " (docs/gitops.md)"

// stripped returns the hold that the Restore that asks has put on an object, if that is known, and
// the object has come back without it; nil otherwise. Whoever changes what is created can take a
// hold off before there is an object, so that nothing on this says that there was one.
func (s *Snapshot) stripped(u *unstructured.Unstructured) *Hold {
	q := s.investigation
	if q == nil || q.Held == nil || u == nil || xp.HasAnnotation(u, AnnotationHold) || !s.isOfRestore(u) || !s.isSuspect(u) {
		return nil
	}
	if u.GetCreationTimestamp().Time.Before(q.Started) {
		return nil // It was there, and was left as it is.
	}

	return q.Held(xp.RefTo(u).ID())
}

// heldAgain plans for an MR or a claim that has come back without its hold: it is put on again,
// also if its provider has looked at it. ok is false if there is nothing to do.
func (s *Snapshot) heldAgain(u *unstructured.Unstructured) (p Plan, ok bool) {
	if s.stripped(u) == nil {
		return Plan{}, false
	}
	if xp.IsManaged(u) {
		if p, ok = createdAnew(u); ok {
			return p, ok
		}
	}
	c, ok := s.holdMissing(u, s.investigation.Restore)
	if !ok {
		return Plan{}, false
	}
	c.Warning = fmt.Sprintf(warnStripped, removedBy(u))

	return Plan{Change: c, Moving: true}, true
}

// holdBelow puts the hold on again that what an XR composes, or its claim, has come back without.
// It reports whether there was one.
func (t *tree) holdBelow(r xp.Ref, u *unstructured.Unstructured) bool {
	p, ok := t.snapshot.heldAgain(u)
	switch {
	case !ok:
		return false
	case p.Failed != "":
		t.plan.Failed = fmt.Sprintf("%s stays held: %s", xp.String(t.xr.Unstructured), p.Failed)
	default:
		t.plan.Also = append(t.plan.Also, p.Change)
		t.wait(true, "%s: it came back without its hold, which is put on again", r)
	}

	return true
}

// keptIn is the Plan for what is in quarantine. Nothing is done about it, but that what belongs to
// it and has come back without its hold gets that again.
func (s *Snapshot) keptIn(u *unstructured.Unstructured, h *Hold) Plan {
	if !xp.IsComposite(u) {
		return quarantined(h)
	}
	t := tree{snapshot: s, xr: xp.CompositeFrom(u), hold: h, plan: quarantined(h)}
	for _, r := range h.Refs {
		t.holdBelow(r, s.Get(r))
	}
	if r, ok := t.xr.ClaimRef(); ok {
		if claim := s.Get(r); claim != nil && xp.Bound(xp.ClaimFrom(claim), t.xr) {
			t.holdBelow(r, claim)
		}
	}

	return t.plan
}

// isQuarantineBroken reports whether an XR or claim that is to be in quarantine has come back
// without its hold: another cluster may be at work on the same, so it is held again, whoever has
// reconciled it.
func (s *Snapshot) isQuarantineBroken(u *unstructured.Unstructured) bool {
	h := s.stripped(u)

	return h != nil && h.Quarantine
}
