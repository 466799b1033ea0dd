package restoreitem

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Velero restores Secrets, ConfigMaps and some other kinds first. What these request comes before
// what it may need itself, and a provider would create what it does not find.

// withoutClaims removes the claim from what a connection secret requests, since a claim requests
// its whole tree. The Secret gets that owner back before the claim is released.
func (o *Order) withoutClaims(item *unstructured.Unstructured, refs []xp.Ref) []xp.Ref {
	return slices.DeleteFunc(refs, func(r xp.Ref) bool {
		if !xp.IsConnectionSecret(item) || !o.isClaim(r) {
			return false
		}
		o.Requested.claimed.put(xp.RefTo(item).ID(), true)

		return true
	})
}

// isClaim reports whether a reference is to a claim. Who then requests it reports an error.
func (o *Order) isClaim(r xp.Ref) bool {
	claim, err := o.kinds.IsClaimKind(r.GroupVersionKind())

	return err == nil && claim
}

// unrequested returns what must come back with an item that does not request it, if the restore
// filters by resource: an XR's composed resources, without which it stays held; the Secret that an
// item publishes in, which its provider would create again; the claim of a Secret.
func (o *Order) unrequested(i *item) []xp.Item {
	if len(i.restore.Spec.IncludedResources) == 0 && len(i.restore.Spec.ExcludedResources) == 0 {
		return nil
	}
	var refs []xp.Ref
	switch {
	case xp.IsConnectionSecret(i.original):
		refs = slices.DeleteFunc(xp.Owners(i.original), func(r xp.Ref) bool { return !o.isClaim(r) })
	case isXR(i.original):
		refs, _ = xp.CompositeFrom(i.original).SavedRefs() // An XR without them is refused.
	}
	var items []xp.Item
	if r, publishes := xp.SecretRef(i.original); publishes {
		items = append(items, secretItem(r))
	}
	for _, r := range refs {
		if e, _, err := o.itemOf(r); err == nil { // Adoption reports the error.
			items = append(items, e)
		}
	}

	return items
}

// addEarly records what an item requests, if Velero restores the item before custom resources.
func (o *Order) addEarly(i *item, requests []xp.Item) {
	if len(requests) == 0 || !o.Requested.early.has(i.itemName()) && !o.isFirst(i.original) {
		return
	}
	for _, e := range requests {
		o.Requested.early.put(itemName{e.Group, e.Namespace, e.Name}, true)
	}
}

// isFirst reports whether Velero restores an item's kind before custom resources.
func (o *Order) isFirst(item *unstructured.Unstructured) bool {
	if isSecret(item) || xp.IsCustomGroup(item.GroupVersionKind().Group) {
		return isSecret(item)
	}
	e, _, err := o.itemOf(xp.RefTo(item))

	return err != nil || turn(e) < len(high)
}
