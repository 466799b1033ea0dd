package restoreitem

import (
	"context"
	"fmt"

	"github.com/sirupsen/logrus"
	"github.com/vmware-tanzu/velero/pkg/label"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// relink writes the item's owner references with the owners' current UIDs, unless Velero does. An
// owner that is not live, or does not list the item, is dropped, never written with its old UID:
// the garbage collector deletes an object whose owners are all absent (kubernetes
// pkg/controller/garbagecollector), and an MR's finalizer then deletes the external resource.
// refused means that the item must not come back, because Crossplane reconciles its XR without it.
func (a *Adopt) relink(i *item) (refused bool, err error) {
	if c, ok := xp.Controller(i.original); ok && xp.IsConnectionSecret(i.original) && a.hasRefused(c, i.namespace) {
		i.warn(nil, "Not restored: "+c.Kind+" "+c.Name+", which published it, is not restored either")

		return true, nil
	}
	left := a.velero.writesOwners(a.log)
	uids := map[types.UID]types.UID{}
	for _, ref := range i.original.GetOwnerReferences() {
		owner, why, err := a.liveOwner(ref, i)
		if err != nil {
			return false, fmt.Errorf("cannot find the owner %s %q of %s: %w", ref.Kind, ref.Name, xp.String(i.original), err)
		}
		if why == "" {
			uids[ref.UID] = owner.GetUID()
			ref.UID = owner.GetUID()
			if err := a.addOwner(i, owner, ref, left); err != nil {
				return false, err
			}

			continue
		}
		fields := logrus.Fields{"owner": ref.Kind + " " + ref.Name, "reason": why}
		refuses, err := a.refusesWithout(fields, owner, ref, i)
		if err != nil {
			return false, err
		}
		switch {
		case refuses:
			a.refused.Store(i.self().ID(), true)

			return true, nil
		case left:
			i.log.WithFields(fields).Info("Velero may give it an owner that it would not have been given here")
		case owner == nil && a.restoresBeforeOwner(i):
			i.log.WithFields(fields).Info("Restored before its owner, which takes it over")
		default:
			fields["next"] = ownerlessText(i.original)
			i.warn(fields, "Restored without an owner that it had")
		}
	}
	if !left {
		i.SetOwnerReferences(i.owners)
	}
	xp.RenameOwners(i.Unstructured, uids)

	return false, nil
}

// addOwner adds an owner, unless the item must come back without it. left means that Velero writes
// owner references.
func (a *Adopt) addOwner(i *item, owner *unstructured.Unstructured, ref metav1.OwnerReference, left bool) error {
	without, err := a.restoresWithoutController(owner, ref, i)
	switch {
	case err != nil:
		return err
	case without && !left:
		i.ownerless = new(xp.RefTo(owner))
	default:
		i.owners = append(i.owners, ref)
	}

	return nil
}

// restoresWithoutController reports whether an MR comes back without its controller: an XR that
// lists it and that Crossplane reconciles. Crossplane deletes an unwanted resource before it
// removes it from the list, so the list proves nothing. It makes the XR the controller of each
// resource that it still wants.
func (a *Adopt) restoresWithoutController(owner *unstructured.Unstructured, ref metav1.OwnerReference, i *item) (bool, error) {
	if !i.isManaged() || xp.IsPaused(owner) || i.settings.Hold == setting.HoldNone {
		return false, nil
	}

	return a.isReconciledWithout(owner, ref, i)
}

// restoresBeforeOwner reports whether an item comes back before its owner: in a restore by labels,
// as a revision, or as a connection secret that is a claim's or from a namespace that is not
// included.
func (a *Adopt) restoresBeforeOwner(i *item) bool {
	if isSelective(i.restore) || xp.IsRevision(i.original) {
		return true
	}
	if a.requested == nil {
		return false
	}
	_, reached, _ := a.requested.publisherOf(i.original)

	return reached || a.requested.isBeforeClaim(i.original)
}

// refusesWithout reports whether the item must not come back because of an owner that it can't
// have, and warns why.
func (a *Adopt) refusesWithout(fields logrus.Fields, owner *unstructured.Unstructured, ref metav1.OwnerReference, i *item) (bool, error) {
	without, err := a.isReconciledWithout(owner, ref, i)
	if err != nil {
		return false, err
	}
	switch {
	case !i.copied && isLeftover(owner, ref, i):
		fields[fieldCommand] = xp.ClearUsage(i.original)
		i.warn(fields, "Not restored: its XR does not list it, so it was left behind when that stopped "+
			"composing it, and would protect "+xp.Protected(i.original)+" for ever. Where it still exists, clear it with the command, "+
			"if what it protects is not in use any more")
	case !i.copied && without && i.isOfThisRestore(owner):
		a.refused.Store(i.self().ID(), true)

		// A restore releases nothing before it has restored all, so another writer is at work.
		return false, fmt.Errorf("cannot restore %s: its XR %s was created since this restore began and is not held, and Crossplane has composed it without this; "+
			"find out who has made it, or taken its hold off (kubectl get --show-managed-fields), have them stop, and see docs/gitops.md, \"The hold was taken off\"",
			xp.String(i.original), xp.String(owner))
	case !i.copied && without:
		i.warnReplaced(fields, owner)
	case owner == nil && isController(ref) && xp.IsComposed(i.original) && a.hasRefused(ref, i.namespace):
		i.warn(fields, "Not restored: "+ref.Kind+" "+ref.Name+", which composed it, is not restored either. If it is still wanted, restore that first; "+
			"its external resource is left as it is")
	default:
		return false, nil
	}

	return true, nil
}

// warnReplaced warns that the item is not restored, because Crossplane reconciles its XR without
// it. An XR of the backup has dropped it from its list; a newer XR has composed other resources.
func (i *item) warnReplaced(fields logrus.Fields, xr *unstructured.Unstructured) {
	const todo = "If it is still wanted, pause the XR, put it into the XR's resourceRefs, and restore again; its external resource is left as it is"
	if i.isOlderThan(xr) {
		of := xp.RefTo(xr)
		if claim, ok := xp.CompositeFrom(xr).ClaimRef(); ok {
			of = claim
		}
		i.fail(fields, "Not restored: its XR was made anew in this cluster, and not by a restore; what that has composed is in its place. To have this "+
			"instead, with the file of the backup (velero backup download), run this and restore again; it lists what that deletes, and asks: "+
			xp.ExchangeCommand(of).String())
	} else {
		i.warn(fields, "Not restored: its XR exists and does not list it any more, so nothing would look after it. "+todo)
	}
}

// isOlderThan reports whether u was created after the item, and not by a restore. An XR is older
// than what it composes.
func (i *item) isOlderThan(u *unstructured.Unstructured) bool {
	made := i.original.GetCreationTimestamp()

	return xp.Label(u, xp.LabelRestore) == "" && !made.IsZero() && made.Time.Before(u.GetCreationTimestamp().Time)
}

// isOfThisRestore reports whether this restore created u. A writer that replaces an object removes
// the label, so without one the time decides.
func (i *item) isOfThisRestore(u *unstructured.Unstructured) bool {
	name, began := xp.Label(u, xp.LabelRestore), i.restore.Status.StartTimestamp
	if name == "" && began != nil {
		return !u.GetCreationTimestamp().Time.Before(began.Time)
	}

	return name == label.GetValidName(i.restore.Name)
}

func isController(ref metav1.OwnerReference) bool { return ref.Controller != nil && *ref.Controller }

// hasRefused reports whether the restore refused the object that an owner reference in the
// namespace means.
func (a *Adopt) hasRefused(ref metav1.OwnerReference, namespace string) bool {
	r := xp.Ref{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: namespace, Name: ref.Name}
	_, local := a.refused.Load(r.ID())
	r.Namespace = ""
	_, wide := a.refused.Load(r.ID())

	return local || wide
}

// isReconciledWithout reports whether the owner is an XR that composed the item, and that
// Crossplane reconciles without it. A held XR is as old as the item, so it does not count.
func (a *Adopt) isReconciledWithout(owner *unstructured.Unstructured, ref metav1.OwnerReference, i *item) (bool, error) {
	if owner == nil || owner.GetDeletionTimestamp() != nil || !isController(ref) || !xp.IsComposed(i.original) || !xp.IsComposite(owner) {
		return false, nil
	}
	h, err := a.liveHold(i, owner)
	// A mark that can't be verified, as after the loss of its key, may still be a hold. A paused XR
	// is not reconciled.
	held := h != nil || xp.HasAnnotation(owner, adoption.AnnotationHold) && xp.IsPaused(owner)

	return !held, err
}

// ownerlessText returns what happens to an item that is restored without its owner, and the next
// step.
func ownerlessText(item *unstructured.Unstructured) string {
	if xp.IsUsage(item) {
		return "it goes on protecting " + xp.Protected(item) + "; if nothing else is to come that would own it, and that is not in use any more, clear it with: " +
			xp.ClearUsage(item)
	}
	if xp.IsConnectionSecret(item) {
		return "if what published it exists and can't publish again, delete this Secret"
	}

	return "if its XR lists it, Crossplane takes it over; if not, nothing looks after it: delete it, with its external resource kept if that is still in use"
}

// liveOwner returns the owner that ref means, nil if there is none, and why the item can't have it,
// "" if it can.
func (a *Adopt) liveOwner(ref metav1.OwnerReference, i *item) (*unstructured.Unstructured, string, error) {
	owner, err := a.cluster.Owner(context.Background(), ref, i.namespace)
	switch {
	case isAbsent(err):
		return nil, "it is not in the cluster", nil
	case err != nil && xp.IsConnectionSecret(i.original):
		// The Secret's data may be nowhere else. Its publisher waits for it, and becomes its
		// controller again when it can be read.
		return nil, "it can't be read: " + err.Error(), nil
	case err != nil:
		return nil, "", err
	}
	a.requested.addLive(owner)
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

	if isTakeable(ref, i) {
		if owner, err = a.takeOver(i, owner); err != nil {
			return nil, "", err
		}
	}

	return owner, xp.VerifyOwner(owner, i.original, i.namespace), nil
}
