package e2e

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// clusterResources must be set explicitly in a backup of everything. Without any filter Velero
// v1.18.3 filters by scope: it leaves out VolumeSnapshotContents, and then takes that for a filter
// that leaves out all cluster-scoped objects that are not requested.
const clusterResources = "--include-cluster-resources"

// few is enough where the number of instances makes no difference.
const few = 3

// patience is how long a reaction may take on a busy machine.
const patience = 2 * time.Minute

// testWays restores a backup of everything, with the plugin and without it, into a cluster that has the
// platform and into one that has only Velero.
func testWays(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	whole := s.few(t, s.source, drill.Platform{Namespace: "whole"}, few)
	control := s.fillControl(t)
	s.backUp(t, s.source, control.reverse)
	s.remember(t, s.source, whole)
	backupWith(t, s.source, "whole", clusterResources+"=true")
	must(t, s.source.UsePlugin(t.Context(), false))
	s.backUp(t, s.source, control.alone)

	s.loseSource(t, whole, control.alone, control.reverse)
	t.Run("RestoredWithoutThePlugin", func(t *testing.T) {
		s.testRestoredWithoutPlugin(t, control)
	})
	t.Run("WholeCluster", func(t *testing.T) {
		s.restore(t, whole, whole.Namespace)
		s.wantWhole(t, whole)
	})
	must(t, s.target.Destroy())
	t.Run("EmptyCluster", func(t *testing.T) { s.testEmptyCluster(t, whole) })
}

// testEmptyCluster restores everything into a cluster that has only Velero. Crossplane's own CRDs
// come from the backup, and Crossplane is installed later.
func (s *suite) testEmptyCluster(t *testing.T, n *tenant) {
	ctx := t.Context()
	var err error
	s.target, err = stack.NewCluster(ctx, s.host, stack.Options{Name: "empty", Crossplane: stack.None, Plugin: true, VeleroArgs: oftener})
	must(t, err)
	const restore = "empty"
	must(t, n.StartRestore(ctx, s.target, restore, n.backup()))
	must(t, drill.AwaitOperations(ctx, s.target, restore))
	must(t, s.target.InstallCrossplane(ctx, s.version))
	s.awaitCompleted(t, restore)
	n.revised = true
	s.wantWhole(t, n)
}

// wantWhole checks that a tenant is sound, and has no annotation that the plugin causes.
func (s *suite) wantWhole(t *testing.T, n *tenant) {
	t.Helper()
	s.settle(t, n)
	s.wantSound(t, n)
	s.wantNothingLeft(t, n)
}

// wantNothingLeft checks that restored objects have no annotation that the plugin causes.
func (s *suite) wantNothingLeft(t *testing.T, n *tenant) {
	t.Helper()
	objects, err := n.Objects(t.Context(), s.target)
	must(t, err)
	for _, kind := range []string{"Composition", "CompositionRevision", "CompositeResourceDefinition"} {
		shared, err := list(t.Context(), s.target, schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: kind}, "", "")
		must(t, err)
		objects = append(objects, shared...)
	}
	for _, u := range objects {
		for key := range u.GetAnnotations() {
			if strings.HasPrefix(key, ours) || strings.HasPrefix(key, "backup.velero.io/") || key == "velero.io/restore-status" {
				t.Errorf("%s %s still has the annotation %s", u.GetKind(), u.GetName(), key)
			}
		}
	}
}
