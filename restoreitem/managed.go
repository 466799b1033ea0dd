package restoreitem

import (
	"cmp"
	"context"
	"slices"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/externalname"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// isManaged reports whether the item is an MR, and neither an XR nor a claim.
func (i *item) isManaged() bool { return xp.IsManaged(i.original) }

// recoverName sets an MR's external-name to what a setting or the table of known kinds derives from
// the ID in its status. The table does not count if another MR in the backup or the cluster manages
// that: a user must then decide which of them does.
func (a *Adopt) recoverName(i *item) error {
	if !i.isManaged() || xp.IdentityOf(i.original) != xp.Recoverable {
		return nil
	}
	id, _ := xp.ProviderID(i.original)
	name, known := externalname.Of(i.GroupVersionKind().GroupKind(), id, i.settings)
	if !known || !name.Chosen && xp.HasFlag(i.original, xp.FieldDoubted) {
		return nil
	}
	if taken, err := a.isTaken(i, id, name); err != nil || taken {
		return err
	}
	xp.Annotate(i.Unstructured, xp.AnnotationExternalName, name.External)
	i.recovered = true
	i.log.WithField("externalName", name.External).Info("Restored with its provider's name for it as its external-name, as " + name.By)

	return nil
}

// isTaken reports whether a live MR manages the external resource of that ID. A name that is only a
// part of the ID does not identify it. In a restore to other namespaces the item is a copy then.
func (a *Adopt) isTaken(i *item, id string, name externalname.Name) (bool, error) {
	if name.Chosen || name.External != id || len(i.restore.Spec.NamespaceMapping) > 0 {
		return false, nil
	}
	named, err := a.cluster.Named(context.Background(), i.GroupVersionKind(), id)
	if err != nil {
		return false, apiErrorf("cannot find out who else manages the external resource of %s: %w", xp.String(i.original), err)
	}
	account := i.providerConfig()
	n := slices.IndexFunc(named, func(m xp.Managing) bool { return m.ID() != i.self().ID() && m.Account == account && !m.Observes })
	if n < 0 {
		return false, nil
	}
	i.warn(reason.ExternalNameTaken.Messagef("%s is held: its external-name would be %s, as %s, but %s has that already. Set the annotation %s of the one that "+
		"manages the external resource, and delete the other", xp.String(i.original), id, name.By, named[n], xp.AnnotationExternalName))

	return true, nil
}

// identity returns the identity of the restored MR.
func (i *item) identity() xp.Identity {
	identity := xp.IdentityOf(i.original)
	nameless := (identity == xp.Recoverable || identity == xp.Unknown) && slices.Contains(i.settings.Unnamed, i.GroupVersionKind().GroupKind())
	if i.recovered || nameless {
		return xp.Known
	}

	return identity
}

// formerHold returns the hold that the item had at backup time, nil if none can be read.
func (i *item) formerHold() *hold.Hold {
	h, err := hold.Of(i.original)
	if err != nil {
		return nil
	}

	return h
}

// withoutHold returns the item without the hold that it had at backup time.
func (i *item) withoutHold() *unstructured.Unstructured {
	if i.formerHold() == nil {
		return i.original
	}
	own := i.original.DeepCopy()
	_ = hold.RemoveBackedUpHold(own) // It fails only for XRs and claims, whose fields can be anything.

	return own
}

// holdOf returns the hold that an MR needs, nil if it needs none.
func (i *item) holdOf() *hold.Hold {
	if i.fresh {
		return &hold.Hold{Quarantine: i.isQuarantined(), ByHand: i.settings.ByHand}
	}
	if !i.isManaged() {
		return nil
	}
	own := i.withoutHold()
	h := &hold.Hold{
		Status: i.neededStatus(), Observes: i.mustObserve() && i.canObserve(own), Quarantine: i.isQuarantined(), ByHand: i.settings.ByHand,
		Inputs: i.inputs, SecretWas: i.secretWas, FromUID: i.fromUID,
	}
	if i.settings.Hold != setting.HoldNone {
		h.Identity = i.unsafeIdentity(own)
	}
	if h.Reason = i.reasonOf(h); h.Reason == "" && !h.Quarantine {
		return nil
	}
	if (h.Identity == xp.Recoverable || i.awaitsRelease()) && !i.settings.WithoutStatus && !slices.Contains(h.Status, "atProvider") {
		// A later backup needs it, too.
		h.Status = append(h.Status, "atProvider")
	}

	return h
}

// reasonOf returns why an MR needs a hold, "" if only a quarantine requires it.
func (i *item) reasonOf(h *hold.Hold) string {
	switch {
	case h.Identity != "":
		id, _ := xp.ProviderID(i.original)
		why := adoption.WhyHeld(h.Identity, id)

		return why.Code.Messagef("restored from a backup; %s", why.Text).String()
	case h.FromUID != nil:
		return hold.ReasonFromUID(h.FromUID)
	case h.Observes:
		return hold.ReasonObserve
	case len(h.Inputs) > 0:
		return hold.ReasonInput(h.Inputs[0])
	case xp.Publishes(i.original):
		return hold.ReasonSecret
	case len(h.Status) > 0:
		return hold.ReasonStatus
	case hold.IsMarked(i.original):
		return hold.ReasonMarked
	case i.early:
		return hold.ReasonEarly
	default:
		return ""
	}
}

// holdOwnerless adds the XR of an MR that is restored without its controller to h, which may be nil.
func (i *item) holdOwnerless(h *hold.Hold) *hold.Hold {
	if i.ownerless == nil || !i.isManaged() {
		return h
	}
	h = cmp.Or(h, &hold.Hold{Reason: i.reasonOwnerless(), ByHand: i.settings.ByHand})
	h.Owner = i.ownerless

	return h
}

func (i *item) reasonOwnerless() string {
	if i.abandoned {
		return hold.ReasonAbandoned(i.self())
	}

	return hold.ReasonOwnerless
}

// unsafeIdentity returns the identity of an MR that could create another external resource, or "".
func (i *item) unsafeIdentity(own *unstructured.Unstructured) xp.Identity {
	identity := i.identity()
	if identity == xp.Known || identity == xp.NeverCreated || xp.IsPaused(own) || !xp.MayCreate(own) {
		return ""
	}

	return identity
}

// mustObserve reports whether an MR must observe before it does anything else.
func (i *item) mustObserve() bool {
	s := i.settings
	upjet := s.ObserveFirst == setting.ObserveUpjet && s.Hold != setting.HoldNone && i.identity() == xp.Known && xp.IsUpjet(i.original)

	return upjet || s.ObserveFirst == setting.ObserveAll
}

// canObserve reports whether an MR does more than observe, and has something to observe.
func (i *item) canObserve(own *unstructured.Unstructured) bool {
	return i.identity() != xp.NeverCreated && !xp.IsPaused(own) && xp.MayWrite(own) && !xp.OnlyObserves(i.Unstructured)
}

// holdManaged holds an MR and returns the ID of the operation that releases it, "" if its XR's does.
func (a *Adopt) holdManaged(i *item, h hold.Hold) (string, error) {
	if err := a.putHold(i, h); err != nil {
		return "", err
	}
	if h.Identity != "" {
		i.log.WithFields(logrus.Fields{"identity": h.Identity, "reason": string(adoption.WhyHeld(h.Identity, "").Code)}).Warnf("Restored and held: %s: %s",
			xp.String(i.original), h.Reason)
	}
	adopted, err := a.isAdopted(i)
	if err != nil || adopted {
		return "", err
	}

	return operationID(i.self()), nil
}

// warnOfIdentity warns of an MR that is restored without an identity and not held for that. Either
// it creates nothing as it is, or a setting turns the hold off.
func (i *item) warnOfIdentity() {
	if !i.isManaged() {
		return
	}
	if unsafe := i.unsafeIdentity(i.withoutHold()); unsafe != "" {
		id, _ := xp.ProviderID(i.original)
		i.warn(reason.NotHeld.Messagef("%s is not held, because the setting %s is %s, and its provider can create an external resource: %s", xp.String(i.original),
			setting.NameHold, setting.HoldNone, adoption.WhyHeld(unsafe, id).Text))

		return
	}
	if identity := i.identity(); identity == xp.Unknown || identity == xp.Recoverable {
		i.warn(reason.IdentityMissing.Messagef("%s comes back without an external-name, and is paused or may not create anything. Before you change that, set its "+
			"annotation %s to the name of its external resource", xp.String(i.original), xp.AnnotationExternalName))
	}
}
