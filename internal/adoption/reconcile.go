package adoption

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

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
	t.plan.Pending = append(t.plan.Pending, t.snapshot.pendingReconcile(u, t.lastSeen(u), why))
}

func (s *Snapshot) pendingReconcile(u *unstructured.Unstructured, since time.Time, waiting reason.Message) PendingReconcile {
	h, err := s.holdOf(u)

	return PendingReconcile{
		Ref: xp.RefTo(u), UID: u.GetUID(), Provider: xp.IsManaged(u), Since: since, Begun: err == nil && h != nil && h.Unpaused != "", Waiting: waiting,
	}
}

// lastSeen returns the latest time of Snapshot.lastSeen, or the unpausing of the XR.
func (t *tree) lastSeen(u *unstructured.Unstructured) time.Time {
	if t.hold != nil {
		return t.snapshot.lastSeen(u, parseTime(t.hold.Unpaused))
	}

	return t.snapshot.lastSeen(u)
}

// lastSeen returns the latest of: the creation of u, its hold, the last transition of its Synced
// condition, and the given times. It ignores times in the future.
func (s *Snapshot) lastSeen(u *unstructured.Unstructured, times ...time.Time) time.Time {
	last := u.GetCreationTimestamp().Time
	if h, err := s.holdOf(u); err == nil && h != nil {
		times = append(times, parseTime(h.Since))
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

func parseTime(stamp string) time.Time {
	parsed, _ := time.Parse(time.RFC3339, stamp)

	return parsed
}

// reconciled returns the Synced condition of u, and whether it proves that Crossplane (or the
// provider) reconciled u as it is now; the status says with which result. v2 writes the generation.
// Lifting a hold makes a new generation, unless the user's own settings equal the hold's: then the
// former proof is still valid. v1 writes none, so there a condition from the time of the hold is
// the only proof. After a reconcile a stale cache can make Crossplane report once more that the
// object is paused.
func reconciled(u *unstructured.Unstructured) (xp.Condition, bool) {
	c, ok := xp.ConditionOf(u, xp.ConditionSynced)

	return c, ok && c.Reason != xp.ReasonReconcilePaused && isCurrent(u, c)
}

// isCurrent reports whether a condition is about the current generation. A condition that was
// restored with the status is about the backup.
func isCurrent(u *unstructured.Unstructured, c xp.Condition) bool {
	return c.Generation == 0 || c.Generation == u.GetGeneration()
}

// checkSeen waits until Crossplane has reported of a paused object that it is paused. This makes
// its next report a proof: the status is not restored, or is from the backup.
func (t *tree) checkSeen(u *unstructured.Unstructured) {
	if !IsSeenPaused(u) {
		t.awaitReconcile(u, reason.AwaitingPauseReport.Messagef("%s: Crossplane has not reported yet that it is paused", xp.String(u)))
	}
}

// checkReconciled waits until Crossplane has reconciled an object after checkSeen.
func (t *tree) checkReconciled(u *unstructured.Unstructured) {
	switch c, ok := reconciled(u); {
	case !ok:
		t.awaitReconcile(u, reason.AwaitingCrossplane.Messagef("%s: Crossplane has not reconciled it yet", xp.String(u)))
	case c.Status != "True" && t.failsAsBackedUp(u):
		t.plan.Remarks = append(t.plan.Remarks, reason.StillFailing.Messagef("%s: Crossplane can't reconcile it, as in the backup: %s", xp.String(u), c.Message))
	case c.Status != "True":
		t.wait(true, reason.CrossplaneFailing.Messagef("%s: Crossplane can't reconcile it: %s", xp.String(u), c.Message))
	}
}

// failsAsBackedUp reports whether an XR fails to reconcile for the same reason as in the backup.
// Then the only proof left is that it controls all its composed resources.
func (t *tree) failsAsBackedUp(u *unstructured.Unstructured) bool {
	return t.hold != nil && t.hold.Failing != "" && xp.RefTo(u).ID() == xp.RefTo(t.xr.Unstructured).ID() && t.hold.Failing == FailingOf(u)
}

// FailingOf returns the reason why Crossplane can't reconcile u, with a hash of the message without
// its variable parts, so that the same failure is equal; "" if it can or has not reported.
func FailingOf(u *unstructured.Unstructured) string {
	c, ok := xp.ConditionOf(u, xp.ConditionSynced)
	if !ok || c.Status == "True" || c.Reason == xp.ReasonReconcilePaused {
		return ""
	}
	sum := sha256.Sum256([]byte(volatileText.ReplaceAllString(c.Message, "#")))

	return c.Reason + " " + hex.EncodeToString(sum[:8])
}

// volatileText matches UIDs, hashes, versions, ports and times in a message.
var volatileText = regexp.MustCompile(`[0-9a-fA-F-]*\d[0-9a-fA-F-]*`)

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
		t.plan.Remarks = append(t.plan.Remarks, reason.FailsAfterRelease.Messagef("%s: it is adopted, and Crossplane can't reconcile it with its own settings: %s",
			xp.String(u), c.Message))
	}
	t.clearRequest(u)
}
