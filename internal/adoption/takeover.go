package adoption

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// reasonTakenOver is why an XR is held that somebody else had made before a restore could.
const reasonTakenOver = "it was made by somebody else before it was restored from a backup, and was given what it composed then; its spec is theirs. " +
	"Crossplane is kept from reconciling this until everything it composes is back. " + lifted

// pausedBy are the marks of pauses that are no person's.
var pausedBy = []string{xp.AnnotationPausedByGuard, xp.AnnotationExchange} //nolint:gochecknoglobals // It is a constant list.

// CanTakeOver reports whether a live XR or claim, as somebody has made it that a restore was to
// bring back too, can be given what that composed: no restore has created it, nothing holds it, it
// has composed nothing, and Crossplane has not reconciled it with success. An XR that it has, and
// that lists nothing, wants nothing.
func CanTakeOver(live *unstructured.Unstructured) bool {
	if live.GetDeletionTimestamp() != nil || xp.Label(live, xp.LabelRestore) != "" || xp.HasAnnotation(live, AnnotationHold) {
		return false
	}
	c, said := xp.ConditionOf(live, xp.ConditionSynced)

	return !xp.HasComposed(live) && (!said || c.Status != "True")
}

// TakeOver plans to give a live XR or claim that CanTakeOver what the item of a backup composed,
// and to hold it as if a restore had created it: its references, its revision, and what only
// Crossplane writes. Its spec stays as it is. Of the hold it takes what Put does, and the labels
// are what Velero writes on what it creates. It fails if the item composes nothing, or what Put
// refuses.
func (k Key) TakeOver(live, item *unstructured.Unstructured, of Hold, labels map[string]string) (Change, error) {
	after := live.DeepCopy()
	if err := xp.Inherit(after, item); err != nil {
		return Change{}, err
	}
	of.Reason = reasonTakenOver
	marks := slices.DeleteFunc(slices.Clone(pausedBy), func(mark string) bool { return !xp.HasAnnotation(live, mark) })
	for _, mark := range marks {
		unstructured.RemoveNestedField(after.Object, "metadata", "annotations", mark)
		unstructured.RemoveNestedField(after.Object, "metadata", "annotations", xp.AnnotationPaused)
	}
	h, err := Put(after, of)
	if err != nil {
		return Change{}, err
	}
	h.TakenOver, h.Fields = true, "" // It exists, with those that manage it.
	mark, err := k.mark(xp.RefTo(live), h)
	if err != nil {
		return Change{}, err
	}
	annotations := map[string]any{}
	for name, value := range after.GetAnnotations() {
		annotations[name] = value
	}
	annotations[AnnotationHold] = mark
	for _, mark := range marks {
		annotations[mark] = nil // From here on the hold pauses it.
	}
	p := patch(live, annotations)
	set(p, after.GetFinalizers(), "metadata", "finalizers")
	all := map[string]string{}
	maps.Copy(all, after.GetLabels())
	maps.Copy(all, labels)
	set(p, all, "metadata", "labels")
	set(p, after.Object["spec"], "spec")

	return Change{Target: live, Patch: p}, nil
}

// ReturnInherited is the patch that has those manage what an XR or a claim was given when it was
// taken over who did in the backup; ok is false if this plugin manages nothing but the hold.
func ReturnInherited(u, item *unstructured.Unstructured) (p map[string]any, ok bool) {
	entries := entriesOf(u)
	n := slices.IndexFunc(entries, func(m map[string]any) bool { return isOwn(m) && m["operation"] != operationApply })
	if n < 0 {
		return nil, false
	}
	ours := entries[n]
	left := managedNow(u, ours)
	if isEqual(left, ours) {
		return nil, false
	}
	entries = slices.Delete(entries, n, n+1)
	if left != nil {
		entries = append(entries, left)
	}
	paths := xp.InheritedPaths(item)
	for _, m := range entriesOf(item) {
		if status, _ := m["subresource"].(string); status == "" && !isOwn(m) {
			entries = manageAgain(entries, m, ours, paths)
		}
	}

	return managersPatch(u, entries), true
}

// IsBeingTakenOver returns whether an XR or a claim was taken over and Crossplane was not let go on
// with it yet, and whether it lists what the item composed.
func (k Key) IsBeingTakenOver(u, item *unstructured.Unstructured) (being, whole bool) {
	h, err := k.HoldOf(u)
	if err != nil || h == nil || !h.isBeingTakenOver(u) {
		return false, false
	}
	if !xp.IsClaim(item) {
		return true, h.listsAll(u)
	}
	given, _ := xp.ClaimFrom(item).CompositeRef()
	r, bound := xp.ClaimFrom(u).CompositeRef()

	return true, bound && r.ID() == given.ID()
}

func (h *Hold) isBeingTakenOver(u *unstructured.Unstructured) bool {
	return h.TakenOver && h.Unpaused == "" && xp.IsPaused(u)
}

// listsAll reports whether an XR lists all that it was given.
func (h *Hold) listsAll(u *unstructured.Unstructured) bool {
	refs, err := xp.CompositeFrom(u).ResourceRefs()

	return err == nil && !slices.ContainsFunc(h.Refs, func(given xp.Ref) bool {
		return !slices.ContainsFunc(refs, func(r xp.Ref) bool { return r.ID() == given.ID() })
	})
}

// overtaken is the Plan for an XR that was taken over while Crossplane can still be writing what it
// was about to, or has; ok is false if it lists what it was given and goes on doing so.
func (t *tree) overtaken() (p Plan, ok bool) {
	u := t.xr.Unstructured
	switch {
	case !t.hold.isBeingTakenOver(u):
		return Plan{}, false
	case !isSeenPaused(u):
		t.wait(true, "%s: somebody else had made it, and Crossplane has not said yet that it is paused; is Crossplane running?", xp.RefTo(u))

		return t.plan, true
	case t.hold.listsAll(u):
		return Plan{}, false
	}
	refs, _ := t.xr.ResourceRefs()

	return Plan{
		Lost: true, Total: t.plan.Total, Change: giveUp(u, t.hold),
		Failed: fmt.Sprintf("%s was made by somebody else before it was restored, and Crossplane has composed it anew: %s. What it composed in the backup is not in "+
			"the cluster, or has no XR: %s; nothing of that is deleted by itself. To have what it composed in the backup: %s", xp.String(u), someOf(refs),
			someOf(t.hold.Refs), xp.ExchangeCommand(xp.RefTo(u))),
	}, true
}

// IsSeenPaused reports whether Crossplane has said that u, as it is, is paused. Until it has it can
// be in the middle of reconciling what u was.
func IsSeenPaused(u *unstructured.Unstructured) bool { return isSeenPaused(u) }

// GiveUp is the change that takes off what TakeOver has put on an XR that Crossplane has composed
// by then. Its Patch is nil if it is not held any more.
func (k Key) GiveUp(u *unstructured.Unstructured) Change {
	h, err := k.HoldOf(u)
	if err != nil || h == nil {
		return Change{}
	}

	return giveUp(u, h)
}

func giveUp(u *unstructured.Unstructured, h *Hold) Change {
	p := releasePatch(u, h)
	for _, name := range []string{xp.LabelRestore, xp.LabelBackup} {
		set(p, nil, "metadata", "labels", name)
	}

	return Change{Target: u, Patch: p}
}
