package adoption

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// FieldManager names this plugin in managedFields.
const FieldManager = xp.Program

// ManageHold has the plugin manage what its hold has put on u, which is about to be created from
// what it is in the backup, from the moment that the backup's managedFields are there. Velero
// creates an object, and then writes these back (velero pkg/restore/restore.go, restoreItem). What
// nobody manages in them is removed with the map that it is in, when whoever manages that gives it
// up: "kubectl apply --server-side" gives up metadata.annotations that "kubectl apply" managed, and
// with it would go the mark and the pause. It is as if this plugin had applied it server-side,
// which Applied goes on with. It does nothing if u has no managedFields, or some that can't be
// read: then Velero writes none back, and goes on managing all that it has created.
func ManageHold(u, backup *unstructured.Unstructured, now time.Time) {
	entries, found, err := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
	if err != nil || !found || len(entries) == 0 || !xp.HasAnnotation(u, AnnotationHold) {
		return
	}
	// What an earlier hold has put on is not what this one has, and anybody can have written an
	// entry under this name.
	entries = slices.DeleteFunc(entries, func(entry any) bool {
		m, ok := entry.(map[string]any)

		return ok && (isOwn(m) || len(m) == 0) // One that is empty, alone, has an API server forget all, and no list may have one beside others.
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

// heldPaths are the fields, besides annotations, that a hold changes.
func heldPaths(u *unstructured.Unstructured) [][]string {
	return [][]string{{"spec", "managementPolicies"}, xp.Instance{Unstructured: u}.UpdatePolicyPath()}
}

// managedPaths are all fields that a hold changes; of a Secret, which none does, its data, whose
// manager has made its owner one.
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

// Managers returns who manages what of u, as its managedFields say: all of them, but of their
// fields only those that a hold changes, and of this plugin's all. What can't be read is left out.
// It returns nil if there are none.
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

// entriesOf returns the managedFields of u, but for those that are none.
func entriesOf(u *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
	all, _ := list.([]any)
	entries := make([]map[string]any, 0, len(all))
	for _, e := range all {
		if entry, ok := e.(map[string]any); ok {
			entries = append(entries, entry)
		}
	}

	return entries
}

// managedAt returns what an entry of managedFields has of a field and what is in it; ok is false if
// that is not among its fields.
func managedAt(entry map[string]any, path []string) (of any, ok bool) {
	of, ok, err := unstructured.NestedFieldNoCopy(entry, append([]string{"fieldsV1"}, fieldNames(path)...)...)

	return of, ok && err == nil
}

// fieldNames are the names of a field, and of those that it is in, as managedFields have them.
func fieldNames(path []string) []string {
	names := make([]string, 0, len(path))
	for _, name := range path {
		names = append(names, "f:"+name)
	}

	return names
}

// isOwn reports whether an entry of managedFields is this plugin's, of a hold.
func isOwn(entry map[string]any) bool {
	return entry["manager"] == FieldManager && (entry["subresource"] == nil || entry["subresource"] == "")
}

// addField adds a field to a set of fields as managedFields have it.
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
