package adoption

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const warnAgain = "another writer had removed its hold, which was put on again before Crossplane reconciled it: %s; stop that writer (docs/gitops.md)"

// StepAgain is the step that puts a hold on again.
const StepAgain = "put its hold on again, which another writer had removed before Crossplane reconciled it"

// fieldPolicies is the field of an MR that a hold can change.
const fieldPolicies = "managementPolicies"

// stepUnheld is the step that removes what a hold has left on an object.
const stepUnheld = "nothing holds it any more; give its own settings back"

// StepLost is the step that removes the rest of a hold from an object that was composed again.
const StepLost = "give its own settings back: another writer had removed its hold, and Crossplane has composed others"

// holdMissing plans to put the hold on again on an object that lost it and was not reconciled
// since, so nothing is lost yet. The former mark is not known, so the Refs are the current
// resourceRefs. ok is false if the Restore is not known, or the object can't be held.
func (s *Snapshot) holdMissing(u *unstructured.Unstructured, restore string) (c Change, ok bool) {
	h := s.missingHold(u, restore)
	if h == nil {
		return Change{}, false
	}

	return Change{Target: u, Patch: s.key.PutPatch(u, h), Step: StepAgain, Warning: reason.HoldRemoved.Messagef(warnAgain, LastWriterOf(u))}, true
}

// missingHold returns the hold to put on again; nil if none is possible.
func (s *Snapshot) missingHold(u *unstructured.Unstructured, restore string) *Hold {
	own, ok := WithoutHold(u)
	if restore == "" || !ok {
		return nil
	}
	of := Hold{}
	if kept := s.stripped(u); kept != nil {
		of = *kept
	}
	of.Restore, of.Since = restore, s.now.UTC().Format(time.RFC3339)
	of.Reason = cmp.Or(of.Reason, reason.HoldRemoved.Messagef(warnAgain, LastWriterOf(u)).String())
	h, err := Put(own, of)
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
	c.Warning = reason.HoldRemoved.Messagef(warnStripped, LastWriterOf(u))

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

// withoutPause plans for a marked XR whose pause (the hold's or the user's own) was removed by
// another writer. The pause is put on again if Crossplane has not reconciled the XR yet. ok is
// false if the pause was not removed, or its removal did no harm.
func (t *tree) withoutPause() (p Plan, ok bool) {
	u := t.xr.Unstructured
	if xp.IsPaused(u) || t.hold.Unpaused != "" || !t.snapshot.isSuspect(u) || !t.snapshot.isRequested(u) {
		return Plan{}, false
	}
	who := LastWriterOf(u)
	if isReconciledHere(u) {
		lost, replacements, known := t.snapshot.replaced(t.xr, false)
		p = t.lost(reason.ComposedAgain, "%s was reconciled before it was adopted, because another writer had removed its annotation %s: %s. Crossplane has "+
			"composed: %s; in place of what was restored: %s; %s", xp.String(u), xp.AnnotationPaused, who, xp.SomeOf(replacements), xp.SomeOf(lost), lostNext)
		p.Change = Change{Target: u, Patch: ReleasePatch(u, t.hold.WithPauseOf(u)), Step: StepLost}

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

// pinOf returns the update policy that u had before this plugin pinned it, according to its
// managedFields; nil if it had none. ok is false if u is not pinned, or another writer has set the
// same policy since.
func pinOf(u *unstructured.Unstructured) (own *string, ok bool) {
	inst := xp.Instance{Unstructured: u}
	if policy, _ := inst.UpdatePolicy(); policy != xp.UpdateManual {
		return nil, false
	}
	others, ours := othersAt(u, inst.UpdatePolicyPath())
	if !ours || slices.ContainsFunc(others, func(m map[string]any) bool { return isWrittenHere(u, m) }) {
		return nil, false
	}
	if len(others) > 0 { // Its manager in the backup had set another value, and the only other one is Automatic.
		return new(xp.UpdateAutomatic), true
	}

	return nil, true
}

// othersAt returns the other managers' entries with the field at path, and whether one is ours.
func othersAt(u *unstructured.Unstructured, path []string) (others []map[string]any, ours bool) {
	ours = slices.ContainsFunc(entriesOf(u), func(m map[string]any) bool { return isOwn(m) && manages(m, path) })

	return managersOf(managersBesides(u), [][]string{path}), ours
}

// HasPaused reports whether a hold paused u, according to its managedFields.
func HasPaused(u *unstructured.Unstructured) bool {
	if !xp.IsPaused(u) {
		return false
	}
	_, ours := othersAt(u, []string{"metadata", "annotations", xp.AnnotationPaused})

	return ours
}

// Unpin plans to give back the composition update policy of an object that is not held and still
// pinned. It does nothing during a hold's pause: else nothing would show whose pause that is.
func Unpin(u *unstructured.Unstructured) Change {
	own, pinned := pinOf(u)
	if !pinned || HasPaused(u) {
		return Change{}
	}
	path := xp.Instance{Unstructured: u}.UpdatePolicyPath()
	c := Change{Target: u, Patch: versioned(u), Step: stepUnheld}
	set(c.Patch, nullable(own), path...)
	if others, _ := othersAt(u, path); own != nil {
		c.Manager = writerOf(u, others, [][]string{path})
	}

	return c
}

// DropSettings plans to give back all settings that a hold has left on an XR or claim.
func DropSettings(u *unstructured.Unstructured) Change {
	if !HasPaused(u) {
		return Unpin(u)
	}
	own := u.DeepCopy()
	returnAnnotation(own, xp.AnnotationPaused, nil)
	c := Unpin(own)
	c.Target, c.Step = u, stepUnheld
	if c.Patch == nil {
		c.Patch = versioned(u)
	}
	set(c.Patch, nil, "metadata", "annotations", xp.AnnotationPaused)

	return c
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

// DropObservePolicy plans to remove the managementPolicies of a hold from an MR that is not held
// and had none of its own. ok is false for any other MR: its former policies are not known.
func DropObservePolicy(u *unstructured.Unstructured) (c Change, ok bool) {
	path := []string{"spec", fieldPolicies}
	others, ours := othersAt(u, path)
	if !ours || len(others) > 0 || !xp.OnlyObserves(u) {
		return Change{}, false
	}
	p := versioned(u)
	set(p, nil, path...)

	return Change{Target: u, Patch: p, Step: "nothing holds it any more; take the managementPolicies of its hold off"}, true
}

// WithoutHold returns a copy of an XR or claim, whose mark another writer has removed, without the
// pause and the pin of the hold. ok is false if its user has paused it, or its policy can't be set.
func WithoutHold(u *unstructured.Unstructured) (own *unstructured.Unstructured, ok bool) {
	own = u.DeepCopy()
	if HasPaused(u) {
		returnAnnotation(own, xp.AnnotationPaused, nil)
	}
	if xp.IsPaused(own) {
		return nil, false // An object that its user has paused stays as it is.
	}
	if policy, pinned := pinOf(u); pinned && returnUpdatePolicy(own, policy) != nil {
		return nil, false
	}

	return own, true
}

// LeftoverSetting returns the name of a field or annotation that a hold has left on an unmarked
// object, according to its managedFields; "" if there is none.
func LeftoverSetting(u *unstructured.Unstructured) string {
	switch _, pinned := pinOf(u); {
	case xp.HasAnnotation(u, AnnotationHold):
	case HasPaused(u):
		return xp.AnnotationPaused
	case pinned:
		return "compositionUpdatePolicy"
	case xp.OnlyObserves(u):
		if _, ours := othersAt(u, []string{"spec", fieldPolicies}); ours {
			return fieldPolicies
		}
	}

	return ""
}

// LastWriterOf returns who probably removed the hold of u, or changed it while it was held: the last
// writer since its creation in this cluster, except controllers.
func LastWriterOf(u *unstructured.Unstructured) string {
	var last map[string]any
	for _, m := range entriesOf(u) {
		name := text(m, "manager")
		if name == "" || isOfSubresource(m) || isControllers(name) || !isWrittenHere(u, m) {
			continue
		}
		if last == nil || timeOf(m).After(timeOf(last)) {
			last = m
		}
	}
	if last == nil {
		return "its managedFields do not name that writer (kubectl get --show-managed-fields)"
	}

	return fmt.Sprintf("the last to write it was %q (%s, %s)", text(last, "manager"), text(last, "operation"), text(last, "time"))
}

// timeOf returns the time of an entry of managedFields; zero for none.
func timeOf(entry map[string]any) time.Time { return xp.ParseTime(text(entry, "time")) }

// isWrittenHere reports whether an entry of managedFields was written since the object was created
// in this cluster. Entries of the backup are older.
func isWrittenHere(u *unstructured.Unstructured, entry map[string]any) bool {
	written := timeOf(entry)

	return !written.IsZero() && !written.Before(u.GetCreationTimestamp().Time)
}

// isControllers reports whether a manager is Crossplane (crossplane
// internal/controller/apiextensions, FieldOwner), a provider, Velero, this plugin, or the API
// server's name for unknown managers (apimachinery pkg/util/managedfields).
func isControllers(manager string) bool {
	switch manager {
	case "before-first-apply", "ancient-changes", FieldManager, managerVelero, "crossplane":
		return true
	default:
		return strings.Contains(manager, "crossplane.io/") || strings.HasPrefix(manager, "provider")
	}
}
