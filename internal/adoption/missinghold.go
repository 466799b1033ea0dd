package adoption

import (
	"cmp"
	"fmt"
	"maps"
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
		Warning: reason.HoldRemoved.Messagef(warnAgain, lastWriterOf(u)),
	}, true
}

// missingHold returns the hold to put on again; nil if none is possible.
func (s *Snapshot) missingHold(u *unstructured.Unstructured, restore string) *Hold {
	if restore == "" || xp.IsPaused(u) && !isHoldPause(u) {
		return nil // An object that its user has paused stays as it is.
	}
	own := u.DeepCopy()
	if policy, pinned := pinOf(own); pinned {
		if policy == nil {
			xp.Instance{Unstructured: own}.RemoveUpdatePolicy()
		} else if err := (xp.Instance{Unstructured: own}).SetUpdatePolicy(*policy); err != nil {
			return nil
		}
	}
	if isHoldPause(own) {
		annotations := own.GetAnnotations()
		delete(annotations, xp.AnnotationPaused)
		own.SetAnnotations(annotations)
	}
	of := Hold{Reason: reason.HoldRemoved.Messagef(warnAgain, lastWriterOf(u)).String()}
	if kept := s.stripped(u); kept != nil {
		of = *kept
		of.Reason = cmp.Or(kept.Reason, reason.HoldRemoved.Messagef(warnAgain, lastWriterOf(u)).String())
	}
	of.Restore, of.Since = restore, s.now.UTC().Format(time.RFC3339)
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

const (
	fieldUpdatePolicy = "compositionUpdatePolicy"
	fieldPolicies     = "managementPolicies"
)

// withoutPause plans for a marked XR whose pause (the hold's or the user's own) was removed by
// another writer. The pause is put on again if Crossplane has not reconciled the XR yet. ok is
// false if the pause was not removed, or its removal did no harm.
func (t *tree) withoutPause(u *unstructured.Unstructured) (p Plan, ok bool) {
	if xp.IsPaused(u) || t.hold.Unpaused != "" || !t.snapshot.isSuspect(u) || !t.snapshot.isRequested(u) {
		return Plan{}, false
	}
	who := lastWriterOf(u)
	if isReconciledHere(u) {
		lost, replacements, known := t.snapshot.replaced(t.xr, false)
		if len(lost) == 0 || !known {
			return Plan{}, false
		}

		gone := Change{Target: u, Patch: releasePatch(u, t.hold.withPauseOf(u)), Step: StepLost}

		return Plan{Lost: true, Total: t.plan.Total, Change: gone, Failed: reason.ComposedAgain.Messagef("%s was reconciled before it was adopted, because another "+
			"writer had removed its annotation %s: %s. Crossplane has composed: %s; in place of what was restored: %s; %s", xp.String(u), xp.AnnotationPaused, who,
			xp.SomeOf(replacements), xp.SomeOf(lost), lostNext)}, true
	}
	h := *t.hold
	if h.Again = true; h.ownPause() {
		h.Paused = nil // The user had paused it, and has now removed the pause.
	}
	mark, err := t.snapshot.key.mark(xp.RefTo(u), &h)
	if err != nil {
		return Plan{}, false
	}
	t.change(u, patch(u, map[string]any{AnnotationHold: mark, xp.AnnotationPaused: "true"}), StepAgain)
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
	if !ours {
		return nil, false
	}
	for _, m := range others {
		if isWrittenHere(u, m) {
			return nil, false
		}
	}
	if len(others) > 0 { // Its manager in the backup had set another value, and the only other one is Automatic.
		return new(xp.UpdateAutomatic), true
	}

	return nil, true
}

// othersAt returns the other managers' entries with the field at path, and whether one is ours.
func othersAt(u *unstructured.Unstructured, path []string) (others []map[string]any, ours bool) {
	ours = slices.ContainsFunc(entriesOf(u), func(m map[string]any) bool {
		_, manages := managedAt(m, path)

		return manages && isOwn(m)
	})

	return managersOf(managersBesides(u), [][]string{path}), ours
}

// isHoldPause reports whether a hold paused u, according to its managedFields.
func isHoldPause(u *unstructured.Unstructured) bool {
	if !xp.IsPaused(u) {
		return false
	}
	_, ours := othersAt(u, []string{"metadata", "annotations", xp.AnnotationPaused})

	return ours
}

// unpin plans to give back the composition update policy of an object that is not held and still
// pinned. It does nothing during a hold's pause: else nothing would show whose pause that is.
func unpin(u *unstructured.Unstructured) Change {
	if isHoldPause(u) {
		return Change{}
	}

	return returnPolicy(u)
}

// returnPolicy is unpin without the check for a pause.
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

// unpinAndUnpause is unpin, and also removes the pause of a hold.
func unpinAndUnpause(u *unstructured.Unstructured) Change {
	c := returnPolicy(u)
	if !isHoldPause(u) {
		return c
	}
	c.Target, c.Step = u, "nothing holds it any more; give its own settings back"
	if c.Patch == nil {
		c.Patch = patch(u, map[string]any{})
	}
	set(c.Patch, nil, "metadata", "annotations", xp.AnnotationPaused)

	return c
}

// withPauseOf returns the hold with another writer's change to the pause of u: removed, or another
// value. If u is unpaused it keeps a recorded value other than "true".
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

// dropObservePolicy plans to remove the managementPolicies of a hold from an MR that is not held
// and had none of its own. ok is false for any other MR: its former policies are not known.
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

// LeftoverSetting returns the name of a field or annotation that a hold has left on an unmarked
// object, according to its managedFields; "" if there is none.
func LeftoverSetting(u *unstructured.Unstructured) string {
	if xp.HasAnnotation(u, AnnotationHold) {
		return ""
	}
	if isHoldPause(u) {
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

// lastWriterOf returns who probably removed the hold of u, or changed it while it was held.
func lastWriterOf(u *unstructured.Unstructured) string {
	manager, operation, when, ok := lastWriter(u)
	if !ok {
		return "its managedFields do not name that writer (kubectl get --show-managed-fields)"
	}

	return fmt.Sprintf("the last to write it was %q (%s, %s)", manager, operation, when)
}

// lastWriter returns the last writer of u since its creation in this cluster, except Crossplane,
// providers, Velero and this plugin.
func lastWriter(u *unstructured.Unstructured) (manager, operation, when string, ok bool) {
	var last time.Time
	for _, m := range entriesOf(u) {
		name, _ := m["manager"].(string)
		sub, _ := m["subresource"].(string)
		if name == "" || sub != "" || isControllers(name) || !isWrittenHere(u, m) {
			continue
		}
		stamp, _ := m["time"].(string)
		written := parseTime(stamp)
		if ok && !written.After(last) {
			continue
		}
		manager, when, last, ok = name, stamp, written, true
		operation, _ = m["operation"].(string)
	}

	return manager, operation, when, ok
}

// isWrittenHere reports whether an entry of managedFields was written since the object was created
// in this cluster. Entries of the backup are older.
func isWrittenHere(u *unstructured.Unstructured, entry map[string]any) bool {
	stamp, _ := entry["time"].(string)
	written := parseTime(stamp)

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
