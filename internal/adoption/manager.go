package adoption

import (
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// FieldManager names this plugin in managedFields.
const FieldManager = xp.Program

// Own has the plugin manage what its hold has put on u, which is about to be created from what it is in the backup, from the moment that the backup's
// managedFields are there. Velero creates an object, and then writes these back (velero pkg/restore/restore.go, restoreItem). What nobody manages in them is
// removed with the map that it is in, when whoever manages that gives it up: "kubectl apply --server-side" gives up metadata.annotations that "kubectl apply"
// managed, and with it would go the mark and the pause. It does nothing if u has no managedFields, or some that can't be read: then Velero writes none back,
// and goes on managing all that it has created.
func Own(u, backup *unstructured.Unstructured, now time.Time) {
	entries, found, err := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
	if err != nil || !found || len(entries) == 0 || !xp.HasAnnotation(u, AnnotationHold) {
		return
	}
	// What an earlier hold has put on is not what this one has, and anybody can have written an entry under this name.
	entries = slices.DeleteFunc(entries, func(entry any) bool {
		m, ok := entry.(map[string]any)

		return ok && m["manager"] == FieldManager && m["subresource"] == nil
	})
	fields := map[string]any{}
	for _, name := range []string{AnnotationHold, xp.AnnotationPaused, xp.AnnotationRestoreStatus} {
		if value, ok := u.GetAnnotations()[name]; ok && (name == AnnotationHold || value != backup.GetAnnotations()[name]) {
			manage(fields, "metadata", "annotations", name)
		}
	}
	for _, path := range heldPaths(u) {
		was, _, _ := unstructured.NestedFieldNoCopy(backup.Object, path...)
		if is, ok, _ := unstructured.NestedFieldNoCopy(u.Object, path...); ok && !reflect.DeepEqual(is, was) {
			manage(fields, path...)
		}
	}
	entries = append(entries, map[string]any{
		"manager": FieldManager, "operation": "Update", "apiVersion": u.GetAPIVersion(), "time": now.UTC().Format(time.RFC3339),
		"fieldsType": "FieldsV1", "fieldsV1": fields,
	})
	_ = unstructured.SetNestedSlice(u.Object, entries, "metadata", "managedFields") // The path was just read.
}

// heldPaths are the fields, besides annotations, that a hold changes.
func heldPaths(u *unstructured.Unstructured) [][]string {
	return [][]string{{"spec", "managementPolicies"}, xp.Instance{Unstructured: u}.UpdatePolicyPath()}
}

// manage adds a field to a set of fields as managedFields have it.
func manage(fields map[string]any, path ...string) {
	for _, name := range path {
		next, ok := fields["f:"+name].(map[string]any)
		if !ok {
			next = map[string]any{}
			fields["f:"+name] = next
		}
		fields = next
	}
}
