package adoption

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const warnAgain = "another writer had removed its hold, which was put on again before Crossplane reconciled it: %s; stop that writer (docs/gitops.md)"

// StepAgain is the step that puts a hold on again.
const StepAgain = "put its hold on again, which another writer had removed before Crossplane reconciled it"

// StepLost is the step that removes the rest of a hold from an object that was composed again.
const StepLost = "give its own settings back: another writer had removed its hold, and Crossplane has composed others"

// holdMissing plans to put the hold on again on an object that lost it and was not reconciled
// since, so nothing is lost yet. The former mark is not known, so the Refs are the current
// resourceRefs. ok is false if the Restore is not known, or the object can't be held.
func (s *Snapshot) holdMissing(u *unstructured.Unstructured, restore string) (c hold.Change, ok bool) {
	h := s.missingHold(u, restore)
	if h == nil {
		return hold.Change{}, false
	}

	return hold.Change{Target: u, Patch: s.key.PutPatch(u, h), Step: StepAgain, Warning: reason.HoldRemoved.Messagef(warnAgain, hold.LastWriterOf(u))}, true
}

// missingHold returns the hold to put on again; nil if none is possible.
func (s *Snapshot) missingHold(u *unstructured.Unstructured, restore string) *hold.Hold {
	own, ok := hold.WithoutHold(u)
	if restore == "" || !ok {
		return nil
	}
	of := hold.Hold{}
	if kept := s.stripped(u); kept != nil {
		of = *kept
	}
	of.Restore, of.Since = restore, s.now.UTC().Format(time.RFC3339)
	of.Reason = cmp.Or(of.Reason, reason.HoldRemoved.Messagef(warnAgain, hold.LastWriterOf(u)).String())
	h, err := hold.Put(own, of)
	if err != nil {
		return nil
	}
	if of.Observes && xp.OnlyObserves(u) {
		h.Observes, h.Policies = true, of.Policies
	}
	h.Again, h.Fields = true, "" // It exists, and has its managers.

	return h
}

const warnStripped = "it was created without its hold, and is held again: a resource modifier of Velero, a webhook, a policy or another writer had " +
	"removed that: %s; check whether something has changed meanwhile, and make them leave the " +
	"annotations " + hold.Annotation + " and " + xp.AnnotationPaused + " (docs/gitops.md)"

// stripped returns the hold that the polling Restore put on u, if u was created without it and the
// hold is known; else nil. A program that changes objects at their creation can remove the hold
// before u exists, so that nothing on u shows it.
func (s *Snapshot) stripped(u *unstructured.Unstructured) *hold.Hold {
	q := s.investigation
	if q == nil || q.Held == nil || u == nil || xp.HasAnnotation(u, hold.Annotation) || !s.isOfRestore(u) || !s.isSuspect(u) {
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
	c.Warning = reason.HoldRemoved.Messagef(warnStripped, hold.LastWriterOf(u))

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

// withoutPause plans for a marked XR whose pause (the hold's or the user's own) was removed by
// another writer. The pause is put on again if Crossplane has not reconciled the XR yet. ok is
// false if the pause was not removed, or its removal did no harm.
func (t *tree) withoutPause() (p Plan, ok bool) {
	u := t.xr.Unstructured
	if xp.IsPaused(u) || t.hold.Unpaused != "" || !t.snapshot.isSuspect(u) || !t.snapshot.isRequested(u) {
		return Plan{}, false
	}
	who := hold.LastWriterOf(u)
	if isReconciledHere(u) {
		lost, replacements, known := t.snapshot.replaced(t.xr, false)
		p = t.lost(reason.ComposedAgain, "%s was reconciled before it was adopted, because another writer had removed its annotation %s: %s. Crossplane has "+
			"composed: %s; in place of what was restored: %s; %s", xp.String(u), xp.AnnotationPaused, who, xp.SomeOf(replacements), xp.SomeOf(lost), lostNext)
		p.Change = hold.Change{Target: u, Patch: hold.ReleasePatch(u, t.hold.WithPauseOf(u)), Step: StepLost}

		return p, len(lost) > 0 && known
	}
	h := *t.hold
	if h.Again = true; h.OwnPause() {
		h.Paused = nil // The user had paused it, and has now removed the pause.
	}
	t.change(u, t.snapshot.key.PausePatch(u, &h), StepAgain)
	t.plan.Warning, t.plan.Moving = reason.HoldRemoved.Messagef(warnAgain, who), true

	return t.plan, true
}
