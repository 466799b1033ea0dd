package e2e

import (
	"slices"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestCrossplaneV2(t *testing.T) {
	t.Parallel()
	s := newSuite(t, stack.V2)
	g := newGit(t)
	inGit := s.gitTenants(t, g, [2]applier{kubectlApply, flux}, [2]applier{kubectlApply, argocdServerSide})
	killed := s.fillSampleKills(t)
	managed := s.fillManagers(t)
	s.testSample(t, func() []*tenant {
		for _, n := range killed {
			s.backUp(t, s.source, n)
		}
		s.backUpManagers(t, managed)
		s.backUpInGit(t, g, inGit)

		return slices.Concat(killed, tenantsInGit(inGit))
	})

	t.Run("Managers", func(t *testing.T) { s.testManagers(t, managed) })
	t.Run("AppliedWhileHeld", func(t *testing.T) { s.testAppliedWhileHeld(t, g, inGit) })
	t.Run("Killed", func(t *testing.T) { s.testSampleKills(t, killed) })
}

func TestCrossplaneV1(t *testing.T) {
	t.Parallel()
	s := newSuite(t, stack.V1)
	native := s.tenant(t, s.source, drill.Platform{Namespace: "native", Native: true})
	s.testSample(t, func() []*tenant {
		s.backUp(t, s.source, native)

		return []*tenant{native}
	})

	t.Run("ClusterLostNative", func(t *testing.T) { s.testClusterLost(t, native, "--include-namespaces", native.Namespace) })
}

// testSample runs the drills of testCrossplane that differ most between versions. backUpMore backs
// up the tenants of other drills before the source is lost.
func (s *suite) testSample(t *testing.T, backUpMore func() []*tenant) {
	t.Helper()
	alone := s.tenant(t, s.source, drill.Platform{Namespace: "alone"})
	lost := s.tenant(t, s.source, drill.Platform{Namespace: "lost"})
	changed := s.few(t, s.source, drill.Platform{Namespace: "changed"}, few)
	own := s.few(t, s.source, drill.Platform{Namespace: "own", Without: []string{"database"}}, few)
	s.settings(t, own)
	s.backUpAlone(t, alone)
	s.backUpCounted(t, lost)
	for _, n := range []*tenant{changed, own} {
		s.backUp(t, s.source, n)
	}
	s.loseSource(t, append(backUpMore(), alone, lost, changed, own)...)

	t.Run("VeleroAlone", func(t *testing.T) { s.testVeleroAlone(t, alone) })
	t.Run("ClusterLost", func(t *testing.T) { s.testClusterLost(t, lost) })
	t.Run("RestoredTwice", func(t *testing.T) { s.testRestoredTwice(t, lost) })
	t.Run("CompositionChanged", func(t *testing.T) { s.testCompositionChanged(t, changed) })
	t.Run("OwnSettings", func(t *testing.T) { s.testOwnSettings(t, own) })
	t.Run("NamespaceDeleted", func(t *testing.T) { s.testNamespaceDeleted(t, drill.Platform{Namespace: "deleted", Orphan: true}) })
}
