package backupitem

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// ofClaim finds the claim's XR, and lists the whole tree below it: in a restore of the claim's namespace, cluster-scoped XRs and MRs come back
// only if something in the namespace asks for them.
func (l *Links) ofClaim(ctx context.Context, f *found, claim xp.Claim) error {
	if err := l.secret(ctx, f, claim.Unstructured); err != nil {
		return err
	}
	ref, ok := claim.CompositeRef()
	if !ok {
		return nil
	}
	u, err := l.get(ctx, ref)
	if err != nil {
		return err
	}
	if u == nil {
		f.skip(claim.Unstructured, ref, "it does not exist")

		return nil
	}
	if u.GetDeletionTimestamp() != nil {
		f.skip(claim.Unstructured, ref, "it is being deleted, so Velero does not back it up")

		return nil
	}
	xr := xp.CompositeFrom(u)
	if !xp.Bound(claim, xr) {
		f.skip(claim.Unstructured, ref, "it is not bound to this claim; if it should be, correct its spec.claimRef")

		return nil
	}
	item, err := l.item(u)
	if err != nil {
		return err
	}
	f.items = append(f.items, item)
	f.before, err = l.below(ctx, f, xr, map[xp.ID]bool{})

	return err
}

// below lists an XR and all that it composes, directly and through nested XRs, each XR ahead of what it composes.
func (l *Links) below(ctx context.Context, f *found, xr xp.Composite, seen map[xp.ID]bool) ([]xp.Item, error) {
	if seen[xp.RefTo(xr.Unstructured).ID()] {
		return nil, nil
	}
	seen[xp.RefTo(xr.Unstructured).ID()] = true
	self, err := l.item(xr.Unstructured)
	if err != nil {
		return nil, err
	}
	list, err := l.withSecret(ctx, f, []xp.Item{self}, xr.Unstructured)
	if err != nil {
		return nil, err
	}
	composed, err := l.composed(ctx, &found{}, xr)
	if err != nil {
		return nil, err
	}
	for _, u := range composed {
		if xp.IsComposite(u) {
			nested, err := l.below(ctx, f, xp.CompositeFrom(u), seen)
			if err != nil {
				return nil, err
			}
			list = append(list, nested...)

			continue
		}
		item, err := l.item(u)
		if err != nil {
			return nil, err
		}
		if list, err = l.withSecret(ctx, f, append(list, item), u); err != nil {
			return nil, err
		}
	}

	return list, nil
}

// withSecret adds an object's connection secret to the list, if it has one. The object's own backup warns of what is wrong with it.
func (l *Links) withSecret(ctx context.Context, of *found, list []xp.Item, u *unstructured.Unstructured) ([]xp.Item, error) {
	f := &found{published: of.published}
	err := l.secret(ctx, f, u)

	return append(list, f.items...), err
}
