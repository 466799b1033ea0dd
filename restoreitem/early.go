package restoreitem

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Velero restores Secrets, ConfigMaps and some other kinds first. What these request is restored
// before what it may need itself. Its provider would create what it does not find, and Velero would
// then leave that as it is.

// An itemName identifies an item in its group, whatever its kind.
type itemName struct{ group, namespace, name string }

// withoutClaims removes the claim from what a connection secret requests, since a claim requests
// its whole tree. The Secret is restored without that owner, and gets it back before the claim is
// released.
func (o *Order) withoutClaims(item *unstructured.Unstructured, refs []xp.Ref) []xp.Ref {
	if !xp.IsConnectionSecret(item) {
		return refs
	}

	return slices.DeleteFunc(refs, func(r xp.Ref) bool {
		if !o.isClaim(r) {
			return false
		}
		o.Requested.claimed.Store(xp.RefTo(item).ID(), true)

		return true
	})
}

// isClaim reports whether a reference is to a claim. It is false if the kind can't be read: the
// request for the object reports that.
func (o *Order) isClaim(r xp.Ref) bool {
	if o.Claims == nil {
		return false
	}
	claim, err := o.Claims.IsClaimKind(r.GroupVersionKind())

	return err == nil && claim
}

// claimsOf returns the claims that own a connection secret.
func (o *Order) claimsOf(item *unstructured.Unstructured) []xp.Item {
	if !xp.IsConnectionSecret(item) {
		return nil
	}
	var items []xp.Item
	for _, r := range xp.Owners(item) {
		if gvr, _, err := o.mapper.Resource(r.GroupVersionKind()); err == nil && o.isClaim(r) {
			items = append(items, xp.Item{GroupResource: gvr.GroupResource(), Namespace: item.GetNamespace(), Name: r.Name})
		}
	}

	return items
}

// addEarly records what an item requests, if Velero restores the item before custom resources.
func (o *Order) addEarly(item *unstructured.Unstructured, asked []xp.Item) {
	if len(asked) == 0 || !o.Requested.isEarly(item) && !o.isFirst(item) {
		return
	}
	for _, i := range asked {
		o.Requested.early.Store(itemName{i.Group, i.Namespace, i.Name}, true)
	}
}

// isFirst reports whether Velero restores an item's kind before custom resources.
func (o *Order) isFirst(item *unstructured.Unstructured) bool {
	gvk := item.GroupVersionKind()
	if xp.IsCustomGroup(gvk.Group) {
		return false
	}
	if gvk.GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		return true
	}
	gvr, _, err := o.mapper.Resource(gvk)

	return err != nil || turn(xp.Item{GroupResource: gvr.GroupResource()}) < len(high)
}

// isEarly reports whether an item was requested before Velero came to custom resources.
func (ri *RequestedItems) isEarly(item *unstructured.Unstructured) bool {
	_, ok := ri.early.Load(itemName{item.GroupVersionKind().Group, item.GetNamespace(), item.GetName()})

	return ok
}

// isBeforeClaim reports whether a connection secret is restored before its claim.
func (ri *RequestedItems) isBeforeClaim(secret *unstructured.Unstructured) bool {
	_, ok := ri.claimed.Load(xp.RefTo(secret).ID())

	return ok
}
