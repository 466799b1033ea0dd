package adoption

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// managersBesides returns the managedFields of u except those that isStray.
func managersBesides(u *unstructured.Unstructured) []map[string]any {
	return slices.DeleteFunc(entriesOf(u), func(m map[string]any) bool { return isStray(u, m) })
}

// managersOf returns the entries of other managers that have any of the given fields, reduced to
// these. It leaves out this plugin and subresources.
func managersOf(managers []map[string]any, fields [][]string) []map[string]any {
	var of []map[string]any
	for _, m := range managers {
		if isOwn(m) || m["subresource"] != nil && m["subresource"] != "" {
			continue
		}
		theirs := map[string]any{}
		for _, path := range fields {
			if value, ok := managedAt(m, path); ok {
				set(theirs, value, fieldNames(path)...)
			}
		}
		if m = withFields(m, theirs); m != nil {
			of = append(of, m)
		}
	}

	return of
}

// writesAs reports whether a patch under the manager's name leaves the manager's entry with all of
// the fields: it has them all now, by an Update in u's version.
func writesAs(u *unstructured.Unstructured, manager map[string]any, fields [][]string) bool {
	for _, path := range fields {
		if _, ok := managedAt(manager, path); !ok {
			return false
		}
	}
	name, _ := manager["manager"].(string)

	return name != "" && manager["operation"] == "Update" && manager["apiVersion"] == u.GetAPIVersion()
}

// managersAfter returns the managedFields of u after its hold.
func managersAfter(u *unstructured.Unstructured, h *Hold) []any {
	entries := entriesOf(u)
	ours := ownEntry(entries)
	entries = slices.DeleteFunc(entries, func(m map[string]any) bool { return isOwn(m) || isStray(u, m) })
	if IsStray(u) {
		entries = withSince(unpackManagers(h.Fields), entries)
	}
	for _, manager := range managersIn(h) {
		entries = returnFields(entries, manager, ours, managedPaths(u))
	}

	return withEntries(entries)
}

// withEntries returns managedFields to write. The API server ignores an empty list, so an empty
// entry takes its place and clears them.
func withEntries(entries []map[string]any) []any {
	list := make([]any, 0, len(entries)+1)
	for _, m := range entries {
		list = append(list, m)
	}
	if len(list) == 0 {
		list = append(list, map[string]any{})
	}

	return list
}

// ownEntry returns one entry with all fields of this plugin; nil if there are none.
func ownEntry(entries []map[string]any) map[string]any {
	all := map[string]any{}
	for _, m := range entries {
		if fields, ok := m["fieldsV1"].(map[string]any); ok && isOwn(m) {
			all = union(all, fields)
		}
	}

	return withFields(map[string]any{}, all)
}

// returnFields returns the fields to a manager that are still as this plugin wrote them. paths are
// the candidates, ours is this plugin's entry.
func returnFields(entries []map[string]any, manager, ours map[string]any, paths [][]string) []map[string]any {
	fields := map[string]any{}
	for _, path := range paths {
		theirs, was := managedAt(manager, path)
		if _, written := managedAt(ours, path); was && written {
			set(fields, theirs, fieldNames(path)...)
		}
		// A parent that did not exist was created with the field, and belongs to the manager, too.
		for n := 1; n < len(path); n++ {
			if of := path[:n:n]; managesItself(manager, of) && managesItself(ours, of) {
				set(fields, map[string]any{}, append(fieldNames(of), selfField)...)
			}
		}
	}
	if len(fields) == 0 {
		return entries
	}

	for n, m := range entries {
		if !isSame(m, manager) {
			continue
		}
		m = maps.Clone(m)
		all, _ := m["fieldsV1"].(map[string]any)
		m["fieldsV1"] = union(all, fields)
		entries[n] = m

		return entries
	}

	return append(entries, withFields(manager, fields))
}

// managesItself reports whether an entry of managedFields has the field at path, not only children.
func managesItself(entry map[string]any, path []string) bool {
	_, ok, err := unstructured.NestedFieldNoCopy(entry, append(append([]string{"fieldsV1"}, fieldNames(path)...), selfField)...)

	return ok && err == nil
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

// isSame reports whether two entries of managedFields belong to the same manager.
func isSame(a, b map[string]any) bool {
	for _, key := range []string{"manager", "operation", "apiVersion", "subresource"} {
		x, _ := a[key].(string)
		if y, _ := b[key].(string); x != y {
			return false
		}
	}

	return true
}

// union returns the fields of either set, in the form of managedFields. It changes neither.
func union(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
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

// selfField is the key by which a set of fields includes the parent field itself.
const selfField = "."

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
	var held [][]string
	for _, path := range managedPaths(u) {
		held = append(held, fieldNames(path))
	}

	return xp.HasAnnotation(u, AnnotationHold) && slices.ContainsFunc(entriesOf(u), func(m map[string]any) bool {
		fields, _ := m["fieldsV1"].(map[string]any)

		return isOwn(m) && !isWithin(fields, held)
	})
}

// WithoutOwn returns the patch after which this plugin manages nothing of u; ok is false if it is
// so.
func WithoutOwn(u *unstructured.Unstructured) (p map[string]any, ok bool) {
	entries := entriesOf(u)
	others := slices.DeleteFunc(slices.Clone(entries), isOwn)
	if len(others) == len(entries) {
		return nil, false
	}

	return managersPatch(u, others), true
}
