package adoption

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// otherXRPatience is how long after the first poll another XR can become the controller of what has
// lost its own. Crossplane moves a composed resource so, when the XR that it reconciles lists one
// without a controller (crossplane composition_functions.go, ExistingComposedResourceObserver).
const otherXRPatience = 30 * time.Second

// ownerlessStep returns the step of an MR or a nested XR whose hold has an Owner; the zero value if
// it has a controller.
func (s *Snapshot) ownerlessStep(u *unstructured.Unstructured, h *hold.Hold) managedStep {
	if _, controlled := xp.Controller(u); controlled || h.Owner == nil || !xp.IsPaused(u) {
		return managedStep{}
	}
	if why, unknown := s.isUnknown(*h.Owner); unknown {
		return managedStep{why: reason.NotRead.Messagef("%s, which composed it, can't be read: %s", h.Owner, why)}
	}
	if s.lists(*h.Owner, u) {
		return managedStep{
			why: reason.AwaitingControl.Messagef("%s lists it, and Crossplane has not made that its controller. Check that Crossplane runs and can reconcile the "+
				"XR", h.Owner),
			moving: true,
		}
	}
	e := managedStep{why: s.whyAbandoned(u, h)}
	switch {
	case h.Polled == "":
		after := *h
		after.Polled = s.now.UTC().Format(time.RFC3339)
		e.Change = s.rewriteMark(u, &after, "note when it began to wait for an XR")
	case s.now.Sub(xp.ParseTime(h.Polled)) >= otherXRPatience:
		e.failed = true
	}

	return e
}

// lists reports whether the XR that r names lists u, and is not being deleted.
func (s *Snapshot) lists(r xp.Ref, u *unstructured.Unstructured) bool {
	xr := s.Get(r)
	if xr == nil || xr.GetDeletionTimestamp() != nil {
		return false
	}
	refs, err := xp.CompositeFrom(xr).ResourceRefs()

	return err == nil && slices.ContainsFunc(refs, func(r xp.Ref) bool { return r.ID() == xp.RefTo(u).ID() })
}

func (s *Snapshot) whyAbandoned(u *unstructured.Unstructured, h *hold.Hold) reason.Message {
	switch xr := s.Get(*h.Owner); {
	case xr == nil:
		return reason.XRNotRestored.Messagef("%s, which composed it, is not in the cluster, and no other XR controls it. %s", h.Owner, hold.HowToOwn(xp.RefTo(u)))
	case xr.GetDeletionTimestamp() != nil:
		return reason.XRNotRestored.Messagef("%s, which composed it, is being deleted, and no other XR controls it. %s", h.Owner, hold.HowToOwn(xp.RefTo(u)))
	default:
		return reason.NoLongerComposed.Messagef("%s does not list it any more, so Crossplane deleted it before the restore; %s", h.Owner, unwantedNext)
	}
}

// checkOwner waits until a nested XR that came back without its XR has a controller again.
func (t *tree) checkOwner(u *unstructured.Unstructured) {
	switch e := t.snapshot.ownerlessStep(u, t.hold); {
	case e.why.IsZero():
	case e.failed:
		t.plan.Failed = staysHeld(u, e.why)
	default:
		t.wait(e.moving, e.why.About(xp.String(u)))
		t.plan.Change = e.Change
	}
}

// riskOfOwnerless returns the risk of releasing an MR that its XR does not control; the zero
// Message if it does.
func (s *Snapshot) riskOfOwnerless(u *unstructured.Unstructured, h *hold.Hold) reason.Message {
	switch e := s.ownerlessStep(u, h); {
	case e.why.IsZero():
		return reason.Message{}
	case e.why.Code == reason.XRNotRestored:
		return reason.Orphaned.Messagef("%s is not in the cluster: no XR updates or deletes it, and an XR that is created again composes another, with another "+
			"external resource", h.Owner)
	case e.why.Code == reason.NoLongerComposed:
		return reason.Orphaned.Messagef("%s does not compose it any more: if its external resource was deleted too, its provider creates another, and no XR deletes "+
			"that", h.Owner)
	default:
		return reason.Uncontrolled.Messagef("%s is not its controller: the XR can compose another in its place, with another external resource, and does not delete "+
			"this one", h.Owner)
	}
}

// takeOwnerless plans to make a held XR the controller of what was restored without it, and reports
// whether it does. While the XR is paused Crossplane deletes nothing. An XR that is listed by none
// but this one can be another than the Owner: in the backup it had moved up from a nested XR.
func (t *tree) takeOwnerless(r xp.Ref, u *unstructured.Unstructured, h *hold.Hold) bool {
	_, controlled := xp.Controller(u)
	if controlled || h.Owner == nil || !xp.IsPaused(t.xr.Unstructured) || !t.isComposedHere(r, u) {
		return false
	}
	if h.Owner.ID() != xp.RefTo(t.xr.Unstructured).ID() && t.snapshot.lists(*h.Owner, u) {
		return false
	}
	t.plan.Also = append(t.plan.Also, hold.TakeControl(t.xr.Unstructured, u))
	t.waitFor(r, true, reason.Relinking.Messagef("%s: it was restored without its XR, which becomes its controller again", r))

	return true
}

const unwantedNext = "its external resource was probably deleted with it, and nothing creates another while it is held. Delete it (if the external " +
	"resource is to stay, first set its deletionPolicy to Orphan, or its managementPolicies to all but Delete), or put it back into the resourceRefs of its XR"
