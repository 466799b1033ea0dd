//go:build matrix

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testCrossplane runs the drills that TestCrossplane has not on each version of Crossplane.
func testCrossplane(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	applied := s.few(t, s.source, drill.Platform{Namespace: "applied", UpdatePolicy: "Automatic"}, few)
	late := s.few(t, s.source, drill.Platform{Namespace: "late"}, few)
	faulty := s.few(t, s.source, drill.Platform{Namespace: "faulty"}, few)
	killed := s.fillSampleKills(t)
	g := newGit(t)
	inGit := s.gitTenants(t, g, [2]applier{kubectlApply, flux}, [2]applier{kubectlApply, argocdServerSide}, [2]applier{kubectlApply, kubectlAsArgocd})
	beforehand := s.fillGitFirst(t, g)
	replaced := s.makeTouched(t, g, map[string]touch{"ReplacedWhileHeld": touches()["Replaced"]})
	tenants := append([]*tenant{applied, late, faulty}, killed...)
	for _, n := range tenants {
		s.backUp(t, s.source, n)
	}
	s.backUpInGit(t, g, inGit)
	s.backUpTouched(t, replaced)
	s.loseSource(t, slices.Concat(tenants, tenantsInGit(inGit), beforehand.tenants(), []*tenant{replaced[0].tenant})...)

	t.Run("AppliedAgain", func(t *testing.T) { s.testCompositionChanged(t, applied) })
	t.Run("AppliedWhileHeld", func(t *testing.T) { s.testAppliedWhileHeld(t, g, inGit) })
	t.Run("AppliedFirst", func(t *testing.T) { s.testAppliedFirst(t, g, beforehand) })
	s.testTouched(t, g, replaced)
	t.Run("TimedOut", func(t *testing.T) { s.testTimedOut(t, late) })
	t.Run("Killed", func(t *testing.T) { s.testSampleKills(t, killed) })
	t.Run("Network", func(t *testing.T) {
		// Velero can take minutes to notice that it has lost a restore, so its own calls fail in
		// TestMatrixNetwork only. The plugin makes few calls: with some seeds none would fail.
		s.testNetwork(t, s.divert(t), faulty, faultyRestore{
			name: "Sample", kinds: stack.AllFaults(), rate: 0.04, spared: 10, hang: time.Second, seed: seed(t), programs: []string{plugin, string(version), stack.CloudProvider},
		})
	})
}
