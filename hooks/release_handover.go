package hooks

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkHandover refuses to abort a handover that another cluster has begun to adopt, unless with
// --force. Before anything is released, it ends the record of the handover: a backup of what goes
// on here is a plain backup.
func (r *release) checkHandover(ctx context.Context) error {
	aborted := slices.DeleteFunc(r.holds.due(), func(h *held) bool { return !h.handover })
	if len(aborted) == 0 && !r.handover {
		return nil
	}
	if len(aborted) > 0 && !r.force {
		if err := r.refuseAdopted(ctx, aborted); err != nil {
			return err
		}
	}
	if isRefused := slices.ContainsFunc(aborted, func(h *held) bool { return h.excluded }); isRefused || r.dryRun || len(r.names) > 0 || !r.handover {
		return nil
	}

	return rightError(r.forgetHandover(ctx))
}

// forgetHandover removes the record of the handover of the namespace, or of all.
func (r *release) forgetHandover(ctx context.Context) error {
	all, err := r.cluster.Handovers(ctx, r.velero)
	if err != nil {
		return err
	}
	for namespace := range all {
		if r.namespace != "" && r.namespace != namespace {
			continue
		}
		if err := r.cluster.RecordHandover(ctx, r.velero, namespace, nil); err != nil {
			return err
		}
	}

	return nil
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
			if h.Since != nil && receipt.Started.Before(*h.Since) || !covers(receipt, h.object) {
				continue
			}
			h.excluded, h.Result, h.Next = true, report.StillHeld, "retire it here; or, if nothing is adopted there any more, run: "+Name+" release --handover --force"
			h.because(reason.AdoptedElsewhere.Messagef("the cluster %s has begun to adopt the backup %s, with its Restore %s", receipt.Cluster, receipt.Backup,
				receipt.Restore))
		}
	}

	return nil
}

// covers reports whether a receipt can be about an object. A cluster-scoped object belongs to the
// namespace of its claim, and without a claim can be in any backup.
func covers(r adoption.Receipt, u *unstructured.Unstructured) bool {
	namespace := cmp.Or(u.GetNamespace(), xp.Label(u, xp.LabelClaimNamespace))

	return namespace == "" || r.Covers(namespace, u.GetCreationTimestamp().Time)
}
