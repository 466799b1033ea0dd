package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testPlace restores into the cluster that was backed up, which still has some or all objects.
func testPlace(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version, debug)
	s.target = s.source
	parts := partsOf(s)
	clones := clonesOf(version)
	for name, p := range parts {
		p.tenant = s.few(t, s.target, drill.Platform{Namespace: name, Orphan: true}, few)
	}
	for name, c := range clones {
		c.tenant = s.few(t, s.target, drill.Platform{Namespace: name}, few)
	}
	for _, p := range parts {
		s.backUp(t, s.target, p.tenant)
	}
	for _, c := range clones {
		s.backUp(t, s.target, c.tenant)
	}
	for _, p := range parts {
		p.lose(t, p)
	}
	for name, p := range parts {
		s.start(t, p.tenant, name, p.restore...)
	}
	for _, c := range clones {
		s.startClone(t, c)
	}
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) { p.judge(t, p) })
	}
	s.settleClones(t, clones)
	for _, c := range clones {
		t.Run(c.name, func(t *testing.T) { s.testClone(t, c) })
	}
	s.settleClones(t, clones)
	for _, c := range clones {
		if c.want != "new" {
			t.Run(c.name+"Deleted", func(t *testing.T) { s.testUntouched(t, c) })
		}
	}
	t.Run("CloneInvalid", func(t *testing.T) { s.testCloneInvalid(t, clones["held"].tenant) })
	t.Run("Discovery", s.testDiscovery)
	if version == stack.V2 {
		t.Run("Ordinary", s.testOrdinary)
		s.testApart(t)
	}
	if version == stack.V2 {
		t.Run("Credentials", func(t *testing.T) { s.testCredentials(t, clones["held"].tenant) })
	}
}

// settleClones waits until damage by the copies, or by their deletion, to the originals would show.
func (s *suite) settleClones(t *testing.T, clones map[string]*clone) {
	t.Helper()
	var originals []*tenant
	for _, c := range clones {
		_, err := drill.AwaitRestore(t.Context(), s.target, c.copied().Namespace)
		must(t, err)
		originals = append(originals, c.tenant)
	}
	s.settleAll(t, originals...)
}
