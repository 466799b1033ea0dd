package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

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
	s.settle(t, n)
	n.revised = true
	s.wantSound(t, n)
	s.wantNothingLeft(t, n)
}
