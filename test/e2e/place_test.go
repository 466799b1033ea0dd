package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testPlace restores into the cluster that was backed up.
func testPlace(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version, debug)
	s.target = s.source
	n := s.few(t, s.target, drill.Platform{Namespace: "held"}, few)
	s.backUp(t, s.target, n)
	t.Run("Discovery", s.testDiscovery)
	if version == stack.V2 {
		t.Run("Ordinary", s.testOrdinary)
		s.testApart(t)
		t.Run("Credentials", func(t *testing.T) { s.testCredentials(t, n) })
	}
}
