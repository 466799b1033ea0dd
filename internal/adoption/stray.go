package adoption

import (
	"maps"
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
	written, _ := entry["time"].(string)
	since := !parseTime(written).Before(u.GetCreationTimestamp().Time)

	return since && (entry["manager"] == managerVelero || entry["manager"] == FieldManager && !isOwn(entry))
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
		if n < 0 {
			entries = append(entries, m)

			continue
		}
		base := m
		if isOwn(m) {
			base = entries[n] // It is the applied entry, which Applied continues.
		}
		all := maps.Clone(base)
		if isOwn(m) || m["operation"] != operationApply {
			before, _ := entries[n]["fieldsV1"].(map[string]any)
			fields, _ := m["fieldsV1"].(map[string]any)
			all["fieldsV1"] = union(before, fields)
		}
		entries[n] = all
	}

	return entries
}

// managedNow returns an entry of a hold with only the fields that u has; nil if none, or not held.
func managedNow(u *unstructured.Unstructured, entry map[string]any) map[string]any {
	if !xp.HasAnnotation(u, AnnotationHold) {
		return nil
	}
	fields := map[string]any{}
	for _, path := range managedPaths(u) {
		_, there, err := unstructured.NestedFieldNoCopy(u.Object, path...)
		if of, ok := managedAt(entry, path); ok && there && err == nil {
			set(fields, of, fieldNames(path)...)
		}
	}

	return withFields(entry, fields)
}

// ReturnedStatus returns the patch that returns fields of a status to their managers before this
// plugin wrote them. ok is false if this plugin manages none.
func ReturnedStatus(before, after *unstructured.Unstructured, fields map[string]any) (p map[string]any, ok bool) {
	var paths [][]string
	for name := range fields {
		paths = append(paths, []string{"status", name})
	}
	entries := entriesOf(after)
	isOurs := func(m map[string]any) bool { return m["manager"] == FieldManager && !isOwn(m) }
	n := slices.IndexFunc(entries, isOurs)
	if n < 0 {
		return nil, false
	}
	ours := entries[n]
	entries = slices.DeleteFunc(entries, isOurs)
	for _, m := range entriesOf(before) {
		if !isOurs(m) {
			entries = returnFields(entries, m, ours, paths)
		}
	}

	return managersPatch(after, entries), true
}

// managersPatch returns a merge patch of managedFields. The API server refuses it if u has changed
// since it was observed.
func managersPatch(u *unstructured.Unstructured, entries []map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"resourceVersion": u.GetResourceVersion(), "managedFields": withEntries(entries)}}
}
