package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A control is two namespaces that are restored without the plugin: one from a backup without it,
// and one from a backup with it.
type control struct{ alone, reverse *tenant }

func (s *suite) fillControl(t *testing.T) *control {
	t.Helper()

	return &control{
		alone:   s.tenant(t, s.source, drill.Platform{Namespace: "alone"}),
		reverse: s.tenant(t, s.source, drill.Platform{Namespace: "reverse"}),
	}
}

// testRestoredWithoutPlugin checks that, without the plugin, a restore of a backup with the plugin
// does no more damage than one of a backup of Velero alone.
func (s *suite) testRestoredWithoutPlugin(t *testing.T, c *control) {
	must(t, s.target.UsePlugin(t.Context(), false))
	outcomes := map[*tenant]drill.Outcome{}
	for _, n := range []*tenant{c.alone, c.reverse} {
		s.restore(t, n, n.Namespace)
	}
	s.settle(t, c.alone)
	s.awaitSeen(t, c.reverse)
	for _, n := range []*tenant{c.alone, c.reverse} {
		got, err := n.Compare(t.Context(), s.target, s.cloud, n.before)
		must(t, err)
		outcomes[n] = got
		s.wantNothingOfOurs(t, n)
	}
	must(t, s.target.UsePlugin(t.Context(), true))

	alone, reverse := outcomes[c.alone], outcomes[c.reverse]
	t.Logf("Velero alone: %+v; with a backup of the plugin's: %+v", alone, reverse)
	// Velero restores Networks after their XRs, of which each has one: how many it restores before
	// Crossplane reconciles the XR is chance.
	most := func(n int) int { return max(n, c.alone.size) }
	if reverse.Creates > most(alone.Creates) || reverse.Duplicates > most(alone.Duplicates) ||
		reverse.Orphans > most(alone.Orphans) || reverse.Deletes > alone.Deletes {
		t.Errorf("a backup with the plugin restored without it does more damage than Velero alone: %+v, not %+v", reverse, alone)
	}
}

// awaitSeen waits until each XR has composed and each MR was reconciled, with any result: on v1 a
// Database that was composed again can't have the connection secret of the restored one, which
// nothing owns.
func (s *suite) awaitSeen(t *testing.T, n *tenant) {
	t.Helper()
	s.eventually(t, "what was restored to be reconciled", func(ctx context.Context) error {
		xrs, err := n.Composites(ctx, s.target)
		if err != nil {
			return err
		}
		if len(xrs) != n.size {
			return fmt.Errorf("there are %d XRs", len(xrs))
		}
		for _, u := range xrs {
			if err := stack.HasCondition(&u, "Synced", "True"); err != nil {
				return err
			}
			if refs := n.Refs(&u); len(refs) != 3 {
				return fmt.Errorf("%s has %v", u.GetName(), refs)
			}
		}
		mrs, err := n.Managed(ctx, s.target)
		if err != nil {
			return err
		}
		for _, u := range mrs {
			if stack.HasCondition(&u, "Synced", "True") != nil && stack.HasCondition(&u, "Synced", "False") != nil {
				return fmt.Errorf("%s %s was not reconciled", u.GetKind(), u.GetName())
			}
		}

		return nil
	})
}
