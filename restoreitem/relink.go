package restoreitem

import (
	"context"
	"slices"

	"github.com/sirupsen/logrus"
	"github.com/vmware-tanzu/velero/pkg/label"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// relink writes the item's owner references with the owners' current UIDs, unless Velero does. An
// owner that is not live, or does not list the item, is dropped, never written with its old UID:
// the garbage collector deletes an object whose owners are all absent (kubernetes
// pkg/controller/garbagecollector), and an MR's finalizer then deletes the external resource.
// refused means that the item must not come back, because Crossplane reconciles its XR without it.
func (a *Adopt) relink(i *item) (refused bool, err error) {
	if a.lacksPublisher(i) {
		return true, nil
	}
	left := a.leavesOwners()
	uids := map[types.UID]types.UID{}
	refs, more := xp.OwnerReferences(i.original)
	if more > 0 {
		i.warn(reason.TooManyReferences.Messagef("It has %d owner references, and the restore leaves out %d that are not the controller's. Find out who wrote them",
			len(refs)+more, more))
	}
	for _, ref := range refs {
		owner, why, err := a.liveOwner(ref, i)
		if err != nil {
			return false, apiErrorf("cannot find the owner %s %q of %s: %w", ref.Kind, ref.Name, xp.String(i.original), err)
		}
		if why == "" {
			uids[ref.UID] = owner.GetUID()
			ref.UID = owner.GetUID()
			if err := a.addOwner(i, owner, ref, left); err != nil {
				return false, err
			}

			continue
		}
		if refused, err := a.leaveOwner(i, ref, owner, why, left); err != nil || refused {
			return refused, err
		}
	}
	if !left {
		i.SetOwnerReferences(i.owners)
	}
	xp.RenameOwners(i.Unstructured, uids)
	i.liveUIDs = uids

	return false, nil
}

// FeatureRelink is the Velero feature that writes owners (velero PR #10556, in no release yet).
const FeatureRelink = "OwnerRefRelink"

// leavesOwners reports, and logs once, whether Velero writes owners: two would undo each other's.
func (a *Adopt) leavesOwners() bool {
	if a.Features == nil || !slices.Contains(a.Features(), FeatureRelink) {
		return false
	}
	a.Requested.loggedRelink.Do(func() {
		m := reason.OwnersLeftToVelero.Messagef("The feature %s is on, so Velero writes the owner references, of the kinds in its ConfigMap. Crossplane takes "+
			"control of what an XR lists; see docs/compatibility.md", FeatureRelink)
		withCode(a.log, m).Info(m)
	})

	return true
}

// lacksPublisher reports, and warns, that an item is the Secret of an object that is not restored.
func (a *Adopt) lacksPublisher(i *item) bool {
	c, ok := xp.Controller(i.original)
	if !ok || !xp.IsConnectionSecret(i.original) || !a.hasRefused(c, i.namespace) {
		return false
	}
	i.warn(reason.OwnerNotRestored.Messagef("It is not restored, because %s %s, which published it, is not restored", c.Kind, c.Name))

	return true
}

// leaveOwner is for an owner that the item comes back without, with the reason. left means that
// Velero writes owners. It returns true if the item must not come back without it.
func (a *Adopt) leaveOwner(i *item, ref metav1.OwnerReference, owner *unstructured.Unstructured, why string, left bool) (refused bool, err error) {
	refuses, err := a.refusesWithout(owner, ref, i)
	if err != nil {
		return false, err
	}
	if !refuses && !left && i.needsItsXR(ref) {
		// A missing one has the item's scope, since a kind without objects may not be served.
		i.ownerless, i.abandoned = &xp.Ref{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: i.namespace, Name: ref.Name}, true
		if owner != nil {
			i.ownerless = new(xp.RefTo(owner))
		}
	}
	log := i.log.WithFields(logrus.Fields{"owner": ref.Kind + " " + ref.Name, "cause": why})
	switch {
	case refuses:
		a.refused.put(i.self().ID(), true)
	case left:
		m := reason.OwnersLeftToVelero.Messagef("Velero may restore an owner that this plugin would leave out")
		withCode(log, m).Info(m)
	case owner == nil && a.restoresBeforeOwner(i):
		log.Info("Restored before its owner, which takes it over")
	default:
		i.warn(reason.RestoredWithoutOwner.Messagef("Restored without its owner %s %s: %s. %s", ref.Kind, ref.Name, why, i.ownerlessText()))
	}

	return refuses, nil
}

// addOwner adds an owner. left means that Velero writes owner references. An MR comes back without
// its controller if Crossplane reconciles that, although it lists the MR: Crossplane deletes an
// unwanted resource before it removes it from the list. It makes the XR the controller of each
// resource that it still wants.
func (a *Adopt) addOwner(i *item, owner *unstructured.Unstructured, ref metav1.OwnerReference, left bool) error {
	if i.isManaged() && !left && !xp.IsPaused(owner) && i.settings.Hold != setting.HoldNone {
		without, err := a.isReconciledWithout(owner, ref, i)
		if err != nil {
			return err
		}
		if without {
			i.ownerless = new(xp.RefTo(owner))

			return nil
		}
	}
	i.owners = append(i.owners, ref)

	return nil
}

// restoresBeforeOwner reports whether an item may come back before its owner.
func (a *Adopt) restoresBeforeOwner(i *item) bool {
	if isSelective(i.restore) || xp.IsRevision(i.original) {
		return true
	}
	_, reached, _ := a.Requested.publisherOf(i.original)

	return reached || a.Requested.claimed.has(xp.RefTo(i.original).ID())
}

// refusesWithout reports, and warns, that the item must not come back without an owner.
func (a *Adopt) refusesWithout(owner *unstructured.Unstructured, ref metav1.OwnerReference, i *item) (bool, error) {
	without, err := a.isReconciledWithout(owner, ref, i)
	if err != nil {
		return false, err
	}
	switch {
	case !i.copied && isLeftover(owner, ref, i):
		i.warn(reason.UsageLeftBehind.Messagef("It is not restored, because its XR %s does not list it, and it would protect %s for ever. Where it still exists, "+
			"and what it protects is not in use, clear it: %s", ref.Name, xp.Protected(i.original), xp.ClearUsage(i.original)))
	case !i.copied && without && a.isOfThisRestore(owner, i):
		a.refused.put(i.self().ID(), true)

		// A restore releases nothing before it has restored all, so another writer is at work.
		return false, reason.XRNotHeld.Errorf("cannot restore %s: its XR %s is newer than this restore and not held, and Crossplane has reconciled it without "+
			"this. Find out who wrote it (kubectl get --show-managed-fields), and see docs/gitops.md, \"The hold was taken off\"",
			xp.String(i.original), xp.String(owner))
	case !i.copied && without:
		i.warnReplaced(owner)
	case owner == nil && isController(ref) && xp.IsComposed(i.original) && a.hasRefused(ref, i.namespace):
		i.warn(reason.OwnerNotRestored.Messagef("It is not restored, because %s %s, which composed it, is not restored. If you need it, restore that first; its "+
			"external resource stays as it is", ref.Kind, ref.Name))
	default:
		return false, nil
	}

	return true, nil
}

// warnReplaced warns that the item is not restored, because Crossplane reconciles its XR without
// it. An XR of the backup has dropped it from its list; a newer XR has composed other resources.
func (i *item) warnReplaced(xr *unstructured.Unstructured) {
	made, began := i.original.GetCreationTimestamp(), xr.GetCreationTimestamp() // An XR is older than what it composes.
	if xp.Label(xr, xp.LabelRestore) != "" || made.IsZero() || !made.Before(&began) {
		i.warn(reason.NotListed.Messagef("It is not restored, because its XR %s exists and does not list it. If you need it, pause the XR, add it to the XR's "+
			"resourceRefs, and restore again", xr.GetName()))

		return
	}
	of := xp.RefTo(xr)
	if claim, ok := xp.CompositeFrom(xr).ClaimRef(); ok {
		of = claim
	}
	i.fail(reason.ComposedTwice.Messagef("It is not restored, because its XR %s was created in this cluster after the backup, and has composed others. To get "+
		"this one back, %s", xr.GetName(), xp.HowToGetBack(of)))
}

// isOfThisRestore reports whether this restore created u. A writer that replaces an object removes
// the label, so without one the time decides.
func (a *Adopt) isOfThisRestore(u *unstructured.Unstructured, i *item) bool {
	name, began := xp.Label(u, xp.LabelRestore), a.startOf(i.restore)
	if name == "" && !began.IsZero() {
		return !u.GetCreationTimestamp().Time.Before(began)
	}

	return name == label.GetValidName(i.restore.Name)
}

func isController(ref metav1.OwnerReference) bool { return ptr.Deref(ref.Controller, false) }

// hasRefused reports whether the restore refused an owner.
func (a *Adopt) hasRefused(ref metav1.OwnerReference, namespace string) bool {
	_, refused := ofOwner(&a.refused, ref, namespace)

	return refused
}

// isReconciledWithout reports whether the owner is an XR that composed the item, and that
// Crossplane reconciles without it. A held XR is as old as the item, so it does not count.
func (a *Adopt) isReconciledWithout(owner *unstructured.Unstructured, ref metav1.OwnerReference, i *item) (bool, error) {
	if owner == nil || owner.GetDeletionTimestamp() != nil || !isController(ref) || !xp.IsComposed(i.original) || !xp.IsComposite(owner) {
		return false, nil
	}
	h, err := a.liveHold(i, owner)
	// A mark that can't be verified, as after the loss of its key, may still be a hold.
	held := h != nil || xp.HasAnnotation(owner, hold.Annotation) && xp.IsPaused(owner)

	return !held, err
}

// ownerlessText returns what happens to the item without its owner, and the next step.
func (i *item) ownerlessText() string {
	switch {
	case xp.IsUsage(i.original):
		return "It still protects " + xp.Protected(i.original) + ". If no owner is still to come, and that is not in use, clear it: " + xp.ClearUsage(i.original)
	case xp.IsConnectionSecret(i.original):
		return "If its publisher exists and can't publish, delete this Secret"
	case i.abandoned:
		return "It is held. " + hold.HowToOwn(i.self())
	}

	return "If its XR lists it, Crossplane takes it over. If not, delete it, and keep its external resource if that is in use"
}

// liveOwner returns the owner that ref means, nil for none, and why the item can't have it, else "".
func (a *Adopt) liveOwner(ref metav1.OwnerReference, i *item) (*unstructured.Unstructured, string, error) {
	const absent = "it is not in the cluster"
	if ref.UID != "" && ref.UID == i.absentOwner {
		return nil, absent, nil
	}
	owner, err := a.cluster.Owner(context.Background(), ref, i.namespace)
	switch {
	case isAbsent(err):
		return nil, absent, nil
	case err != nil && xp.IsConnectionSecret(i.original):
		// The Secret's data may be nowhere else. Its publisher becomes its controller again later.
		return nil, "it can't be read: " + err.Error(), nil
	case err != nil:
		return nil, "", err
	}
	a.Requested.live.put(xp.RefTo(owner).ID(), true)
	if owner.GetDeletionTimestamp() != nil {
		return owner, "it is being deleted", nil
	}
	if !isController(ref) {
		// Nothing in such an owner refers to the item, so it must be in the item's own namespace.
		if owner.GetNamespace() != i.namespace {
			return owner, "it is not the controller, and in another scope", nil
		}

		return owner, "", nil
	}
	if xp.IsComposed(i.original) { // Another writer may have created its XR.
		if owner, err = a.takeOver(i, owner); err != nil {
			return nil, "", err
		}
	}
	verified := i.original
	if xp.IsConnectionSecret(verified) && i.GetName() != verified.GetName() {
		verified = verified.DeepCopy()
		verified.SetName(i.GetName())
	}

	return owner, xp.VerifyOwner(owner, verified, i.namespace), nil
}

// needsItsXR reports whether the item must not be reconciled without the controller that ref means:
// an MR or a nested XR. Its XR can be out of the backup, as one that was being deleted, or refused
// by the API server. Without a hold the item would run without an owner, and who creates the XR
// again would get others beside it. One that only observes changes nothing outside.
func (i *item) needsItsXR(ref metav1.OwnerReference) bool {
	return isController(ref) && xp.IsComposed(i.original) && (i.isManaged() || xp.IsComposite(i.original)) && !i.copied && !xp.OnlyObserves(i.Unstructured) &&
		i.settings.Hold != setting.HoldNone
}

// findAbandoned finds the XR for which the item was held already at its backup.
func (i *item) findAbandoned() {
	h := i.formerHold()
	_, controlled := xp.Controller(i.original)
	if h == nil || h.Owner == nil || controlled || i.ownerless != nil || i.settings.Hold == setting.HoldNone {
		return
	}
	owner := *h.Owner
	owner.Namespace = targetNamespace(owner.Namespace, i.restore)
	i.ownerless, i.abandoned = &owner, true
}
