package adoption

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// ReasonOwnerless is the reason of the hold of an MR that a live, unpaused XR lists. Crossplane may
// be about to drop it: it deletes what a Composition no longer wants before it writes the
// resourceRefs.
const ReasonOwnerless = "restored from a backup without its XR as its controller; its provider creates nothing until Crossplane makes the XR its controller, " +
	"which shows that the XR still composes it [" + string(reason.AwaitingControl) + "]"

// ownerlessStep returns the step of an MR whose hold has an Owner; the zero value if Crossplane has
// made that its controller.
func (s *Snapshot) ownerlessStep(u *unstructured.Unstructured, h *Hold) managedStep {
	if h.Owner == nil || !xp.IsPaused(u) {
		return managedStep{}
	}
	if c, ok := xp.Controller(u); ok && c.Kind == h.Owner.Kind && c.Name == h.Owner.Name {
		return managedStep{}
	}
	if why, unknown := s.isUnknown(*h.Owner); unknown {
		return managedStep{why: reason.NotRead.Messagef("%s, which composed it, can't be read: %s", h.Owner, why)}
	}
	xr := s.Get(*h.Owner)
	if xr == nil || xr.GetDeletionTimestamp() != nil {
		return managedStep{why: reason.NoLongerComposed.Messagef("%s, which composed it, is gone; %s", h.Owner, unwantedNext), failed: true}
	}
	refs, err := xp.CompositeFrom(xr).ResourceRefs()
	if err != nil || !slices.ContainsFunc(refs, func(r xp.Ref) bool { return r.ID() == xp.RefTo(u).ID() }) {
		return managedStep{why: reason.NoLongerComposed.Messagef("%s does not list it any more, so Crossplane deleted it before the restore; "+
			"%s", h.Owner, unwantedNext), failed: true}
	}

	return managedStep{
		why: reason.AwaitingControl.Messagef("%s lists it, and Crossplane has not made that its controller. Check that Crossplane runs and can reconcile the "+
			"XR", h.Owner),
		moving: true,
	}
}

// riskOfOwnerless returns the risk of releasing an MR that its XR does not control; the zero
// Message if it does.
func (s *Snapshot) riskOfOwnerless(u *unstructured.Unstructured, h *Hold) reason.Message {
	switch e := s.ownerlessStep(u, h); {
	case e.why.IsZero():
		return reason.Message{}
	case e.failed:
		return reason.Orphaned.Messagef("%s does not compose it any more: if its external resource was deleted too, its provider creates another, and no XR deletes "+
			"that", h.Owner)
	default:
		return reason.Uncontrolled.Messagef("%s is not its controller: the XR can compose another in its place, with another external resource, and does not delete "+
			"this one", h.Owner)
	}
}

// takeOwnerless plans to make a held XR the controller of an MR that was restored without it, and
// reports whether it does. While the XR is paused Crossplane deletes nothing.
func (t *tree) takeOwnerless(r xp.Ref, u *unstructured.Unstructured, h *Hold) bool {
	_, controlled := xp.Controller(u)
	if controlled || h.Owner == nil || h.Owner.ID() != xp.RefTo(t.xr.Unstructured).ID() || !xp.IsPaused(t.xr.Unstructured) || !t.isComposedHere(r, u) {
		return false
	}
	t.plan.Also = append(t.plan.Also, takeControl(t.xr.Unstructured, u))
	t.waitFor(r, true, reason.Relinking.Messagef("%s: it was restored without its XR, which becomes its controller again", r))

	return true
}

const unwantedNext = "its external resource was probably deleted with it, and nothing creates another while it is held. Delete it (if the external " +
	"resource is to stay, first set its deletionPolicy to Orphan, or its managementPolicies to all but Delete), or put it back into the resourceRefs of its XR"
