package hold

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const managerVelero = "velero-server"

// isStray reports whether an entry of managedFields is left by a restore that was stopped between
// the creation of u and the write of the backup's managedFields: Velero's entry, or this plugin's
// entry of a restored status. An entry that an earlier restore left in the backed-up cluster is
// older than u.
func isStray(u *unstructured.Unstructured, entry map[string]any) bool {
	return isWrittenHere(u, entry) && (entry["manager"] == managerVelero || isOfOwnStatus(entry))
}

// isOfOwnStatus reports whether an entry of managedFields is this plugin's, of a subresource.
func isOfOwnStatus(entry map[string]any) bool {
	return entry["manager"] == FieldManager && !isOwn(entry)
}

// IsStray reports whether a restore stopped between creating u and writing its managedFields.
func IsStray(u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(entriesOf(u), func(m map[string]any) bool { return isStray(u, m) })
}

// ReturnManagers returns the patch that writes the managedFields of u after IsStray: those of item,
// as Velero would create it now, with what others have written since. ok is false if there is
// nothing to write.
func ReturnManagers(u, item *unstructured.Unstructured) (p map[string]any, ok bool) {
	theirs := entriesOf(item)
	if !IsStray(u) || len(theirs) == 0 {
		return nil, false
	}
	var entries []map[string]any
	for _, m := range theirs {
		if isOwn(m) {
			m = managedNow(u, m)
		}
		if m != nil {
			entries = append(entries, m)
		}
	}

	return managersPatch(u, withSince(entries, managersBesides(u))), true
}

// withSince returns managedFields with the entries written since. A newer entry of an applier
// replaces its older one, since it has all that the applier wants. Other entries of a manager are
// united: the newer one has only what that manager has changed since Velero created the object.
func withSince(entries, since []map[string]any) []map[string]any {
	for _, m := range since {
		n := slices.IndexFunc(entries, func(e map[string]any) bool { return isSame(e, m) || isOwn(e) && isOwn(m) })
		switch {
		case n < 0:
			entries = append(entries, m)
		case isOwn(m):
			entries[n] = united(entries[n], m) // It is the applied entry, which Applied continues.
		case m["operation"] == operationApply:
			entries[n] = m
		default:
			entries[n] = united(m, entries[n])
		}
	}

	return entries
}

// managedNow returns an entry of a hold with only the fields that u has; nil if none, or not held.
func managedNow(u *unstructured.Unstructured, entry map[string]any) map[string]any {
	if !xp.HasAnnotation(u, Annotation) {
		return nil
	}
	there := slices.DeleteFunc(managedPaths(u), func(path []string) bool {
		_, ok, err := unstructured.NestedFieldNoCopy(u.Object, path...)

		return !ok || err != nil
	})

	return withFields(entry, fieldsAt(entry, there))
}

// ReturnedStatus returns the patch that returns fields of a status to their managers before this
// plugin wrote them. ok is false if this plugin manages none.
func ReturnedStatus(before, after *unstructured.Unstructured, fields map[string]any) (p map[string]any, ok bool) {
	var paths [][]string
	for name := range fields {
		paths = append(paths, []string{"status", name})
	}
	entries := entriesOf(after)
	n := slices.IndexFunc(entries, isOfOwnStatus)
	if n < 0 {
		return nil, false
	}
	ours := entries[n]
	entries = slices.DeleteFunc(entries, isOfOwnStatus)
	for _, m := range entriesOf(before) {
		if !isOfOwnStatus(m) {
			entries = returnFields(entries, m, ours, paths)
		}
	}

	return managersPatch(after, entries), true
}
