package adoption

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A PendingReconcile is an object that waits for a reconcile by Crossplane or its provider. With
// realtime compositions there is no polling, so after a lost event no reconcile may follow.
type PendingReconcile struct {
	xp.Ref

	UID types.UID
	// Provider means that its provider reconciles it, and not Crossplane.
	Provider bool
	// Since is when the wait began, or earlier.
	Since time.Time
	// Begun means that it is held, and was unpaused for the adoption.
	Begun bool
	// Waiting is the message about it in Plan.Waiting.
	Waiting reason.Message
}

// awaitReconcile waits until Crossplane reports on an object.
func (t *tree) awaitReconcile(u *unstructured.Unstructured, why reason.Message) {
	if xp.IsManaged(u) {
		t.waitFor(xp.RefTo(u), true, why)
	} else {
		t.wait(true, why) // Crossplane reports on the XR itself, which is watched anyway.
	}
	since := t.snapshot.lastSeen(u)
	if t.hold != nil {
		since = t.snapshot.lastSeen(u, xp.ParseTime(t.hold.Unpaused))
	}
	h, _ := t.snapshot.holdOf(u)
	t.plan.Pending = append(t.plan.Pending, PendingReconcile{
		Ref: xp.RefTo(u), UID: u.GetUID(), Provider: xp.IsManaged(u), Since: since, Begun: h != nil && h.Unpaused != "", Waiting: why,
	})
}

// lastSeen returns the latest of: the creation of u, its hold, the last transition of its Synced
// condition, and the given times. It ignores times in the future.
func (s *Snapshot) lastSeen(u *unstructured.Unstructured, times ...time.Time) time.Time {
	last := u.GetCreationTimestamp().Time
	if h, err := s.holdOf(u); err == nil && h != nil {
		times = append(times, xp.ParseTime(h.Since))
	}
	if c, ok := xp.ConditionOf(u, xp.ConditionSynced); ok {
		times = append(times, c.Since)
	}
	for _, other := range times {
		// A user who can write the object can write a time in the future.
		if other.After(last) && !other.After(s.now) {
			last = other
		}
	}

	return last
}

// reconciled returns the Synced condition of u, and whether it proves that Crossplane (or the
// provider) reconciled u as it is now; the status says with which result. v2 writes the generation.
// Lifting a hold makes a new generation, unless the user's own settings equal the hold's: then the
// former proof is still valid. v1 writes none, so there a condition from the time of the hold is
// the only proof. After a reconcile a stale cache can make Crossplane report once more that the
// object is paused.
func reconciled(u *unstructured.Unstructured) (xp.Condition, bool) {
	c, ok := xp.ConditionOf(u, xp.ConditionSynced)

	return c, ok && c.Reason != xp.ReasonReconcilePaused && xp.IsCurrent(u, c)
}

// checkSeen waits until Crossplane has reported of a paused object that it is paused. This makes
// its next report a proof: the status is not restored, or is from the backup.
func (t *tree) checkSeen(u *unstructured.Unstructured) {
	if !hold.IsSeenPaused(u) {
		t.awaitReconcile(u, reason.AwaitingPauseReport.Messagef("%s: Crossplane has not reported yet that it is paused", xp.String(u)))
	}
}

// checkReconciled waits until Crossplane has reconciled an object after checkSeen.
func (t *tree) checkReconciled(u *unstructured.Unstructured) {
	switch c, ok := reconciled(u); {
	case !ok:
		t.awaitReconcile(u, reason.AwaitingCrossplane.Messagef("%s: Crossplane has not reconciled it yet", xp.String(u)))
	case c.Status != "True" && t.failsAsBackedUp(u):
		t.remark(reason.StillFailing.Messagef("%s: Crossplane can't reconcile it, as in the backup: %s", xp.String(u), c.Message))
	case c.Status != "True":
		t.wait(true, reason.CrossplaneFailing.Messagef("%s: Crossplane can't reconcile it: %s", xp.String(u), c.Message))
	}
}

// failsAsBackedUp reports whether an XR fails to reconcile for the same reason as in the backup.
// Then the only proof left is that it controls all its composed resources.
func (t *tree) failsAsBackedUp(u *unstructured.Unstructured) bool {
	return t.hold != nil && t.hold.Failing != "" && xp.RefTo(u).ID() == xp.RefTo(t.xr.Unstructured).ID() && t.hold.Failing == hold.FailingOf(u)
}

// checkReleased waits until Crossplane has reconciled a restored object with its user's own
// settings. A failure is only a remark, as it would happen without a restore: from here on a
// Composition may have changed.
func (t *tree) checkReleased(u *unstructured.Unstructured) {
	if !t.snapshot.restored[u.GetUID()] || xp.IsPaused(u) || u.GetDeletionTimestamp() != nil {
		return
	}
	switch c, ok := reconciled(u); {
	case !ok:
		t.awaitReconcile(u, reason.AwaitingCrossplane.Messagef("%s: it is adopted, and Crossplane has not reconciled it with its own settings yet", xp.String(u)))
	case c.Status != "True":
		t.remark(reason.FailsAfterRelease.Messagef("%s: it is adopted, and Crossplane can't reconcile it with its own settings: %s", xp.String(u), c.Message))
	}
	t.clearRequest(u)
}

// clearRequest plans to remove a leftover request, if nothing else is to be done or waited for.
func (t *tree) clearRequest(u *unstructured.Unstructured) {
	if p, ok := hold.ClearReconcileRequest(u); ok && len(t.plan.Waiting) == 0 && t.plan.Patch == nil {
		t.change(u, p, "take back the request for a reconcile")
	}
}

// inactiveAfter is how long the provider of an MR may be silent before a request is spent to find
// out whether the MR's kind is active.
const inactiveAfter = 30 * time.Second

// Definitions sets the function that returns the name of the ManagedResourceDefinition of a kind that
// is not active; "" if it is active, or not known. It must return the same each time, and is called
// only if an MR of the kind waits.
func (s *Snapshot) Definitions(inactive func(schema.GroupKind) string) { s.inactive = inactive }

// inactiveFor returns the name of the ManagedResourceDefinition of an inactive kind; else "".
func (s *Snapshot) inactiveFor(gk schema.GroupKind) string {
	if s.inactive == nil || !xp.IsCustomGroup(gk.Group) || xp.IsCrossplaneGroup(gk.Group) {
		return ""
	}

	return s.inactive(gk)
}

// whyNotReconciled returns why the provider of an MR does not reconcile it, if the reason is that
// the MR's kind is not active; else zero. From Crossplane v2.4 on a provider does not run if none
// of its kinds is active. Before that it runs and ignores this kind.
func (s *Snapshot) whyNotReconciled(u *unstructured.Unstructured) reason.Message {
	if !xp.IsManaged(u) || s.now.Sub(s.lastSeen(u)) < inactiveAfter {
		return reason.Message{}
	}
	name := s.inactiveFor(u.GroupVersionKind().GroupKind())
	if name == "" {
		return reason.Message{}
	}

	return reason.KindNotActive.Messagef("its provider does not reconcile it, because its ManagedResourceDefinition %s is not active; "+
		"%s", name, xp.HowToActivate(name))
}

// WhyNotAdopted returns why a claim or an XR is not adopted, as far as the object itself shows it,
// and the next step; both are zero if it is adopted. A restored object never looks adopted before
// it is held: it is created with its hold.
func WhyNotAdopted(u *unstructured.Unstructured) (why reason.Message, next string) {
	h, err := hold.Of(u)
	switch {
	case err != nil:
		return reason.Message{Code: cmp.Or(reason.CodeOf(err), reason.MarkUnreadable), Text: err.Error()}, "correct or remove that annotation"
	case h != nil && h.Quarantine:
		return reason.Quarantined.Messagef("in quarantine since %s, by %s", h.Since, h.By()), hold.HowToRelease(u, h)
	case h != nil:
		why, next = reason.Message{Text: fmt.Sprintf("held by %s since %s: %s", h.By(), h.Since, hold.Why(u, h))},
			"see what it waits for: "+xp.ValidateCommand(xp.RefTo(u)).String()
		if h.ByHand {
			next = hold.ManualNext(h)
		}

		return why, next
	case u.GetDeletionTimestamp() != nil:
		return reason.BeingDeleted.Messagef("it is being deleted"), "see what its finalizers wait for, and restore it again"
	case xp.IsPaused(u):
		return reason.Message{}, "" // A user has paused it. Crossplane does not reconcile it until they unpause it.
	}
	switch c, ok := reconciled(u); {
	case !ok:
		return reason.AwaitingCrossplane.Messagef("Crossplane has not reconciled it yet"), "check that Crossplane runs, and that its XRD is " +
			"Established: " + xp.ValidateCommand(xp.RefTo(u)).String()
	case c.Status != "True":
		return reason.CrossplaneFailing.Messagef("Crossplane can't reconcile it: %s", c.Message), "correct that; see also its Events: kubectl describe"
	default:
		return reason.Message{}, ""
	}
}
