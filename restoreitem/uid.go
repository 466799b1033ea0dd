package restoreitem

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// carryUIDs replaces the UIDs that the XRs above a composed item had in the backup by those that
// they have now, in names inside the cluster: when Crossplane and the provider look again, nothing
// changes. An MR or XR with another field that Crossplane would change, and that may be its
// identity, is held.
func (a *Adopt) carryUIDs(i *item) {
	c, ok := xp.Controller(i.original)
	if !ok || !xp.IsComposed(i.original) {
		return
	}
	noted := xp.UIDOwners(i.original)
	uids := []types.UID{c.UID}
	for _, o := range noted {
		uids = append(uids, o.UID)
	}
	// Any user who could write the object can have written its mark, which holds only this object.
	var before *hold.FromUID
	if h := i.formerHold(); h != nil && !h.Freed && h.FromUID != nil {
		before = h.FromUID
		uids = append(uids, types.UID(before.UID)) // That of an XR of an earlier cluster.
	}
	slices.Sort(uids)
	fields := xp.UIDFields(i.original, slices.Compact(uids)...)
	if len(fields) == 0 && before == nil {
		return
	}
	xr := xp.Ref{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: i.namespace, Name: c.Name}
	// In a restore by labels the Secret can come before its publisher, under its old name.
	if !isSelective(i.restore) && len(fields) > 0 {
		i.carried = a.carriedUIDs(i, c, noted)
		xp.ReplaceUIDs(i.Unstructured, i.carried)
		i.log.WithField("field", fields[0].Path).Info("Names from the UID of an XR above it get the UID that the XR has now")
	}
	was, _ := xp.SecretRef(i.original)
	if is, _ := xp.SecretRef(i.Unstructured); is.Name != was.Name {
		i.secretWas = was.Name
	}
	i.holdForUIDs(xr, fields)
	if before != nil && i.fromUID == nil && i.settings.Hold != setting.HoldNone {
		before.XR = xr
		i.fromUID = before
	}
}

// holdForUIDs makes the hold of an MR or XR wait for a user, if it has fields that Crossplane changes
// when it reconciles the XR, and that may be its identity.
func (i *item) holdForUIDs(xr xp.Ref, fields []xp.UIDField) {
	if !i.isManaged() && !xp.IsComposite(i.original) {
		return
	}
	from := hold.FromUID{XR: xr}
	for _, f := range fields {
		_, known := i.carried[f.UID]
		if f.IsIdentity(i.original) || f.NamesSecret() && !known {
			from.UID = cmp.Or(from.UID, string(f.UID))
			from.Fields = append(from.Fields, f.Path)
		}
	}
	switch {
	case len(from.Fields) == 0:
	case i.settings.Hold == setting.HoldNone:
		i.warn(reason.NotHeld.Messagef("%s is not held, because the setting %s is %s: %s", xp.String(i.original), setting.NameHold, setting.HoldNone,
			from.Why().Text))
	default:
		i.fromUID = &from
	}
}

// carriedUIDs returns the UIDs of live XRs above the item by the UIDs that these had in the backup.
// The first is proven as an owner, each other as the controller of the one below it.
func (a *Adopt) carriedUIDs(i *item, controller metav1.OwnerReference, noted []xp.UIDOwner) map[types.UID]types.UID {
	uid, ok := i.liveUIDs[controller.UID]
	if !ok {
		return nil
	}
	uids := map[types.UID]types.UID{controller.UID: uid}
	if len(noted) == 0 {
		return uids
	}
	controller.UID = uid
	for _, xr := range a.above(controller, i.namespace) {
		for _, o := range noted {
			if o.GroupVersionKind().GroupKind() == xr.GroupVersionKind().GroupKind() && o.Name == xr.GetName() {
				uids[o.UID] = xr.GetUID()
			}
		}
	}

	return uids
}

// above returns the live XR that a reference in the namespace means, the XR above it, and so on.
func (a *Adopt) above(controller metav1.OwnerReference, namespace string) []*unstructured.Unstructured {
	const most = 16
	var all []*unstructured.Unstructured
	for n := 0; n < most && controller.UID != ""; n++ {
		xr, err := a.cluster.Owner(context.Background(), controller, namespace)
		if err != nil || xr.GetUID() != controller.UID || !xp.IsComposite(xr) {
			break // What is not proven is not carried over.
		}
		all = append(all, xr)
		controller, _ = xp.Controller(xr)
	}

	return all
}

// renameSecret gives a connection secret the name under which its live publisher has it now.
// present means that the cluster has it under that name.
func (a *Adopt) renameSecret(i *item) (present bool, err error) {
	c, ok := xp.Controller(i.original)
	if !ok || !xp.IsConnectionSecret(i.original) {
		return false, nil
	}
	if by, _, owned := a.Requested.publisherOf(i.original); owned && by.as != "" {
		i.SetName(by.as)

		return a.isLive(i) // Velero must not write the backup's data over it.
	}
	publisher, err := a.owner(c, i.namespace)
	if err != nil {
		return false, nil //nolint:nilerr // relink reports it.
	}
	if publisher == nil {
		i.absentOwner = c.UID

		return false, nil
	}
	is, ok := xp.SecretRef(publisher)
	if !ok || is.Namespace != i.namespace || is.Name == i.GetName() {
		return false, nil
	}
	h, err := a.liveHold(i, publisher)
	if err != nil {
		return false, err
	}
	if h != nil && h.SecretWas == i.GetName() {
		i.SetName(is.Name)

		return a.isLive(i)
	}

	return a.isRenamed(i, publisher, is)
}

// isRenamed reports whether the cluster has a connection secret under the name that comes from the
// UID that an XR above its publisher has now: the hold is off, and an earlier restore has brought it.
func (a *Adopt) isRenamed(i *item, publisher *unstructured.Unstructured, is xp.Ref) (present bool, err error) {
	controller, _ := xp.Controller(publisher)
	renamed := slices.ContainsFunc(a.above(controller, i.namespace), func(xr *unstructured.Unstructured) bool {
		return xp.IsRenamed(is.Name, i.GetName(), xr.GetUID())
	})
	if !renamed {
		return false, nil
	}
	if present, err = a.cluster.Exists(context.Background(), is); err != nil {
		return false, apiErrorf("cannot find out whether %s exists, which is %s of the backup: %w", is, xp.String(i.original), err)
	}
	if present {
		i.log.WithField("secret", is.String()).Info("It is in the cluster under the name that comes from the new UID of its XR")
	}

	return present, nil
}
