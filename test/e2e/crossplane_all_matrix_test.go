//go:build matrix

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testCrossplane runs all drills on one version of Crossplane. Only v1 composes without functions.
// For v1 other matrix tests have the drill with a bad network.
func testCrossplane(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	alone := s.tenant(t, s.source, drill.Platform{Namespace: "alone"})
	lost := s.tenant(t, s.source, drill.Platform{Namespace: "lost"})
	changed := s.few(t, s.source, drill.Platform{Namespace: "changed"}, few)
	applied := s.few(t, s.source, drill.Platform{Namespace: "applied", UpdatePolicy: "Automatic"}, few)
	late := s.few(t, s.source, drill.Platform{Namespace: "late"}, few)
	killed := s.fillSampleKills(t)
	g := newGit(t)
	inGit := s.gitTenants(t, g, [2]applier{kubectlApply, flux}, [2]applier{kubectlApply, argocdServerSide}, [2]applier{kubectlApply, kubectlAsArgocd})
	beforehand := s.fillGitFirst(t, g)
	replaced := s.makeTouched(t, g, map[string]touch{"ReplacedWhileHeld": touches()["Replaced"]})
	gone := s.makePruned(t, g, map[string]pruning{"PrunedWhileHeld": s.prunings()["LetGo"]})
	own := s.few(t, s.source, drill.Platform{Namespace: "own", Without: []string{"database"}}, few)
	broken := s.few(t, s.source, drill.Platform{Namespace: "broken"}, 2)
	tenants := slices.Concat([]*tenant{lost, changed, applied, late, own}, killed)
	var native, faulty *tenant
	if version == stack.V1 {
		native = s.tenant(t, s.source, drill.Platform{Namespace: "native", Native: true})
		tenants = append(tenants, native)
	} else {
		faulty = s.few(t, s.source, drill.Platform{Namespace: "faulty"}, few)
		tenants = append(tenants, faulty)
	}
	managed := s.fillManagers(t)
	s.settings(t, own)
	s.backUpAlone(t, alone)
	s.backUpCounted(t, lost)
	for _, n := range tenants[1:] {
		s.backUp(t, s.source, n)
	}
	s.backUpManagers(t, managed)
	s.backUpInGit(t, g, inGit)
	s.backUpTouched(t, replaced)
	s.backUpPruned(t, gone)
	s.backUpBroken(t, broken)
	s.loseSource(t, slices.Concat(tenants, tenantsInGit(inGit), beforehand.tenants(), []*tenant{alone, broken, replaced[0].tenant, gone[0].tenant})...)

	t.Run("VeleroAlone", func(t *testing.T) { s.testVeleroAlone(t, alone) })
	t.Run("ClusterLost", func(t *testing.T) { s.testClusterLost(t, lost) })
	if native != nil {
		t.Run("ClusterLostNative", func(t *testing.T) { s.testClusterLost(t, native, "--include-namespaces", native.Namespace) })
	}
	t.Run("RestoredTwice", func(t *testing.T) { s.testRestoredTwice(t, lost) })
	t.Run("CompositionChanged", func(t *testing.T) { s.testCompositionChanged(t, changed) })
	t.Run("AppliedAgain", func(t *testing.T) { s.testCompositionChanged(t, applied) })
	t.Run("Managers", func(t *testing.T) { s.testManagers(t, managed) })
	t.Run("AppliedWhileHeld", func(t *testing.T) { s.testAppliedWhileHeld(t, g, inGit) })
	t.Run("AppliedFirst", func(t *testing.T) { s.testAppliedFirst(t, g, beforehand) })
	s.testTouched(t, g, replaced)
	s.testPruned(t, g, gone)
	t.Run("TimedOut", func(t *testing.T) { s.testTimedOut(t, late) })
	t.Run("Killed", func(t *testing.T) { s.testSampleKills(t, killed) })
	t.Run("OwnSettings", func(t *testing.T) { s.testOwnSettings(t, own) })
	t.Run("Broken", func(t *testing.T) { s.testBroken(t, broken) })
	t.Run("NamespaceDeleted", func(t *testing.T) { s.testNamespaceDeleted(t, drill.Platform{Namespace: "deleted", Orphan: true}) })
	if faulty == nil {
		return
	}
	t.Run("Network", func(t *testing.T) {
		// Velero can take minutes to notice that it has lost a restore, so its own calls fail in
		// TestMatrixNetwork only. The plugin makes few calls: with some seeds none would fail.
		s.testNetwork(t, s.divert(t), faulty, faultyRestore{
			name: "Sample", kinds: stack.AllFaults(), rate: 0.04, spared: 10, hang: time.Second, seed: seed(t), programs: []string{plugin, string(version), stack.CloudProvider},
		})
	})
}
