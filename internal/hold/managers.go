package hold

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// FieldManager is this plugin's name in managedFields.
const FieldManager = xp.Program

const (
	operationApply = "Apply"
	// selfField is the key by which a set of fields includes the parent field itself.
	selfField = "."
)

// Manage adds an entry to the managedFields of u, which is about to be created from backup, as
// if this plugin had applied the hold server-side. Applied continues with this entry.
//
// Velero creates an object, and then writes the managedFields of the backup (velero
// pkg/restore/restore.go, restoreItem). A field without a manager in them is removed with its
// parent map when the map's manager gives that up: "kubectl apply --server-side" gives up
// metadata.annotations that "kubectl apply" managed, and so would remove the mark and the pause.
//
// It does nothing if u has no readable managedFields: then Velero writes none, and stays the
// manager of all that it created.
func Manage(u, backup *unstructured.Unstructured, now time.Time) {
	entries, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
	list, _ := entries.([]any)
	if len(list) == 0 || !xp.HasAnnotation(u, Annotation) {
		return
	}
	// An entry of this name is from an earlier hold, or any writer's. A list with only an empty entry
	// clears managedFields, and an empty entry beside others is invalid.
	list = slices.DeleteFunc(slices.Clone(list), func(entry any) bool {
		m, ok := entry.(map[string]any)

		return !ok || isOwn(m) || len(m) == 0
	})
	fields := map[string]any{}
	for _, path := range managedPaths(u) {
		was, _, _ := unstructured.NestedFieldNoCopy(backup.Object, path...)
		is, ok, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
		if name := path[len(path)-1]; ok && name != xp.AnnotationReconcileRequested && (name == Annotation || !reflect.DeepEqual(is, was)) {
			set(fields, map[string]any{}, fieldNames(path)...)
		}
	}
	set(u.Object, append(list, map[string]any{
		"manager": FieldManager, "operation": operationApply, "apiVersion": u.GetAPIVersion(), "time": now.UTC().Format(time.RFC3339),
		"fieldsType": "FieldsV1", "fieldsV1": fields,
	}), "metadata", "managedFields")
}

// managedPaths returns the fields that a hold changes. For a Secret, which is never held, it returns
// its data and type: the manager of the data published it, and made its owner the owner.
func managedPaths(u *unstructured.Unstructured) [][]string {
	if xp.IsConnectionSecret(u) {
		return [][]string{{"data"}, {"type"}}
	}
	paths := [][]string{{"spec", fieldPolicies}, xp.Instance{Unstructured: u}.UpdatePolicyPath()}
	for _, name := range []string{Annotation, xp.AnnotationPaused, xp.AnnotationRestoreStatus, xp.AnnotationReconcileRequested} {
		paths = append(paths, []string{"metadata", "annotations", name})
	}

	return paths
}

// Managers returns the managedFields of u, reduced to the fields that a hold changes and the maps
// that these are in; this plugin's entries are whole. It leaves out what can't be read, and returns
// nil if there are none.
func Managers(u *unstructured.Unstructured) []any {
	var managers []any
	paths := managedPaths(u)
	for _, m := range entriesOf(u) {
		if !isOwn(m) {
			fields := fieldsAt(m, paths)
			for _, path := range paths {
				for n := 1; n < len(path); n++ {
					if parent := path[:n]; manages(m, parent) && !manages(map[string]any{"fieldsV1": fields}, parent) {
						set(fields, map[string]any{}, fieldNames(parent)...)
					}
				}
			}
			m = maps.Clone(m)
			m["fieldsV1"] = fields
		}
		managers = append(managers, m)
	}

	return managers
}

// entriesOf returns the managedFields of u that are maps.
func entriesOf(u *unstructured.Unstructured) []map[string]any {
	return xp.Maps(u.Object, "metadata", "managedFields")
}

// managersPatch returns a merge patch of managedFields.
func managersPatch(u *unstructured.Unstructured, entries []map[string]any) map[string]any {
	p := versioned(u)
	set(p, withEntries(entries), "metadata", "managedFields")

	return p
}

// withEntries returns managedFields to write. The API server ignores an empty list, so an empty
// entry takes its place and clears them.
func withEntries(entries []map[string]any) []map[string]any {
	if len(entries) == 0 {
		return []map[string]any{{}}
	}

	return entries
}

// managedAt returns the part of an entry of managedFields at path; ok is false if it has none.
func managedAt(entry map[string]any, path []string) (of any, ok bool) {
	of, ok, err := unstructured.NestedFieldNoCopy(entry, append([]string{"fieldsV1"}, fieldNames(path)...)...)

	return of, ok && err == nil
}

// manages reports whether an entry of managedFields has the field at path, or a part of it.
func manages(entry map[string]any, path []string) bool {
	_, ok := managedAt(entry, path)

	return ok
}

// managesItself reports whether an entry of managedFields has the field at path, not only children.
func managesItself(entry map[string]any, path []string) bool {
	of, _ := managedAt(entry, path)
	fields, _ := of.(map[string]any)
	_, ok := fields[selfField]

	return ok
}

// fieldsAt returns the fields of an entry of managedFields that are at or below the paths.
func fieldsAt(entry map[string]any, paths [][]string) map[string]any {
	fields := map[string]any{}
	for _, path := range paths {
		if of, ok := managedAt(entry, path); ok {
			set(fields, of, fieldNames(path)...)
		}
	}

	return fields
}

func fieldsOf(entry map[string]any) map[string]any {
	fields, _ := entry["fieldsV1"].(map[string]any)

	return fields
}

func fieldNames(path []string) []string {
	names := make([]string, 0, len(path))
	for _, name := range path {
		names = append(names, "f:"+name)
	}

	return names
}

// isOwn reports whether an entry of managedFields is this plugin's, and of no subresource.
func isOwn(entry map[string]any) bool {
	return entry["manager"] == FieldManager && !isOfSubresource(entry)
}

func isOfSubresource(entry map[string]any) bool { return text(entry, "subresource") != "" }

// text returns an attribute of an entry of managedFields; "" for none.
func text(entry map[string]any, name string) string {
	value, _ := entry[name].(string)

	return value
}

// managersBesides returns the managedFields of u except those that isStray.
func managersBesides(u *unstructured.Unstructured) []map[string]any {
	return slices.DeleteFunc(entriesOf(u), func(m map[string]any) bool { return isStray(u, m) })
}

// managersOf returns the entries of other managers that have any of the given fields, reduced to
// these. It leaves out this plugin and subresources.
func managersOf(managers []map[string]any, fields [][]string) []map[string]any {
	var of []map[string]any
	for _, m := range managers {
		if theirs := withFields(m, fieldsAt(m, fields)); theirs != nil && !isOwn(m) && !isOfSubresource(m) {
			of = append(of, theirs)
		}
	}

	return of
}

// writerOf returns the name of the only manager in of, if a patch under that name leaves the entry
// with all of the fields: it has them all now, by an Update in u's version; else "".
func writerOf(u *unstructured.Unstructured, of []map[string]any, fields [][]string) string {
	if len(of) != 1 || of[0]["operation"] != "Update" || of[0]["apiVersion"] != u.GetAPIVersion() ||
		slices.ContainsFunc(fields, func(path []string) bool { return !manages(of[0], path) }) {
		return ""
	}

	return text(of[0], "manager")
}

// managersAfter returns the managedFields of u after its hold.
func managersAfter(u *unstructured.Unstructured, h *Hold) []map[string]any {
	entries := entriesOf(u)
	ours := ownEntry(entries)
	entries = slices.DeleteFunc(entries, func(m map[string]any) bool { return isOwn(m) || isStray(u, m) })
	if IsStray(u) {
		entries = withSince(unpackManagers(h.Fields), entries)
	}
	for _, manager := range h.Managers {
		entries = returnFields(entries, manager, ours, managedPaths(u))
	}

	return withEntries(entries)
}

// ownEntry returns one entry with all fields of this plugin; nil if there are none.
func ownEntry(entries []map[string]any) map[string]any {
	all := map[string]any{}
	for _, m := range entries {
		if isOwn(m) {
			all = union(all, fieldsOf(m))
		}
	}

	return withFields(map[string]any{}, all)
}

// returnFields returns the fields to a manager that are still as this plugin wrote them. paths are
// the candidates, ours is this plugin's entry.
func returnFields(entries []map[string]any, manager, ours map[string]any, paths [][]string) []map[string]any {
	written := slices.DeleteFunc(slices.Clone(paths), func(path []string) bool { return !manages(ours, path) })
	fields := fieldsAt(manager, written)
	for _, path := range paths {
		// A parent that did not exist was created with the field, and belongs to the manager, too.
		for n := 1; n < len(path); n++ {
			if of := path[:n:n]; managesItself(manager, of) && managesItself(ours, of) {
				set(fields, map[string]any{}, append(fieldNames(of), selfField)...)
			}
		}
	}
	returned := withFields(manager, fields)
	if returned == nil {
		return entries
	}
	if n := slices.IndexFunc(entries, func(m map[string]any) bool { return isSame(m, manager) }); n >= 0 {
		entries[n] = united(entries[n], returned)

		return entries
	}

	return append(entries, returned)
}

// withFields returns a copy of the entry with other fields; nil if there are no fields.
func withFields(entry, fields map[string]any) map[string]any {
	if len(fields) == 0 {
		return nil
	}
	entry = maps.Clone(entry)
	entry["fieldsV1"] = fields

	return entry
}

// united returns a copy of the entry with the fields of both.
func united(entry, other map[string]any) map[string]any {
	entry = maps.Clone(entry)
	entry["fieldsV1"] = union(fieldsOf(entry), fieldsOf(other))

	return entry
}

// isSame reports whether two entries of managedFields belong to the same manager.
func isSame(a, b map[string]any) bool {
	return !slices.ContainsFunc([]string{"manager", "operation", "apiVersion", "subresource"}, func(name string) bool { return text(a, name) != text(b, name) })
}

// union returns the fields of either set, in the form of managedFields. It changes neither.
func union(a, b map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, a)
	for name, of := range b {
		inA, both := out[name].(map[string]any)
		inB, _ := of.(map[string]any)
		switch {
		case !both:
			out[name] = of
		case name != selfField:
			out[name] = union(wholeField(inA), wholeField(inB))
		}
	}

	return out
}

// wholeField returns a set of fields; an empty one stands for the parent field, which it adds.
func wholeField(fields map[string]any) map[string]any {
	if len(fields) == 0 {
		return map[string]any{selfField: map[string]any{}}
	}

	return fields
}

// managesMore reports whether this plugin manages more of u than a hold changes: it gives a nested XR
// its controller during the hold.
func managesMore(u *unstructured.Unstructured) bool {
	return xp.HasAnnotation(u, Annotation) &&
		slices.ContainsFunc(entriesOf(u), func(m map[string]any) bool { return isOwn(m) && !isOfHold(u, m) })
}

// isOfHold reports whether an entry of managedFields has no other fields than a hold changes.
func isOfHold(u *unstructured.Unstructured, entry map[string]any) bool {
	var held [][]string
	for _, path := range managedPaths(u) {
		held = append(held, fieldNames(path))
	}

	return isWithin(fieldsOf(entry), held)
}

// isWithin reports whether everything that a patch changes, or that a set of managedFields has, is
// at or below one of the given paths. It ignores the resourceVersion of a patch.
func isWithin(m map[string]any, fields [][]string) bool {
	for name, value := range m {
		var in [][]string
		for _, path := range fields {
			if path[0] == name {
				in = append(in, path[1:])
			}
		}
		next, isMap := value.(map[string]any)
		switch {
		case slices.ContainsFunc(in, func(rest []string) bool { return len(rest) == 0 }), name == "resourceVersion":
		case len(in) == 0, !isMap, !isWithin(next, in):
			return false
		}
	}

	return true
}

// WithoutOwn returns the patch after which this plugin manages nothing of u; ok is false if it is
// so.
func WithoutOwn(u *unstructured.Unstructured) (p map[string]any, ok bool) {
	entries := entriesOf(u)
	others := slices.DeleteFunc(slices.Clone(entries), isOwn)

	return managersPatch(u, others), len(others) < len(entries)
}
