package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
)

// backUpAlone backs up without the plugin.
func (s *suite) backUpAlone(t *testing.T, n *tenant) {
	t.Helper()
	must(t, s.source.UsePlugin(t.Context(), false))
	s.backUp(t, s.source, n)
	must(t, s.source.UsePlugin(t.Context(), true))
}

// testVeleroAlone is the control: without its damage the other tests prove nothing.
func (s *suite) testVeleroAlone(t *testing.T, n *tenant) {
	must(t, s.target.UsePlugin(t.Context(), false))
	s.restore(t, n, n.Namespace)
	s.settle(t, n)
	got, err := n.Compare(t.Context(), s.target, s.cloud, n.before)
	must(t, err)
	t.Logf("Velero alone: %+v", got)
	if got.Creates == 0 || got.Duplicates == 0 || got.Orphans == 0 || got.Adopted == got.Total {
		t.Errorf("Velero alone did no damage, so the other tests prove nothing: %+v", got)
	}
	s.wantPluginMissing(t, n, true)
	must(t, s.target.UsePlugin(t.Context(), true))
	s.wantPluginMissing(t, n, false)
}

// testClusterLost restores into a cluster that has only the platform, with more velero arguments.
func (s *suite) testClusterLost(t *testing.T, n *tenant, args ...string) {
	before := len(asked(t, s.target, 0))
	s.restore(t, n, n.Namespace, args...)
	if n.size == count { // The cost of a few shows nothing.
		wantCheapRestore(t, s.target, n.Namespace, before)
	}
	s.settle(t, n)
	s.wantSound(t, n)
}

func (s *suite) testRestoredTwice(t *testing.T, n *tenant) {
	before, err := n.Prints(t.Context(), s.target)
	must(t, err)
	for _, policy := range []string{"none", "update"} {
		s.restore(t, n, n.Namespace+"-"+policy, "--existing-resource-policy", policy)
		s.settle(t, n)
		s.wantSound(t, n)
		after, err := n.Prints(t.Context(), s.target)
		must(t, err)
		if diff := cmp.Diff(before, after, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("a second restore with the policy %s changed the cluster: -before, +after:\n%s", policy, diff)
		}
	}
}

// testNamespaceDeleted deletes only the namespace, and keeps its external resources.
func (s *suite) testNamespaceDeleted(t *testing.T, p drill.Platform) {
	n := s.few(t, s.target, p, few)
	s.backUp(t, s.target, n)
	must(t, n.DeleteNamespace(t.Context(), s.target))
	s.restore(t, n, n.Namespace, "--include-namespaces", n.Namespace)
	s.settle(t, n)
	s.wantSound(t, n)
}
