package adoption

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// ReasonOwnerless is why an MR is held that an XR lists which is at work. Crossplane may be about
// to take it off that list: it deletes what a Composition does not want any more before it replaces
// the resourceRefs.
const ReasonOwnerless = "restored from a backup, without its XR as its controller; its provider is kept from creating anything until Crossplane has made " +
	"the XR that again, which shows that it is still wanted. " + lifted

// causeOwnerless is the cause of what its XR does not have yet.
const causeOwnerless = "its XR is not its controller"

// ownerlessStep plans for an MR whose XR was at work when it came back; nothing is to be said if
// Crossplane has made the XR its controller.
func (s *Snapshot) ownerlessStep(u *unstructured.Unstructured, h *Hold) managedStep {
	if h.Owner == nil || !xp.IsPaused(u) {
		return managedStep{}
	}
	if c, ok := xp.Controller(u); ok && c.Kind == h.Owner.Kind && c.Name == h.Owner.Name {
		return managedStep{}
	}
	if why, unknown := s.isUnknown(*h.Owner); unknown {
		return managedStep{why: fmt.Sprintf("whether %s still composes it can't be read: %s", h.Owner, why), cause: causeOwnerless}
	}
	xr := s.Get(*h.Owner)
	if xr == nil || xr.GetDeletionTimestamp() != nil {
		return managedStep{why: fmt.Sprintf("%s, which composed it, has gone since; %s", h.Owner, unwantedNext), cause: causeOwnerless, failed: true}
	}
	refs, err := xp.CompositeFrom(xr).ResourceRefs()
	if err != nil || !slices.ContainsFunc(refs, func(r xp.Ref) bool { return r.ID() == xp.RefTo(u).ID() }) {
		return managedStep{
			why: fmt.Sprintf("%s does not list it any more: Crossplane deleted it, as its Composition or a person wants, when it came back; %s", h.Owner,
				unwantedNext),
			cause: causeOwnerless, failed: true,
		}
	}

	return managedStep{
		why:   fmt.Sprintf("%s lists it, and Crossplane has not made that its controller again; is Crossplane running, and can it reconcile the XR?", h.Owner),
		cause: causeOwnerless, moving: true,
	}
}

// riskOfOwnerless says what can come of it that an MR is let go without its XR as its controller;
// "" if it is that.
func (s *Snapshot) riskOfOwnerless(u *unstructured.Unstructured, h *Hold) string {
	switch e := s.ownerlessStep(u, h); {
	case e.why == "":
		return ""
	case e.failed:
		return fmt.Sprintf("%s does not compose it any more: if its external resource was deleted with that, its provider makes another, and nobody "+
			"deletes that with an XR", h.Owner)
	default:
		return fmt.Sprintf("%s is not its controller: it may compose another in its place, with another external resource, and nobody deletes this one with it",
			h.Owner)
	}
}

// takeOwnerless makes a held XR the controller of an MR that came back without it when it was at
// work, and reports whether it does: as long as it is paused Crossplane deletes nothing.
func (t *tree) takeOwnerless(r xp.Ref, u *unstructured.Unstructured, h *Hold) bool {
	_, controlled := xp.Controller(u)
	if controlled || h.Owner == nil || h.Owner.ID() != xp.RefTo(t.xr.Unstructured).ID() || !xp.IsPaused(t.xr.Unstructured) || !t.isComposedHere(r, u) {
		return false
	}
	t.plan.Also = append(t.plan.Also, takeControl(t.xr.Unstructured, u))
	t.wait(true, "%s: it came back without its XR, which is held since, and is being made its own again", r)

	return true
}

// unwantedNext says what to do about an MR that nothing looks after.
const unwantedNext = "its external resource was probably deleted with it, and nothing makes that anew while it is held. Delete it, after setting its " +
	"deletionPolicy to Orphan, or its managementPolicies to all but Delete, if the external resource is there and is to stay; or put it back into " +
	"the resourceRefs of its XR"
