package hooks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// abortTimeout is for what has to be done after an interruption.
const abortTimeout = 10 * time.Second

// checkHandover refuses to abort a handover that another cluster has begun to adopt, unless with
// --force. Before anything is released, it ends the record of the handover and records the abort: a
// backup of what goes on here is a plain backup, and no cluster adopts an older one any more.
func (r *release) checkHandover(ctx context.Context) error {
	aborted := slices.DeleteFunc(r.holds.due(), func(h *held) bool { return !h.handover })
	if len(aborted) == 0 && !r.handover {
		return nil
	}
	if !r.force {
		if err := r.refuseAdopted(ctx, aborted); err != nil {
			return err
		}
	}
	if r.dryRun {
		return nil
	}

	return rightError(r.abort(ctx, aborted))
}

// abort looks again for receipts after it has recorded the abort of what is not excluded. Either it
// sees the receipt of another cluster then, or that cluster sees the record. If something stays held,
// the record of the handover stays too.
func (r *release) abort(ctx context.Context, all []*held) error {
	aborted := slices.DeleteFunc(slices.Clone(all), func(h *held) bool { return h.excluded })
	var ended adoption.Handovers
	var err error
	if len(r.names) == 0 && r.handover && len(aborted) == len(all) {
		ended, err = r.endHandovers(ctx)
	}
	if err == nil && len(aborted) > 0 {
		err = r.recordAbort(ctx, aborted)
	}
	if err == nil && !r.force {
		err = r.refuseAdopted(ctx, aborted)
	}
	if err == nil && !slices.ContainsFunc(aborted, func(h *held) bool { return h.excluded }) {
		return nil
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	for namespace, h := range ended {
		err = errors.Join(err, r.cluster.RecordHandover(limited, r.velero, namespace, &h))
	}

	return err
}

// recordAbort records the abort where a backup of the handover is. Unless with --force, it waits
// until the receipts are here of all clusters that can't see the record.
func (r *release) recordAbort(ctx context.Context, aborted []*held) error {
	since := time.Now()
	namespaces := map[string]bool{}
	for _, h := range aborted {
		namespaces[adoption.ScopeOf(h.object)] = true
		switch {
		case h.Since == nil:
			since = time.Time{} // Any backup can have it.
		case h.Since.Before(since):
			since = *h.Since
		}
	}
	records, err := r.cluster.RecordAbort(ctx, r.velero, since, slices.Sorted(maps.Keys(namespaces)))
	if err == nil && len(records) > 0 && !r.force {
		r.logf("there is a backup of the handover: waiting for up to two minutes until Velero has synchronized the bucket, to see whether another cluster adopts it")
		err = r.cluster.AwaitSync(ctx, r.velero, records)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return reason.Interrupted.Errorf("cannot continue: %w; everything stays held", ctx.Err())
	case r.force:
		r.logf("warning: a cluster that restores an older backup of the handover would adopt it, since this can't be recorded: %s", err)

		return nil
	default:
		return fmt.Errorf("cannot make sure that no other cluster adopts a backup of the handover, so everything stays held; if none does, add --force: %w", err)
	}
}

// endHandovers removes the record of the handover of the namespace, or of all, and returns what it
// has removed.
func (r *release) endHandovers(ctx context.Context) (adoption.Handovers, error) {
	ended, err := r.cluster.Handovers(ctx, r.velero)
	if err != nil {
		return nil, err
	}
	for namespace := range ended {
		if r.namespace != "" && r.namespace != namespace {
			delete(ended, namespace)

			continue
		}
		if err := r.cluster.RecordHandover(ctx, r.velero, namespace, nil); err != nil {
			return ended, err
		}
	}

	return ended, nil
}

// refuseAdopted excludes the objects that a backup has which another cluster has begun to adopt.
func (r *release) refuseAdopted(ctx context.Context, aborted []*held) error {
	uid, err := r.cluster.UID(ctx)
	if err != nil {
		return rightError(err)
	}
	receipts, err := r.cluster.Receipts(ctx, r.velero, uid)
	if err != nil {
		return rightError(err)
	}
	for _, h := range aborted {
		for _, receipt := range receipts {
			if h.Since != nil && receipt.Started.Before(*h.Since) || !receipt.CoversObject(h.object) {
				continue
			}
			h.excluded, h.Result, h.Next = true, report.StillHeld, "retire it here; or, if nothing is adopted there any more, run: "+Name+" release --handover --force"
			h.because(reason.AdoptedElsewhere.Messagef("the cluster %s has begun to adopt the backup %s, with its Restore %s", receipt.Cluster, receipt.Backup,
				receipt.Restore))
		}
	}

	return nil
}
