package adoption

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// reasonAgain is why something is held again.
const reasonAgain = "its hold had been taken off before Crossplane reconciled it, and is on again: %s. " + lifted

// warnAgain is what is told of that.
const warnAgain = "its hold had been taken off, and was put on again before Crossplane reconciled it: %s; have them stop (docs/gitops.md)"

// StepAgain is the step that puts a hold on again.
const StepAgain = "its hold had been taken off; put it on again, since Crossplane has not reconciled it yet"

// StepLost is the step that takes what is left of a hold off what was composed anew.
const StepLost = "its hold had been taken off, and it was composed anew; give its own settings back"

// holdMissing plans to put a hold on what has lost it and was not reconciled since: nothing is lost
// yet. Of what it had nobody knows more than what it says itself, so its references are those that
// it has now. ok is false if nobody knows which Restore that is for, or it can't be held.
func (s *Snapshot) holdMissing(u *unstructured.Unstructured, restore string) (c Change, ok bool) {
	h := s.missingHold(u, restore)
	if h == nil {
		return Change{}, false
	}
	mark, err := s.key.mark(xp.RefTo(u), h)
	if err != nil {
		return Change{}, false
	}
	p := patch(u, map[string]any{AnnotationHold: mark, xp.AnnotationPaused: "true"})
	if policy, _ := (xp.Instance{Unstructured: u}).UpdatePolicy(); h.Pinned && policy != xp.UpdateManual {
		maps.Copy(p, xp.Instance{Unstructured: u}.Field(fieldUpdatePolicy, xp.UpdateManual))
	}

	return Change{
		Target: u, Patch: p, Step: StepAgain,
		Warning: fmt.Sprintf(warnAgain, removedBy(u)),
	}, true
}

// missingHold is the hold that what has lost it can have again, nil if none.
func (s *Snapshot) missingHold(u *unstructured.Unstructured, restore string) *Hold {
	if restore == "" || xp.IsPaused(u) && !isOurPause(u) {
		return nil // What its person has paused stays as it is.
	}
	own := u.DeepCopy()
	if policy, pinned := pinOf(own); pinned {
		if policy == nil {
			xp.Instance{Unstructured: own}.RemoveUpdatePolicy()
		} else if err := (xp.Instance{Unstructured: own}).SetUpdatePolicy(*policy); err != nil {
			return nil
		}
	}
	if isOurPause(own) {
		annotations := own.GetAnnotations()
		delete(annotations, xp.AnnotationPaused)
		own.SetAnnotations(annotations)
	}
	of := Hold{Reason: fmt.Sprintf(reasonAgain, removedBy(u))}
	if kept := s.stripped(u); kept != nil {
		of = *kept
		of.Reason = cmp.Or(kept.Reason, fmt.Sprintf(reasonAgain, removedBy(u)))
	}
	of.Restore, of.Since = restore, s.now.UTC().Format(time.RFC3339)
	h, err := Put(own, of)
	if err != nil {
		return nil
	}
	if of.Observes && xp.OnlyObserves(u) {
		h.Observes, h.Policies = true, of.Policies
	}
	h.Again, h.Fields = true, "" // It exists, with those that manage it.

	return h
}

// Fields that a hold changes.
const (
	fieldUpdatePolicy = "compositionUpdatePolicy"
	fieldPolicies     = "managementPolicies"
)

// withoutPause plans for an XR of which somebody has taken the pause off, the hold's or their own,
// and left the mark: it is put on again if Crossplane has not reconciled it yet. ok is false if
// nobody has, or it did no harm.
func (t *tree) withoutPause(u *unstructured.Unstructured) (p Plan, ok bool) {
	if xp.IsPaused(u) || t.hold.Unpaused != "" || !t.snapshot.isSuspect(u) || !t.snapshot.isRequested(u) {
		return Plan{}, false
	}
	who := removedBy(u)
	if isReconciledHere(u) {
		lost, anew, known := t.snapshot.replaced(t.xr, false)
		if len(lost) == 0 || !known {
			return Plan{}, false
		}

		gone := Change{Target: u, Patch: releasePatch(u, t.hold.withPauseOf(u)), Step: StepLost}

		return Plan{Lost: true, Total: t.plan.Total, Change: gone, Failed: fmt.Sprintf("%s was reconciled before it was adopted, since its annotation %s had been "+
			"taken off: %s. Crossplane has made anew: %s; and the XR does not reference any more what was restored: %s; %s", xp.String(u), xp.AnnotationPaused, who,
			someOf(anew), someOf(lost), lostNext)}, true
	}
	h := *t.hold
	if h.Again = true; h.ownPause() {
		h.Paused = nil // Its person had paused it, and does not want that any more.
	}
	mark, err := t.snapshot.key.mark(xp.RefTo(u), &h)
	if err != nil {
		return Plan{}, false
	}
	t.change(u, patch(u, map[string]any{AnnotationHold: mark, xp.AnnotationPaused: "true"}), StepAgain)
	t.plan.Warning, t.plan.Moving = fmt.Sprintf(warnAgain, who), true

	return t.plan, true
}

// pinOf returns the own composition update policy of what this plugin has pinned, as its
// managedFields say; nil if it had none. ok is false if it is not pinned, or somebody else has
// written the same since.
func pinOf(u *unstructured.Unstructured) (own *string, ok bool) {
	inst := xp.Instance{Unstructured: u}
	if policy, _ := inst.UpdatePolicy(); policy != xp.UpdateManual {
		return nil, false
	}
	others, ours := othersAt(u, inst.UpdatePolicyPath())
	if !ours {
		return nil, false
	}
	for _, m := range others {
		if isWrittenHere(u, m) {
			return nil, false
		}
	}
	if len(others) > 0 { // Who has managed it in the backup had another value there, and there is only one.
		return new(xp.UpdateAutomatic), true
	}

	return nil, true
}

// othersAt returns the entries of managedFields that others than this plugin have for a field, and
// whether this plugin has one.
func othersAt(u *unstructured.Unstructured, path []string) (others []map[string]any, ours bool) {
	ours = slices.ContainsFunc(entriesOf(u), func(m map[string]any) bool {
		_, manages := managedAt(m, path)

		return manages && isOwn(m)
	})

	return managersOf(managersBesides(u), [][]string{path}), ours
}

// isOurPause reports whether the pause of an object is that of a hold, as its managedFields say.
func isOurPause(u *unstructured.Unstructured) bool {
	if !xp.IsPaused(u) {
		return false
	}
	_, ours := othersAt(u, []string{"metadata", "annotations", xp.AnnotationPaused})

	return ours
}

// unpin plans to give back the composition update policy of what is not held and still has that of
// a hold. What is still paused by that stays as it is: nobody could tell any more whose pause it
// is.
func unpin(u *unstructured.Unstructured) Change {
	if isOurPause(u) {
		return Change{}
	}

	return returnPolicy(u)
}

// returnPolicy is unpin, also for what is paused.
func returnPolicy(u *unstructured.Unstructured) Change {
	own, pinned := pinOf(u)
	if !pinned {
		return Change{}
	}
	inst := xp.Instance{Unstructured: u}
	p := map[string]any{"metadata": map[string]any{"resourceVersion": u.GetResourceVersion()}}
	maps.Copy(p, inst.Field(fieldUpdatePolicy, nullable(own)))
	c := Change{Target: u, Patch: p, Step: "nothing holds it any more; give its composition update policy back"}
	path := inst.UpdatePolicyPath()
	if others, _ := othersAt(u, path); own != nil && len(others) == 1 && writesAs(u, others[0], [][]string{path}) {
		c.Manager, _ = others[0]["manager"].(string)
	}

	return c
}

// free is unpin, and takes the pause of a hold off too.
func free(u *unstructured.Unstructured) Change {
	c := returnPolicy(u)
	if !isOurPause(u) {
		return c
	}
	c.Target, c.Step = u, "nothing holds it any more; give its own settings back"
	if c.Patch == nil {
		c.Patch = patch(u, map[string]any{})
	}
	set(c.Patch, nil, "metadata", "annotations", xp.AnnotationPaused)

	return c
}

// withPauseOf is the hold with what somebody has made of the pause of u, which it had put on or its
// person wanted: they have taken it off, or given it another value. What was let go on has none.
func (h *Hold) withPauseOf(u *unstructured.Unstructured) *Hold {
	value, ok := u.GetAnnotations()[xp.AnnotationPaused]
	theirs := *h
	switch {
	case xp.IsPaused(u):
	case ok:
		theirs.Paused = &value
	case h.ownPause():
		theirs.Paused = nil
	}

	return &theirs
}

// dropObservePolicy plans to take the managementPolicies of a hold off an MR that is not held and
// that had none of its own; ok is false if it is not so. Those that it had nobody knows.
func dropObservePolicy(u *unstructured.Unstructured) (c Change, ok bool) {
	path := []string{"spec", fieldPolicies}
	others, ours := othersAt(u, path)
	if !ours || len(others) > 0 || !xp.OnlyObserves(u) {
		return Change{}, false
	}
	p := map[string]any{"metadata": map[string]any{"resourceVersion": u.GetResourceVersion()}}
	set(p, nil, path...)

	return Change{Target: u, Patch: p, Step: "nothing holds it any more; take the managementPolicies of its hold off"}, true
}

// LeftoverSetting returns the field or annotation that a hold has left on what has no mark, as its
// managedFields say; "" if there is none.
func LeftoverSetting(u *unstructured.Unstructured) string {
	if xp.HasAnnotation(u, AnnotationHold) {
		return ""
	}
	if isOurPause(u) {
		return xp.AnnotationPaused
	}
	if _, pinned := pinOf(u); pinned {
		return fieldUpdatePolicy
	}
	if !xp.OnlyObserves(u) {
		return ""
	}
	if _, ours := othersAt(u, []string{"spec", fieldPolicies}); ours {
		return fieldPolicies
	}

	return ""
}

// removedBy says who has probably taken the hold off an object.
func removedBy(u *unstructured.Unstructured) string {
	return writtenBy(u, "who has taken it off is not known, since its managedFields name nobody (kubectl get --show-managed-fields)")
}

// writtenBy says who has written an object last, or that it is not known.
func writtenBy(u *unstructured.Unstructured, unknown string) string {
	manager, operation, when, ok := lastWriter(u)
	if !ok {
		return unknown
	}

	return fmt.Sprintf("the last to write it was %q (%s, %s)", manager, operation, when)
}

// lastWriter returns who has written an object last since it was created here, but for Crossplane,
// its provider, Velero and this plugin.
func lastWriter(u *unstructured.Unstructured) (manager, operation, when string, ok bool) {
	var last time.Time
	for _, m := range entriesOf(u) {
		name, _ := m["manager"].(string)
		sub, _ := m["subresource"].(string)
		if name == "" || sub != "" || isControllers(name) || !isWrittenHere(u, m) {
			continue
		}
		stamp, _ := m["time"].(string)
		written := at(stamp)
		if ok && !written.After(last) {
			continue
		}
		manager, when, last, ok = name, stamp, written, true
		operation, _ = m["operation"].(string)
	}

	return manager, operation, when, ok
}

// isWrittenHere reports whether an entry of managedFields was written since the object was created
// here. Those of the backup are older.
func isWrittenHere(u *unstructured.Unstructured, entry map[string]any) bool {
	stamp, _ := entry["time"].(string)
	written := at(stamp)

	return !written.IsZero() && !written.Before(u.GetCreationTimestamp().Time)
}

// isControllers reports whether a manager is Crossplane (crossplane
// internal/controller/apiextensions, FieldOwner), a provider, Velero or this plugin. The API server
// has names for whose managedFields it does not know, or not any more (apimachinery
// pkg/util/managedfields): what these have nobody has chosen.
func isControllers(manager string) bool {
	switch manager {
	case "before-first-apply", "ancient-changes", FieldManager, managerVelero, "crossplane":
		return true
	default:
		return strings.Contains(manager, "crossplane.io/") || strings.HasPrefix(manager, "provider")
	}
}
