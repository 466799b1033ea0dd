package hooks

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func newGuardOff(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "off",
		Short: "Take the guard down",
		Long: `Takes the guard down, and returns when the API server lets all users create claims and XRs again. It also unpauses the objects that the guard
admitted paused, except those that a restore holds: run it again when these are adopted. It lists running Restores, because the objects that they have not
created yet are no longer guarded.

It exits with 0 also if there is no guard.`,
		Example: `  # After the restore
  ` + Name + ` guard off`,
		Args:    cobra.NoArgs,
		PreRunE: o.rejectNamespace,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.inCluster(c, func(ctx context.Context, cluster *live.Cluster) error {
				return o.guardOff(ctx, cluster, proberOf(cluster))
			})
		},
	}
}

// guardOff takes the guard down and prints the result.
func (o *options) guardOff(ctx context.Context, cluster *live.Cluster, p prober) error {
	s, err := cluster.Guard(ctx)
	if err != nil {
		return err
	}
	if err := cluster.RemoveGuard(ctx, s); err != nil {
		return err
	}
	if len(s.Objects) == 0 {
		fmt.Fprintln(o.Out, "There is no guard.")
	} else {
		o.warnOfRestores(ctx, cluster)
		if now, err := p.await(ctx, live.Admitted); err == nil && now != live.Admitted {
			fmt.Fprintln(o.Err, reason.GuardNotEnforced.Messagef("The API server still enforces the guard; this should end in a moment."))
		}
		fmt.Fprintln(o.Out, "The guard is down: all users can create claims and XRs again.")
	}

	return o.unpause(ctx, cluster, s.Paused)
}

// warnOfRestores names the Restores under way: other users can create their objects first from now
// on. Without the right to read Restores it prints nothing.
func (o *options) warnOfRestores(ctx context.Context, cluster *live.Cluster) {
	restores, err := o.underWay(ctx, cluster)
	if err != nil {
		return
	}
	for _, r := range restores {
		fmt.Fprintln(o.Err, reason.RestoreRunning.Messagef("%s is still running (%s), and other users can now create its claims and XRs first. "+
			"Put the guard up again until it is over.", r.Name, cmp.Or(r.Phase, "New")))
	}
}

// underWay returns the Restores that Velero still works on.
func (o *options) underWay(ctx context.Context, cluster *live.Cluster) ([]report.Restore, error) {
	restores, err := cluster.Restores(ctx, o.velero)

	return slices.DeleteFunc(restores, func(r report.Restore) bool { return !diagnosis.IsUnderWay(r.Phase) }), err
}

// unpause takes the pause off objects that the guard admitted paused. A read error counts only if
// such objects are expected.
func (o *options) unpause(ctx context.Context, cluster *live.Cluster, expected bool) error {
	paused, err := cluster.PausedByGuard(ctx)
	if err != nil && !expected {
		return nil
	}
	for _, u := range paused {
		if h, err := adoption.HoldOf(u); h != nil || err != nil {
			fmt.Fprintln(o.Err, reason.Held.Messagef("%s stays paused: a restore holds it. Run this again when it is adopted.", xp.String(u)))

			continue
		}
		if err := cluster.UnpauseAfterGuard(ctx, u); err != nil {
			return err
		}
		fmt.Fprintf(o.Out, "%s is not paused any more.\n", xp.String(u))
	}

	return err
}
