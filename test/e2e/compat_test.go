package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// oldestVelero is the oldest supported Velero. All other tests have the newest one; "make compat"
// has every combination.
const oldestVelero = "velero-v1.16"

// testCompatibility loses a cluster and restores it with the oldest Velero and the oldest
// Crossplane of a major version. Then it uninstalls the plugin, and then runs a Velero that links
// owners without it.
func testCompatibility(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := begin(t, &suite{version: version, velero: oldestVelero})
	lost := s.few(t, s.source, drill.Platform{Namespace: "lost", Orphan: true}, few)
	linked := s.few(t, s.source, drill.Platform{Namespace: "linked"}, few)
	held := s.few(t, s.source, drill.Platform{Namespace: "held"}, few)
	for _, n := range []*tenant{lost, linked, held} {
		s.backUp(t, s.source, n)
	}
	s.loseSource(t, lost, linked, held)

	t.Run("ClusterLost", func(t *testing.T) {
		s.restore(t, lost, lost.Namespace)
		s.settle(t, lost)
		s.wantSound(t, lost)
	})
	t.Run("Uninstalled", func(t *testing.T) { s.testUninstalled(t, lost) })
	t.Run("OwnerRefRelink", func(t *testing.T) { s.testStandDown(t, linked) })
	if version == stack.V20 {
		t.Run("HeldInBackup", func(t *testing.T) { s.testHeldInBackup(t, held) })
	}
}
