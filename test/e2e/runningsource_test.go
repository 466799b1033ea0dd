package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testRunningSource restores a backup of a cluster that is running. Its provider does not run until
// the source has backed up again, so nothing is released before.
func (s *suite) testRunningSource(t *testing.T, n *tenant) {
	ctx := t.Context()
	const restore = "split"
	must(t, n.Backup(ctx, s.source, restore))
	must(t, s.target.Stop(stack.CloudProvider))
	must(t, n.StartRestore(ctx, s.target, restore, restore, "--annotations", "velero.crossplane.io/split-brain=refuse"))
	must(t, drill.AwaitItems(ctx, s.target, restore))
	must(t, n.Backup(ctx, s.source, "split-newer"))
	s.eventually(t, "the newer backup of the source", func(ctx context.Context) error {
		_, err := s.target.Velero(ctx, "backup", "get", "split-newer")

		return err
	})
	r, err := drill.AwaitRestore(ctx, s.target, restore)
	must(t, err)
	if drill.Phase(r) != "PartiallyFailed" {
		t.Errorf("the restore is %s, so the test proves nothing or something was released", drill.Phase(r))
	}
	if details := s.details(t, restore); !strings.Contains(details, "SplitBrainRefused") {
		t.Errorf("the restore does not name the split brain: %s", details)
	}
	must(t, s.target.Start(ctx, stack.CloudProvider))
	xrs, err := n.Composites(ctx, s.target)
	must(t, err)
	if len(xrs) != n.size {
		t.Errorf("%d XRs are back, not %d", len(xrs), n.size)
	}
	for _, u := range xrs {
		if !drill.Held(&u) || !paused(&u) {
			t.Errorf("XR %s is released", u.GetName())
		}
	}
	s.eventually(t, "the receipt of the target", func(context.Context) error {
		got := command(t, s.source, "validate", "-n", n.Namespace)
		if !strings.Contains(got.stdout, "AdoptedElsewhere") {
			return errors.New(got.stdout)
		}

		return nil
	})

	// The source is held and retired, as the messages say.
	since := s.hold(t, n)
	s.released(t, "--restore", restore)
	s.settle(t, n)
	s.wantNoWrites(t, n, since, s.source)
	s.wantNoChanges(t, n, since)
}
