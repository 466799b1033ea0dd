package hold

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// TakeControl returns the Change that makes u the controller of s. If s is a Secret the patch has
// the name of the manager of its data: that one published it, and made u its owner.
func TakeControl(u, s *unstructured.Unstructured) Change {
	return Change{Target: s, Patch: controllerRefPatch(u, s), Step: "make " + xp.String(u) + " its controller again", Manager: publisherOf(s)}
}

// publisherOf returns the manager of the data of a connection secret, or of its type if it has no
// data; "" if not known, or if s is no connection secret.
func publisherOf(s *unstructured.Unstructured) string {
	if !xp.IsConnectionSecret(s) {
		return ""
	}
	for _, path := range managedPaths(s) {
		fields := [][]string{path}
		if of := managersOf(entriesOf(s), fields); len(of) > 0 {
			return writerOf(s, of, fields)
		}
	}

	return ""
}

// controllerRefPatch returns the patch that makes the live object u the controller of s. Other
// owner references of s stay.
func controllerRefPatch(u, s *unstructured.Unstructured) map[string]any {
	refs := slices.DeleteFunc(xp.Maps(s.Object, "metadata", "ownerReferences"), func(ref map[string]any) bool { return ref["uid"] == string(u.GetUID()) })
	refs = append(refs, map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "name": u.GetName(), "uid": string(u.GetUID()), "controller": true, "blockOwnerDeletion": true,
	})
	p := versioned(s)
	set(p, refs, "metadata", "ownerReferences")

	return p
}
