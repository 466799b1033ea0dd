package adoption

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

// ManageHold adds an entry to the managedFields of u, which is about to be created from backup, as
// if this plugin had applied the hold server-side. Applied continues with this entry.
//
// Velero creates an object, and then writes the managedFields of the backup (velero
// pkg/restore/restore.go, restoreItem). A field without a manager in them is removed with its
// parent map when the map's manager gives that up: "kubectl apply --server-side" gives up
// metadata.annotations that "kubectl apply" managed, and so would remove the mark and the pause.
//
// It does nothing if u has no readable managedFields: then Velero writes none, and stays the
// manager of all that it created.
func ManageHold(u, backup *unstructured.Unstructured, now time.Time) {
	entries, found, err := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
	if err != nil || !found || len(entries) == 0 || !xp.HasAnnotation(u, AnnotationHold) {
		return
	}
	// An entry of this name is from an earlier hold, or any writer's.
	entries = slices.DeleteFunc(entries, func(entry any) bool {
		m, ok := entry.(map[string]any)

		return ok && (isOwn(m) || len(m) == 0) // A list with only an empty entry clears managedFields, and an empty entry beside others is invalid.
	})
	fields := map[string]any{}
	for _, name := range []string{AnnotationHold, xp.AnnotationPaused, xp.AnnotationRestoreStatus} {
		if value, ok := u.GetAnnotations()[name]; ok && (name == AnnotationHold || value != backup.GetAnnotations()[name]) {
			addField(fields, "metadata", "annotations", name)
		}
	}
	for _, path := range heldPaths(u) {
		was, _, _ := unstructured.NestedFieldNoCopy(backup.Object, path...)
		if is, ok, _ := unstructured.NestedFieldNoCopy(u.Object, path...); ok && !reflect.DeepEqual(is, was) {
			addField(fields, path...)
		}
	}
	entries = append(entries, map[string]any{
		"manager": FieldManager, "operation": operationApply, "apiVersion": u.GetAPIVersion(), "time": now.UTC().Format(time.RFC3339),
		"fieldsType": "FieldsV1", "fieldsV1": fields,
	})
	_ = unstructured.SetNestedSlice(u.Object, entries, "metadata", "managedFields") // The path was just read.
}

// heldPaths returns the fields, besides annotations, that a hold changes.
func heldPaths(u *unstructured.Unstructured) [][]string {
	return [][]string{{"spec", "managementPolicies"}, xp.Instance{Unstructured: u}.UpdatePolicyPath()}
}

// managedPaths returns all fields that a hold changes. For a Secret, which is never held, it
// returns its data and type: the manager of the data published it, and made its owner the owner.
func managedPaths(u *unstructured.Unstructured) [][]string {
	if xp.IsConnectionSecret(u) {
		return [][]string{{"data"}, {"type"}}
	}
	paths := heldPaths(u)
	for _, name := range []string{AnnotationHold, xp.AnnotationPaused, xp.AnnotationRestoreStatus, xp.AnnotationReconcileRequested} {
		paths = append(paths, []string{"metadata", "annotations", name})
	}

	return paths
}

// Managers returns the managedFields of u, reduced to the fields that a hold changes; this plugin's
// entries are whole. It leaves out what can't be read, and returns nil if there are none.
func Managers(u *unstructured.Unstructured) []any {
	var managers []any
	paths := managedPaths(u)
	for _, entry := range entriesOf(u) {
		if isOwn(entry) {
			managers = append(managers, entry)

			continue
		}
		m := maps.Clone(entry)
		fields := map[string]any{}
		for _, path := range paths {
			if of, ok := managedAt(entry, path); ok {
				set(fields, of, fieldNames(path)...)
			}
		}
		m["fieldsV1"] = fields
		managers = append(managers, m)
	}

	return managers
}

// entriesOf returns the managedFields of u that are maps.
func entriesOf(u *unstructured.Unstructured) []map[string]any {
	return mapsAt(u, "metadata", "managedFields")
}

// mapsAt returns the elements of a list in u that are maps.
func mapsAt(u *unstructured.Unstructured, path ...string) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	all, _ := list.([]any)
	entries := make([]map[string]any, 0, len(all))
	for _, e := range all {
		if entry, ok := e.(map[string]any); ok {
			entries = append(entries, entry)
		}
	}

	return entries
}

// managedAt returns the part of an entry of managedFields at path; ok is false if it has none.
func managedAt(entry map[string]any, path []string) (of any, ok bool) {
	of, ok, err := unstructured.NestedFieldNoCopy(entry, append([]string{"fieldsV1"}, fieldNames(path)...)...)

	return of, ok && err == nil
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
	return entry["manager"] == FieldManager && (entry["subresource"] == nil || entry["subresource"] == "")
}

func addField(fields map[string]any, path ...string) {
	for _, name := range path {
		next, ok := fields["f:"+name].(map[string]any)
		if !ok {
			next = map[string]any{}
			fields["f:"+name] = next
		}
		fields = next
	}
}
