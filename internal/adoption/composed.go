package adoption

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkComposed counts the composed resources that the XR controls. It waits for each that is
// missing or controlled by another owner. With observed it also waits until each is reconciled: a
// function that reads the status of an MR must find it again.
func (t *tree) checkComposed(observed bool) {
	listed, err := t.listed()
	for _, r := range t.hold.Refs {
		u := t.snapshot.Get(r)
		_, unknown := t.snapshot.isUnknown(r)
		switch {
		case u == nil && err == nil && !listed[r.ID()] && !unknown:
			// A user has removed it from the resourceRefs, or has deleted it after Crossplane
			// removed it there. The messages advise both.
			t.without = append(t.without, r.String())
			t.plan.Total--
		case u == nil:
			t.checkMissing(r)
		case u.GetDeletionTimestamp() != nil:
			t.waitFor(r, false, cmp.Or(t.snapshot.leftExternalOf(u), reason.BeingDeleted.Messagef("%s: it is being deleted. See what its finalizers wait for, then "+
				"restore it again", r)))
		default:
			if !t.planComposedManaged(r, u) {
				t.checkControlled(r, u, observed)
			}
		}
	}
	t.remark(t.madeAgain())
}

func (t *tree) checkMissing(r xp.Ref) {
	if t.awaitKnown(r) {
		return
	}
	gk := r.GroupVersionKind().GroupKind()
	unserved, inactive := t.snapshot.unserved[gk], ""
	if unserved {
		inactive = t.snapshot.inactiveFor(gk)
	}
	switch left := t.snapshot.leftBy(r); {
	case !left.IsZero():
		t.waitFor(r, false, left)
	case inactive != "":
		t.waitFor(r, false, reason.KindNotActive.Messagef("%s: its kind is not served, because its ManagedResourceDefinition %s is not active; %s. Then restore "+
			"again", r, inactive, xp.HowToActivate(inactive)))
	case unserved:
		t.waitFor(r, false, reason.KindNotServed.Messagef("%s: its kind is not served, so no restore can bring it yet. Install the provider or XRD of %s, "+
			"then restore again", r, gk))
	case xp.MayStayOut(gk):
		t.unrestored = append(t.unrestored, r)
		t.plan.Total--
	default:
		t.waitFor(r, false, reason.NotInCluster.Messagef("%s: it is not in the cluster. Restore it; or, if its external resource is gone too, remove it from the "+
			"resourceRefs of %s, and Crossplane composes another", r, xp.String(t.xr.Unstructured)))
	}
}

// madeAgain returns a remark on what Velero does not restore, which is not waited for; zero if
// nothing is missing. A backup without this plugin does not show whether a missing Pod or Job had
// completed. One that Velero failed to restore would start again too, so there is nothing to save.
func (t *tree) madeAgain() reason.Message {
	if len(t.unrestored) == 0 {
		return reason.Message{}
	}

	return reason.MadeAgain.Messagef("%s composes %s, which %s", xp.String(t.xr.Unstructured), xp.SomeOf(t.unrestored), xp.MadeAgain)
}

// awaitKnown waits for r and returns true, if r could not be read and so may exist.
func (t *tree) awaitKnown(r xp.Ref) bool {
	why, unknown := t.snapshot.isUnknown(r)
	if unknown {
		t.waitFor(r, false, reason.NotRead.Messagef("%s: it can't be read: %s. Check that the API server serves its kind, and that the user who runs this may "+
			"list and patch %s", r, why, r.GroupVersionKind().GroupKind()))
	}

	return unknown
}

func (t *tree) checkControlled(r xp.Ref, u *unstructured.Unstructured, observed bool) {
	c, ok := xp.Controller(u)
	switch {
	case ok && c.UID != t.xr.GetUID():
		t.waitFor(r, false, reason.ControlledByAnother.Messagef("%s: its controller is %s %s (UID %s), not this XR. Remove it from the resourceRefs of one of them",
			r, c.Kind, c.Name, c.UID))
	case !ok && !xp.IsPaused(t.xr.Unstructured):
		t.waitFor(r, true, reason.AwaitingControl.Messagef("%s: Crossplane has not made the XR its controller", r))
	case !ok && t.hold.OwnPause() && !t.isComposedHere(r, u):
		t.waitFor(r, false, reason.ControllerUnknown.Messagef("%s: it has no controller, and nothing shows that this XR composed it. If it did, remove "+
			"crossplane.io/paused from %s once it waits for nothing else", r, xp.String(t.xr.Unstructured)))
	case !ok && t.hold.OwnPause():
		// It came back before its XR, which the user wants to stay paused: Crossplane will not take
		// control of it.
		t.plan.Also = append(t.plan.Also, hold.TakeControl(t.xr.Unstructured, u))
		t.waitFor(r, true, reason.Relinking.Messagef("%s: it was restored without its paused XR, which becomes its controller again", r))
	case observed && !t.checkObserved(r, u):
	case ok:
		t.plan.Adopted++
	}
}

// isComposedHere reports whether the XR composed an object that has no controller: the XR lists it,
// it has the label which Crossplane gives to the XR's composed resources, and a restore created it.
// The refs in the mark alone are not enough to make the XR its owner.
func (t *tree) isComposedHere(r xp.Ref, u *unstructured.Unstructured) bool {
	listed, err := t.listed()

	return err == nil && listed[r.ID()] && xp.Composed(t.xr, u) && t.snapshot.restored[u.GetUID()]
}

// checkObserved reports whether a composed resource was reconciled since it was restored.
func (t *tree) checkObserved(r xp.Ref, u *unstructured.Unstructured) bool {
	if h, err := t.snapshot.holdOf(u); err == nil && h != nil && h.Clone != "" {
		t.plan.Failed = reason.Message{Text: fmt.Sprintf("%s stays held: %s: %s", xp.String(t.xr.Unstructured), r, h.Reason)}

		return false
	}
	switch {
	case xp.IsComposite(u):
		if !t.checkNested(r, u) {
			return false
		}
	case xp.IsManaged(u) && !xp.IsPaused(u) && t.backedUpConditions(r) == xp.UnknownConditions:
		return t.checkSynced(r, u)
	}

	return t.checkConditions(r, u)
}

func (t *tree) checkNested(r xp.Ref, u *unstructured.Unstructured) bool {
	switch h, err := t.snapshot.holdOf(u); {
	case hold.HoldsNothing(u, err), err == nil && h == nil:
		return true
	case err != nil:
		t.waitFor(r, false, whyUnusable(u, err).About(r.String()))
	case h.Quarantine:
		t.awaitQuarantineEnd(r, h)
	case h.ByHand:
		t.waitForUser(waitComposedXR, r, h)
	default:
		t.waitFor(r, true, reason.AwaitingComposedXR.Messagef("%s: this composed XR is not adopted yet", r))
	}

	return false
}

// checkRefs waits until the XR lists all resourceRefs of the backup that exist. It may list more: a
// Composition that had not finished composes the rest now.
func (t *tree) checkRefs() {
	listed, err := t.listed()
	if err != nil {
		t.wait(false, reason.Malformed.Messagef("%s", err))

		return
	}
	for _, r := range t.hold.Refs {
		if !listed[r.ID()] && t.snapshot.Has(r) {
			t.waitFor(r, false, reason.NoLongerListed.Messagef("%s: the XR does not list it any more. Put it back into its resourceRefs, or delete it with "+
				"deletionPolicy Orphan", r))
		}
	}
}

// listed returns the IDs of the XR's current resourceRefs.
func (t *tree) listed() (map[xp.ID]bool, error) {
	refs, err := t.xr.ResourceRefs()

	return xp.IDs(refs), err
}
