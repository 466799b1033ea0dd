package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testRefreshMeanwhile restores a backup that lacks an instance into a standby of which another
// instance is being promoted. It removes nothing: what is promoted can need what an older backup
// brought. After the promotion it does.
func (s *suite) testRefreshMeanwhile(t *testing.T, n *tenant) {
	ctx := t.Context()
	s.backUpScheduled(t, s.source, n, "meanwhile-1")
	s.restoreStandby(t, n, "meanwhile-1")
	last := n.Name(n.size - 1)
	s.removeLast(t, n)
	s.backUpScheduled(t, s.source, n, "meanwhile-2")
	s.remember(t, s.source, n)
	since := s.hold(t, n)
	before := s.having(t, n, last)

	must(t, s.target.Kill(stack.CloudProvider))
	promoted := n.Namespace + "/" + n.Name(0)
	if got := command(t, s.target, "release", promoted, "--timeout", "20s"); got.code == 0 {
		t.Fatalf("%s is released though no provider runs, so the test proves nothing: %s", promoted, got.stdout)
	}
	must(t, n.StartRestore(ctx, s.target, "meanwhile-2", "meanwhile-2", standbyRestore...))
	s.eventually(t, "the restore to name what it leaves", func(context.Context) error {
		if details := s.details(t, "meanwhile-2"); linesWith(details, "StandbyNotRemoved", "promoted") == 0 {
			return errors.New(details)
		}

		return nil
	})
	if got := s.having(t, n, last); before == 0 || got != before {
		t.Errorf("%d of %d objects of %s are left", got, before, last)
	}

	must(t, s.target.Start(ctx, stack.CloudProvider))
	s.awaitCompleted(t, "meanwhile-2") // It adopts what is promoted.
	must(t, n.StartRestore(ctx, s.target, "meanwhile-3", "meanwhile-2", standbyRestore...))
	s.awaitCompleted(t, "meanwhile-3")
	if got := s.having(t, n, last); got != 0 {
		t.Errorf("%d objects of %s are left after the promotion", got, last)
	}
	if s.held(t, s.target, n) > 0 {
		s.released(t, "-n", n.Namespace)
	}
	s.settle(t, n)
	s.wantSound(t, n)
	s.wantNoChanges(t, n, since)
}

// having counts the objects of an instance in the target.
func (s *suite) having(t *testing.T, n *tenant, instance string) int {
	t.Helper()
	count := 0
	for name := range s.all(t, s.target, n) {
		if strings.Contains(name, instance) {
			count++
		}
	}

	return count
}
