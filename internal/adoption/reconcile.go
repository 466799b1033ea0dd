package adoption

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A PendingReconcile is of an object that waits for a word of Crossplane's, or of its provider's.
// With realtime compositions there is no polling, so one event that is lost is a word that never
// comes.
type PendingReconcile struct {
	xp.Ref

	UID types.UID
	// Provider says that the word is that of its provider.
	Provider bool
	// Since is when the wait began, or earlier.
	Since time.Time
	// Begun says that it is held, and Crossplane was let reconcile it.
	Begun bool
	// Waiting is what the Plan says that it waits for.
	Waiting string
}

// awaitReconcile waits for Crossplane to say something about an object.
func (t *tree) awaitReconcile(u *unstructured.Unstructured, format string, args ...any) {
	t.wait(true, format, args...)
	t.plan.Pending = append(t.plan.Pending, t.snapshot.pendingReconcile(u, t.lastSeen(u), fmt.Sprintf(format, args...)))
}

// pendingReconcile is that of an object since a time.
func (s *Snapshot) pendingReconcile(u *unstructured.Unstructured, since time.Time, waiting string) PendingReconcile {
	h, err := s.holdOf(u)

	return PendingReconcile{
		Ref: xp.RefTo(u), UID: u.GetUID(), Provider: IsProviders(u), Since: since, Begun: err == nil && h != nil && h.Unpaused != "", Waiting: waiting,
	}
}

// lastSeen is the last that is known to have happened to an object: it was created, its XR was
// unpaused, or Crossplane spoke of it.
func (t *tree) lastSeen(u *unstructured.Unstructured) time.Time {
	if t.hold != nil {
		return t.snapshot.lastSeen(u, at(t.hold.Unpaused))
	}

	return t.snapshot.lastSeen(u)
}

// lastSeen is the last that is known to have happened to an object: it was created or held,
// Crossplane or its provider spoke of it, or what else is given.
func (s *Snapshot) lastSeen(u *unstructured.Unstructured, times ...time.Time) time.Time {
	last := u.GetCreationTimestamp().Time
	if h, err := s.holdOf(u); err == nil && h != nil {
		times = append(times, at(h.Since))
	}
	if c, ok := xp.ConditionOf(u, xp.ConditionSynced); ok {
		times = append(times, c.Since)
	}
	for _, other := range times {
		// Whoever can write the object can write a time of the future.
		if other.After(last) && !other.After(s.now) {
			last = other
		}
	}

	return last
}

func at(stamp string) time.Time {
	parsed, _ := time.Parse(time.RFC3339, stamp)

	return parsed
}

// reconciled reports whether Crossplane has reconciled an object as it is now, and how that went.
// v2 says which generation it means, and lifting a hold makes a new one unless the person's own
// settings were those of the hold, in which case what was proven before is the same. v1 does not
// say, so there what was said while the object was still held is all the proof that there is. After
// a reconcile a stale cache can make it say once more that the object is paused.
func reconciled(u *unstructured.Unstructured) (xp.Condition, bool) {
	c, ok := xp.ConditionOf(u, xp.ConditionSynced)

	return c, ok && c.Reason != xp.ReasonReconcilePaused && isCurrent(u, c)
}

// isCurrent reports whether a condition is about the object as it is now. One that was restored
// with the status is about what it was in the backup.
func isCurrent(u *unstructured.Unstructured, c xp.Condition) bool {
	return c.Generation == 0 || c.Generation == u.GetGeneration()
}

// checkSeen waits until Crossplane has said of a paused object that it is paused. That it did is
// what makes its next word a proof: status is not restored, or is as old as the backup.
func (t *tree) checkSeen(u *unstructured.Unstructured) {
	if !isSeenPaused(u) {
		t.awaitReconcile(u, "Crossplane to notice that %s is paused; is Crossplane running, and its XRD Established?", xp.String(u))
	}
}

// checkReconciled waits until Crossplane has reconciled an object that checkSeen held for.
func (t *tree) checkReconciled(u *unstructured.Unstructured) {
	switch c, ok := reconciled(u); {
	case !ok:
		t.awaitReconcile(u, "Crossplane to reconcile %s", xp.String(u))
	case c.Status != "True" && t.failsAsBackedUp(u):
		t.plan.Remarks = append(t.plan.Remarks, fmt.Sprintf("%s is as broken as it was: Crossplane could not reconcile it when it was backed up, and can't now: %s",
			xp.String(u), c.Message))
	case c.Status != "True":
		t.wait(true, "%s: Crossplane can't reconcile it: %s", xp.String(u), c.Message)
	}
}

// failsAsBackedUp reports whether Crossplane can't reconcile an XR for the reason that there was
// when it was backed up. Then there is no better proof to wait for than that all it composes is
// back and its own.
func (t *tree) failsAsBackedUp(u *unstructured.Unstructured) bool {
	return t.hold != nil && t.hold.Failing != "" && xp.RefTo(u).ID() == xp.RefTo(t.xr.Unstructured).ID() && t.hold.Failing == FailingOf(u)
}

// FailingOf returns how Crossplane can't reconcile an object, without what differs each time, so
// that the same failure is the same; "" if it can or says nothing.
func FailingOf(u *unstructured.Unstructured) string {
	c, ok := xp.ConditionOf(u, xp.ConditionSynced)
	if !ok || c.Status == "True" || c.Reason == xp.ReasonReconcilePaused {
		return ""
	}
	sum := sha256.Sum256([]byte(volatileText.ReplaceAllString(c.Message, "#")))

	return c.Reason + " " + hex.EncodeToString(sum[:8])
}

// volatileText are UIDs, hashes, versions, ports and times in a message.
var volatileText = regexp.MustCompile(`[0-9a-fA-F-]*\d[0-9a-fA-F-]*`)

// checkReleased waits until Crossplane has reconciled what a restore brought back, with the
// person's own settings. That this fails is as it would be without a restore: from here on a
// Composition may have changed.
func (t *tree) checkReleased(u *unstructured.Unstructured) {
	if !t.snapshot.restored[u.GetUID()] || xp.IsPaused(u) || u.GetDeletionTimestamp() != nil {
		return
	}
	switch c, ok := reconciled(u); {
	case !ok:
		t.awaitReconcile(u, "Crossplane to reconcile %s, which is adopted, with its own settings", xp.String(u))
	case c.Status != "True":
		t.plan.Remarks = append(t.plan.Remarks, fmt.Sprintf("%s is adopted, and with its own settings Crossplane can't reconcile it: %s", xp.String(u), c.Message))
	}
	t.clearRequest(u)
}
