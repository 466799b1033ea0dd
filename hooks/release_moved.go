package hooks

import (
	"context"
	"errors"
	"slices"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// confirmUnmoved asks before it releases what the command hold holds: nobody can see from here
// whether another cluster has adopted it. Without a confirmation these objects stay held.
func (r *release) confirmUnmoved(ctx context.Context) error {
	moved := slices.DeleteFunc(r.holds.due(), func(h *held) bool { return !h.byCommand })
	if len(moved) == 0 {
		return nil
	}
	r.logf("The command hold holds %s, so that another cluster can adopt them. If one has, it manages the same external resources, and a release here makes two "+
		"clusters change and delete them. This cluster can't find that out.", printer.Counted(len(moved), "object"))
	if r.dryRun {
		return nil
	}
	if !r.yes && !isTerminal(r.In) {
		return &exit{code: ExitUsage, err: errors.New("cannot ask: stdin is no terminal; make sure that no other cluster has adopted them, then give --yes")}
	}
	agreed, err := ask(ctx, r.options, r.yes, "Are you sure that no other cluster has adopted them?")
	if err != nil || agreed {
		return err
	}
	for _, h := range moved {
		h.excluded, h.Result = true, report.StillHeld
		h.because(reason.HeldByCommand.Messagef("you did not confirm that no other cluster has adopted it"))
		h.Next = "look for it in the other cluster, then run the same again"
	}

	return nil
}
