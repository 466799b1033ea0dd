package backupitem

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// ofClaim finds the claim's XR and lists the tree below it. A restore of the claim's namespace
// brings cluster-scoped XRs and MRs only if something in the namespace requests them.
func (res *Resolver) ofClaim(ctx context.Context, f *found, claim xp.Claim) {
	res.secret(ctx, f, claim.Unstructured)
	ref, ok := claim.CompositeRef()
	if !ok {
		return
	}
	// A claim can name any XR, so the warning is the same if there is none and if it is another's.
	u := res.linked(ctx, f, ref, func(u *unstructured.Unstructured) bool { return xp.Bound(claim, xp.CompositeFrom(u)) },
		reason.NotLinked.Messagef("it does not exist, or is not bound to this claim. If it is the claim's XR, correct its spec.claimRef"))
	if u != nil && res.take(f, u) {
		f.before = res.below(ctx, f, xp.CompositeFrom(u), map[xp.ID]bool{})
	}
}

// below lists an XR and all that it composes, also through nested XRs. Each XR comes before what it
// composes.
func (res *Resolver) below(ctx context.Context, f *found, xr xp.Composite, seen map[xp.ID]bool) []xp.Item {
	if seen[xp.RefTo(xr.Unstructured).ID()] {
		return nil
	}
	seen[xp.RefTo(xr.Unstructured).ID()] = true
	list := res.withSecret(ctx, f, xr.Unstructured)
	for _, u := range res.composed(ctx, f.separate(), xr) {
		if xp.IsComposite(u) {
			list = append(list, res.below(ctx, f, xp.CompositeFrom(u), seen)...)

			continue
		}
		list = append(list, res.withSecret(ctx, f, u)...)
	}

	return list
}

// withSecret lists an object and its connection secret, if it has one. Warnings are given when the
// object itself is backed up.
func (res *Resolver) withSecret(ctx context.Context, of *found, u *unstructured.Unstructured) []xp.Item {
	f := of.separate()
	res.take(f, u)
	res.secret(ctx, f, u)

	return f.items
}

// leavesOut returns why Velero leaves an object out of a backup, none if it doesn't. Call it only
// for what belongs to the item that names it.
func leavesOut(u *unstructured.Unstructured) reason.Message {
	switch {
	case u.GetDeletionTimestamp() != nil:
		return reason.DeletedDuringBackup.Messagef("it is being deleted, so Velero does not back it up")
	case isExcluded(u):
		return reason.ExcludedByLabel.Messagef("its label %s keeps it out of backups. If a restore needs it, remove that label, then back up again", excludeLabel)
	default:
		return reason.Message{}
	}
}
