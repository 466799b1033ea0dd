package hold

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// reasonTakenOver is the reason of the hold of an XR that another writer created first.
const reasonTakenOver = "another writer had created it before the restore, which gave it what it composed in the backup and left its spec; Crossplane " +
	"does not reconcile it until everything that it composes is restored [" + string(reason.AwaitingRestore) + "]"

// Composes reports whether u is an XR that has composed something, and that no restore holds. A mark
// that was not signed with the key is no hold.
func (k Key) Composes(u *unstructured.Unstructured) bool {
	if h, err := k.HoldOf(u); !xp.IsComposite(u) || err == nil && h != nil && !h.Freed {
		return false
	}
	refs, err := xp.CompositeFrom(u).ResourceRefs()

	return err != nil || len(refs) > 0
}

// CanTakeOver reports whether a live XR or claim, which another writer created before the restore,
// can be given the composed resources of the backup: it was not restored, is not held, has composed
// nothing, and Crossplane has not reconciled it successfully. An XR that was reconciled and lists
// nothing is meant to be empty.
func CanTakeOver(live *unstructured.Unstructured) bool {
	if live.GetDeletionTimestamp() != nil || xp.Label(live, xp.LabelRestore) != "" || xp.HasAnnotation(live, Annotation) {
		return false
	}
	c, said := xp.ConditionOf(live, xp.ConditionSynced)

	return !xp.HasComposed(live) && (!said || c.Status != "True")
}

// TakeOver plans to give a live XR or claim what the backup's item composed (references, revision,
// and the fields that only Crossplane writes), and to hold it as if it was restored. Its spec stays
// otherwise. of is as for Put, and labels are those that Velero writes on restored objects. The
// Change has no Step. It fails if the item composes nothing, or Put fails.
func (k Key) TakeOver(live, item *unstructured.Unstructured, of Hold, labels map[string]string) (Change, error) {
	after := live.DeepCopy()
	if err := xp.Inherit(after, item); err != nil {
		return Change{}, err
	}
	of.Reason = reasonTakenOver
	h, err := Put(after, of)
	if err != nil {
		return Change{}, err
	}
	h.TakenOver, h.Fields = true, "" // It exists, and has its managers.
	p := versioned(live)
	set(p, after.Object["spec"], "spec")
	metadata, _ := after.Object["metadata"].(map[string]any)
	for _, field := range []string{"annotations", "labels", "finalizers"} {
		if value := metadata[field]; value != nil { // An explicit null counts as taking them off.
			set(p, value, "metadata", field)
		}
	}
	set(p, k.mark(xp.RefTo(live), h), "metadata", "annotations", Annotation)
	for name, value := range labels {
		set(p, value, "metadata", "labels", name)
	}

	return Change{Target: live, Patch: p}, nil
}

// ReturnInherited returns the patch that returns the fields which u was given at its take-over to
// their managers in the backup. ok is false if this plugin manages only the hold.
func ReturnInherited(u, item *unstructured.Unstructured) (p map[string]any, ok bool) {
	entries := entriesOf(u)
	n := slices.IndexFunc(entries, func(m map[string]any) bool { return isOwn(m) && m["operation"] != operationApply })
	if n < 0 {
		return nil, false
	}
	ours := entries[n]
	left := managedNow(u, ours)
	if reflect.DeepEqual(left, ours) {
		return nil, false
	}
	entries = slices.Delete(entries, n, n+1)
	if left != nil {
		entries = append(entries, left)
	}
	paths := xp.InheritedPaths(item)
	for _, m := range entriesOf(item) {
		if !isOfSubresource(m) && !isOwn(m) {
			entries = returnFields(entries, m, ours, paths)
		}
	}

	return managersPatch(u, entries), true
}

// IsBeingTakenOver reports whether u was taken over and is not unpaused yet (being), and whether it
// lists all that the item composed (whole).
func (k Key) IsBeingTakenOver(u, item *unstructured.Unstructured) (being, whole bool) {
	h, err := k.HoldOf(u)
	if err != nil || h == nil || !h.IsBeingTakenOver(u) {
		return false, false
	}
	if !xp.IsClaim(item) {
		return true, h.ListsAll(u)
	}
	given, _ := xp.ClaimFrom(item).CompositeRef()
	r, bound := xp.ClaimFrom(u).CompositeRef()

	return true, bound && r.ID() == given.ID()
}

// IsBeingTakenOver reports whether u, which h holds, was taken over and is not unpaused yet.
func (h *Hold) IsBeingTakenOver(u *unstructured.Unstructured) bool {
	return h.TakenOver && h.Unpaused == "" && xp.IsPaused(u)
}

// ListsAll reports whether an XR lists all of Refs.
func (h *Hold) ListsAll(u *unstructured.Unstructured) bool {
	refs, err := xp.CompositeFrom(u).ResourceRefs()
	listed := xp.IDs(refs)

	return err == nil && !slices.ContainsFunc(h.Refs, func(r xp.Ref) bool { return !listed[r.ID()] })
}

// GiveUp returns the Change that removes what TakeOver put on an XR which Crossplane has composed
// meanwhile. Its Patch is nil if u is not held.
func (k Key) GiveUp(u *unstructured.Unstructured) Change {
	h, err := k.HoldOf(u)
	if err != nil || h == nil {
		return Change{}
	}

	return h.GiveUp(u)
}

// GiveUp returns the Change that removes what Key.TakeOver put on u, which h holds.
func (h *Hold) GiveUp(u *unstructured.Unstructured) Change {
	p := ReleasePatch(u, h)
	for _, name := range []string{xp.LabelRestore, xp.LabelBackup} {
		set(p, nil, "metadata", "labels", name)
	}

	return Change{Target: u, Patch: p}
}
