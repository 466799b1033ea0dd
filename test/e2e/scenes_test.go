package e2e

import (
	"context"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
		bare: {
			reason: "Velero alone loses a nested tree.",
			Scene:  drill.Scene{Dir: "nested", Count: 4, Size: 44}, unplugged: true,
		},
		"nested": {
			reason: "Three levels of XRs, with two siblings in the middle, come back with each level below its parent.",
			Scene:  drill.Scene{Count: 4, Size: 44},
		},
		"fifty": {
			reason: "An XR that composes fifty MRs has all of them again.",
			Scene:  drill.Scene{Size: 51},
		},
		"scopes": {
			reason: "Cluster-scoped XRs that compose into two namespaces have the same resources in each.",
			Scene: drill.Scene{
				Count: 4, Size: 20, Namespaces: []string{"scopes-a", "scopes-b"},
				BackupArgs: []string{
					"--include-namespaces", "scopes-a,scopes-b", "--include-cluster-resources=true", "--exclude-resources",
					"buckets.cloud.example.org,networks.cloud.example.org,databases.cloud.example.org,xshops.legacy.example.org," +
						"environmentconfigs.apiextensions.crossplane.io,clusterusages.protection.crossplane.io," +
						"clusterproviderconfigs.kubernetes.m.crossplane.io",
				},
				RestoreArgs: []string{"--include-namespaces", "scopes-a,scopes-b", "--include-cluster-resources=true"},
			},
			last: addDetails,
		},
		"legacy": {
			reason: "Claims of LegacyCluster XRs have their trees and connection secrets again.",
			Scene:  drill.Scene{Count: 4, Size: 28},
			last:   addDetails,
		},
		"kinds": {
			reason: "Composed objects of any kind have their XR as controller again, beside their other owners.",
			Scene:  drill.Scene{Count: 4, Size: 41},
			last:   ownTwice(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}),
		},
		"names": {
			reason: "Names that the Composition fixes and names that Crossplane generates stay.",
			Scene:  drill.Scene{Count: 4, Size: 12},
		},
		"standalone": {
			reason: "MRs that no XR composes come back, with their connection secrets.",
			Scene:  drill.Scene{Count: 4, Size: 16},
			last:   addDetails,
		},
		"config": {
			reason: "EnvironmentConfigs come back if the backup includes cluster-scoped resources.",
			Scene:  drill.Scene{Count: 2, Size: 6, BackupArgs: selected("config")},
		},
		"usages": {
			reason: "Usages protect the same objects again.",
			Scene:  drill.Scene{Count: 2, Size: 12},
		},
		"clusterusages": {
			reason: "ClusterUsages protect the same objects again.",
			Scene:  drill.Scene{Count: 2, Size: 10, BackupArgs: selected("clusterusages")},
		},
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
		bare: {
			reason: "Velero alone loses a nested tree.",
			Scene:  drill.Scene{Dir: "nested", Count: 4, Size: 48}, unplugged: true,
		},
		"nested": {
			reason: "Three levels of XRs below a claim, with two siblings in the middle, come back with each level below its parent.",
			Scene:  drill.Scene{Count: 4, Size: 48},
		},
		"fifty": {
			reason: "A claim of an XR that composes fifty MRs has all of them again.",
			Scene:  drill.Scene{Size: 52},
		},
		"kinds": {
			reason: "Composed objects of any kind have their XR as controller again, beside their other owners.",
			Scene:  drill.Scene{Count: 4, Size: 37},
			last:   ownTwice(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}),
		},
		"names": {
			reason: "Names that the Composition fixes and names that Crossplane generates stay.",
			Scene:  drill.Scene{Count: 4, Size: 16},
		},
		"anonymous": {
			reason: "A resource of a native template without a name keeps its index in resourceRefs, its only identity for Crossplane.",
			Scene:  drill.Scene{Count: 4, Size: 20},
		},
		"standalone": {
			reason: "MRs that no XR composes come back, with their connection secrets.",
			Scene:  drill.Scene{Count: 4, Size: 16, BackupArgs: selected("standalone")},
			last:   addDetails,
		},
		"config": {
			reason: "EnvironmentConfigs come back if the backup includes cluster-scoped resources.",
			Scene:  drill.Scene{Count: 2, Size: 6, BackupArgs: selected("config")},
		},
		"secrets": {
			reason: "Connection secrets of claims, XRs and MRs in one namespace have their owners again, so that all can publish.",
			Scene:  drill.Scene{Count: 4, Size: 28},
			last:   addDetails,
		},
		"vault": {
			reason: "So do those in a namespace of their own, if it is in the backup.",
			Scene:  drill.Scene{Dir: "secrets", Count: 4, Size: 28, Store: "vault-store"},
			last:   addDetails,
		},
		"beyond": {
			reason: "So do those in a namespace that is not: they belong to the claims, wherever they are.",
			Scene: drill.Scene{
				Dir: "secrets", Count: 4, Size: 28, Store: "beyond-store",
				BackupArgs: []string{"--include-namespaces", "beyond"}, RestoreArgs: []string{"--include-namespaces", "*"},
			},
			last: addDetails,
		},
		"usages": {
			reason: "Usages protect the same objects again.",
			Scene:  drill.Scene{Count: 2, Size: 12, BackupArgs: selected("usages")},
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
	shapes["copied"] = &shape{
		reason: "A Composition that copies all annotations of an XR onto composed resources puts no hold on them.", Scene: drill.Scene{Count: 2, Size: 8}, check: wantCopied,
	}
	maps.Copy(shapes, shapesOfSecrets())
	maps.Copy(shapes, shapesOfInputs())

	return shapes
}

// wantCopied expects a scene to be unchanged, except for the mark of its XRs on their composed
// resources. That mark is the control.
func wantCopied(t *testing.T, _ *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
	marked := 0
	after = maps.Clone(after)
	for name, l := range after {
		if _, ok := l.Annotations[annotationHold]; ok {
			marked++
			l.Annotations = maps.Clone(l.Annotations)
			delete(l.Annotations, annotationHold)
		}
		l.Managers = n.picture[name].Managers // Of the annotation, too.
		after[name] = l
	}
	if marked != 2*n.Count {
		t.Errorf("The marks of XRs were copied onto %d objects, so the test proves nothing", marked)
	}
	wantSame(t, n, n.picture, after)
}

// ownTwice returns a function that gives each composed object of a kind a second, plain owner.
func ownTwice(kind schema.GroupVersionKind) func(ctx context.Context, c *stack.Cluster, s drill.Scene) error {
	return func(ctx context.Context, c *stack.Cluster, s drill.Scene) error {
		objects, err := c.Resource(ctx, kind, s.Name)
		if err != nil {
			return err
		}

		return drill.AddOwner(ctx, objects, s.Name+"-owner", "crossplane.io/composite")
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
