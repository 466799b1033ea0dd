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
	s.testSample(t, func() []*tenant {
		for _, n := range killed {
			s.backUp(t, s.source, n)
		}
		s.backUpInGit(t, g, inGit)

		return slices.Concat(killed, tenantsInGit(inGit))
	})

	t.Run("AppliedWhileHeld", func(t *testing.T) { s.testAppliedWhileHeld(t, g, inGit) })
	t.Run("Killed", func(t *testing.T) { s.testSampleKills(t, killed) })
}

func TestCrossplaneV1(t *testing.T) {
	t.Parallel()
	s := newSuite(t, stack.V1)
	native := s.few(t, s.source, drill.Platform{Namespace: "native", Native: true}, few)
	s.testSample(t, func() []*tenant {
		s.backUp(t, s.source, native)

		return []*tenant{native}
	})

	t.Run("ClusterLostNative", func(t *testing.T) { s.testClusterLost(t, native, "--include-namespaces", native.Namespace) })
	t.Run("NamespaceDeleted", func(t *testing.T) { s.testNamespaceDeleted(t, drill.Platform{Namespace: "deleted", Orphan: true}) })
}

// testSample runs the drills of testCrossplane that differ most between versions. backUpMore backs
// up the tenants of other drills before the source is lost.
func (s *suite) testSample(t *testing.T, backUpMore func() []*tenant) {
	t.Helper()
	alone := s.tenant(t, s.source, drill.Platform{Namespace: "alone"})
	lost := s.tenant(t, s.source, drill.Platform{Namespace: "lost"})
	changed := s.few(t, s.source, drill.Platform{Namespace: "changed"}, few)
	s.backUpAlone(t, alone)
	s.backUpCounted(t, lost)
	s.backUp(t, s.source, changed)
	s.loseSource(t, append(backUpMore(), alone, lost, changed)...)

	t.Run("VeleroAlone", func(t *testing.T) { s.testVeleroAlone(t, alone) })
	t.Run("ClusterLost", func(t *testing.T) { s.testClusterLost(t, lost) })
	t.Run("RestoredTwice", func(t *testing.T) { s.testRestoredTwice(t, lost) })
	t.Run("CompositionChanged", func(t *testing.T) { s.testCompositionChanged(t, changed) })
}
