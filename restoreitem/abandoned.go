package restoreitem

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// needsItsXR reports whether the item must not be reconciled without the controller that ref means:
// an MR or a nested XR. Its XR can be out of the backup, as one that was being deleted, or refused
// by the API server. Without a hold the item would run without an owner, and who creates the XR
// again would get others beside it. One that only observes changes nothing outside.
func (i *item) needsItsXR(ref metav1.OwnerReference) bool {
	return isController(ref) && xp.IsComposed(i.original) && (i.isManaged() || xp.IsComposite(i.original)) && !i.copied && !xp.OnlyObserves(i.Unstructured) &&
		i.settings.Hold != setting.HoldNone
}

// ownerOf returns the reference to an owner; u is nil if that is not live. A missing one has the
// item's scope, since a kind without objects may not be served.
func (i *item) ownerOf(ref metav1.OwnerReference, u *unstructured.Unstructured) *xp.Ref {
	if u != nil {
		return new(xp.RefTo(u))
	}

	return &xp.Ref{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: i.namespace, Name: ref.Name}
}

// findAbandoned finds the XR for which the item was held already at its backup.
func (i *item) findAbandoned() {
	h, err := adoption.HoldOf(i.original)
	if err != nil || h == nil || h.Owner == nil || i.ownerless != nil || i.settings.Hold == setting.HoldNone {
		return
	}
	if _, controlled := xp.Controller(i.original); controlled {
		return
	}
	owner := *h.Owner
	if owner.Namespace != "" {
		owner.Namespace = targetNamespace(owner.Namespace, i.restore)
	}
	i.ownerless, i.abandoned = &owner, true
}
