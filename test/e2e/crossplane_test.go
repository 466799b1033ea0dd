package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestCrossplaneV2(t *testing.T) {
	s := newSuite(t, stack.V2)
	alone := s.tenant(t, s.source, drill.Platform{Namespace: "alone"})
	lost := s.tenant(t, s.source, drill.Platform{Namespace: "lost"})
	changed := s.tenant(t, s.source, drill.Platform{Namespace: "changed"})
	late := s.tenant(t, s.source, drill.Platform{Namespace: "late"})
	killed := s.tenant(t, s.source, drill.Platform{Namespace: "killed"})
	own := s.tenant(t, s.source, drill.Platform{Namespace: "own", Without: []string{"database"}})
	s.settings(t, own)
	s.backUpAlone(t, alone)
	for _, n := range []*tenant{lost, changed, late, killed, own} {
		s.backUp(t, s.source, n)
	}
	s.loseSource(t, alone, lost, changed, late, killed, own)

	t.Run("VeleroAlone", func(t *testing.T) { s.testVeleroAlone(t, alone) })
	t.Run("ClusterLost", func(t *testing.T) { s.testClusterLost(t, lost) })
	t.Run("RestoredTwice", func(t *testing.T) { s.testRestoredTwice(t, lost) })
	t.Run("CompositionChanged", func(t *testing.T) { s.testCompositionChanged(t, changed) })
	t.Run("TimedOut", func(t *testing.T) { s.testTimedOut(t, late) })
	t.Run("VeleroKilled", func(t *testing.T) { s.testVeleroKilled(t, killed) })
	t.Run("OwnSettings", func(t *testing.T) { s.testOwnSettings(t, own) })
	t.Run("NamespaceDeleted", func(t *testing.T) { s.testNamespaceDeleted(t, drill.Platform{Namespace: "deleted", Orphan: true}) })
}

func TestCrossplaneV1(t *testing.T) {
	s := newSuite(t, stack.V1)
	alone := s.tenant(t, s.source, drill.Platform{Namespace: "alone"})
	lost := s.tenant(t, s.source, drill.Platform{Namespace: "lost"})
	native := s.tenant(t, s.source, drill.Platform{Namespace: "native", Native: true})
	changed := s.tenant(t, s.source, drill.Platform{Namespace: "changed"})
	late := s.tenant(t, s.source, drill.Platform{Namespace: "late"})
	killed := s.tenant(t, s.source, drill.Platform{Namespace: "killed"})
	own := s.tenant(t, s.source, drill.Platform{Namespace: "own", Without: []string{"database"}})
	s.settings(t, own)
	s.backUpAlone(t, alone)
	for _, n := range []*tenant{lost, native, changed, late, killed, own} {
		s.backUp(t, s.source, n)
	}
	s.loseSource(t, alone, lost, native, changed, late, killed, own)

	t.Run("VeleroAlone", func(t *testing.T) { s.testVeleroAlone(t, alone) })
	t.Run("ClusterLost", func(t *testing.T) { s.testClusterLost(t, lost) })
	t.Run("ClusterLostNative", func(t *testing.T) { s.testClusterLost(t, native, "--include-namespaces", native.Namespace) })
	t.Run("RestoredTwice", func(t *testing.T) { s.testRestoredTwice(t, lost) })
	t.Run("CompositionChanged", func(t *testing.T) { s.testCompositionChanged(t, changed) })
	t.Run("TimedOut", func(t *testing.T) { s.testTimedOut(t, late) })
	t.Run("VeleroKilled", func(t *testing.T) { s.testVeleroKilled(t, killed) })
	t.Run("OwnSettings", func(t *testing.T) { s.testOwnSettings(t, own) })
	t.Run("NamespaceDeleted", func(t *testing.T) { s.testNamespaceDeleted(t, drill.Platform{Namespace: "deleted", Orphan: true}) })
}
