package e2e

import (
	"context"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// selected returns arguments that back up only one scene's cluster-scoped objects.
func selected(scene string) []string {
	return []string{"--include-namespaces", scene, "--include-cluster-resources=true", "--selector", "scene=" + scene}
}

func shapesV2() map[string]*shape {
	return map[string]*shape{
		mirrors: shapeMirrors(stack.V2),
		bare:    nestedAlone(44),
		"revisions": {
			reason: "Revisions belong to their restored Composition again, in the same order, and one is the newest.",
			Scene:  drill.Scene{Count: 2, Size: 10, Drift: true},
			check:  wantRevisions,
		},
		"rivals": {
			reason: "XRs with a pin stay on the revision that they had, and the others follow the Composition that is live.",
			Scene:  drill.Scene{Dir: "revisions", Count: 2, Size: 10, Drift: true},
			target: "target.yaml",
			check:  wantRival,
		},
	}
}

func shapesV1() map[string]*shape {
	shapes := map[string]*shape{
		bare: nestedAlone(48),
		"vault": {
			reason: "Connection secrets in a namespace of their own that is in the backup have their owners again.",
			Scene:  drill.Scene{Dir: "secrets", Count: 4, Size: 28, Store: "vault-store"},
			last:   addDetails,
		},
		"revisions": {
			reason: "Revisions belong to their restored Composition again, in the same order, and one is the newest.",
			Scene:  drill.Scene{Count: 2, Size: 14, Drift: true},
			check:  wantRevisions,
		},
		"rivals": {
			reason: "XRs with a pin stay on the revision that they had, and the others follow the Composition that is live.",
			Scene:  drill.Scene{Dir: "revisions", Count: 2, Size: 14, Drift: true},
			target: "target.yaml",
			check:  wantRival,
		},
	}
	shapes[mirrors] = shapeMirrors(stack.V1)
	maps.Copy(shapes, shapesOfSecrets())
	maps.Copy(shapes, shapesOfInputs())

	return shapes
}

// nestedAlone returns a scene of so many objects that Velero restores alone.
func nestedAlone(size int) *shape {
	return &shape{
		reason: "Velero alone loses a nested tree.",
		Scene:  drill.Scene{Dir: "../../../cases/nested", Count: 4, Size: size}, unplugged: true,
	}
}

// addDetails adds to connection secrets a key that no provider can publish again.
func addDetails(ctx context.Context, c *stack.Cluster, s drill.Scene) error {
	return s.AddDetails(ctx, c)
}

// wantRevisions expects the restored Composition to own the revisions that were restored with it.
// Crossplane creates one more revision, since Velero's labels are new.
func wantRevisions(t *testing.T, s *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	wantSame(t, n, n.picture, after)
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
	numbers := map[any]string{}
	for name, r := range wantOwned(t, s, n, 2) {
		fields, _ := r.Fields.(map[string]any)
		number, _, _ := unstructured.NestedFieldNoCopy(fields, "spec", "revision")
		if other, ok := numbers[number]; ok {
			t.Errorf("%s %s and %s have the number %v", n.reason, other, name, number)
		}
		numbers[number] = name
	}
}

// wantOwned expects the revisions of the backup to have their owners, and their numbers multiplied
// by times. It returns all revisions.
func wantOwned(t *testing.T, s *suite, n *shape, times int64) drill.Picture {
	t.Helper()
	for _, r := range n.revisions {
		fields, _ := r.Fields.(map[string]any)
		number, _, err := unstructured.NestedInt64(fields, "spec", "revision")
		must(t, err)
		must(t, unstructured.SetNestedField(fields, number*times, "spec", "revision"))
	}
	all, err := n.Revisions(t.Context(), s.target)
	must(t, err)
	restored := maps.Clone(all)
	maps.DeleteFunc(restored, func(name string, _ drill.Likeness) bool {
		_, before := n.revisions[name]

		return !before
	})
	wantSame(t, n, n.revisions, restored)

	return all
}

// wantRival expects the pinned XRs to be unchanged, and the others to follow the live Composition,
// with the resources that both Compositions have kept.
func wantRival(t *testing.T, s *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	for _, part := range []string{"Bucket", n.Name + "-pinned-"} {
		wantSame(t, n, n.picture.Only(part), after.Only(part))
	}
	counts := map[string]int{}
	for _, c := range changes {
		counts[string(c.Op)+" "+string(c.Kind)]++
	}
	if diff := cmp.Diff(map[string]int{"create Database": n.Count, "delete Network": n.Count}, counts); diff != "" {
		t.Errorf("%s\nIn the cloud: -want, +got:\n%s", n.reason, diff)
	}
	wantOwned(t, s, n, -1) // No XR follows them.
}
