package adoption

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An object in quarantine is held, and nothing is done about it until a user ends the quarantine.
// The cluster that was backed up may be running and manage the same external resources, which can't
// be detected from this cluster.
const (
	reasonQuarantine = "restored into quarantine, as the setting hold of the Restore asks: nothing reconciles it until a user releases it; "
	reasonEnded      = "a user has ended its quarantine, and it is held until it is adopted. If that was interrupted, run: "
)

// QuarantineNext returns how to end the quarantine of the objects of a Restore, or of the command
// hold.
func QuarantineNext(h *Hold) string {
	if h.ByCommand {
		return "to go on in this cluster, make sure that no other cluster has adopted it, then run: " +
			xp.NewCommand(xp.Program, "release").Word("-n", "NAMESPACE").String()
	}

	return "make sure that no other cluster manages the same external resources, then run: " + xp.ReleaseOf(h.Restore).String()
}

// quarantined returns the Plan for an object in quarantine: no change.
func quarantined(h *Hold) Plan {
	return Plan{Total: len(h.Refs), Quarantine: reason.Message{Text: h.Reason}}
}

// awaitQuarantineEnd waits until a user ends the quarantine of an object that belongs to an XR.
func (t *tree) awaitQuarantineEnd(r xp.Ref, h *Hold) {
	t.waitFor(r, false, reason.Quarantined.Messagef("%s: it is in quarantine; %s", r, QuarantineNext(h)))
	t.plan.Quarantine = t.plan.Waiting[len(t.plan.Waiting)-1]
}

// Consented returns the mark of u after a user's consent; ok is false if it awaits none.
func (k Key) Consented(u *unstructured.Unstructured) (mark string, ok bool) {
	h, err := k.HoldOf(u)
	if err != nil || h == nil {
		return "", false
	}
	switch {
	case h.Quarantine:
		h.Reason = reason.AwaitingAdoption.Messagef("%s%s", reasonEnded, xp.ReleaseCommand(xp.RefTo(u))).String()
	case h.ByHand:
		h.Reason = reason.AwaitingAdoption.Messagef("%s%s", reasonConsent, xp.ReleaseCommand(xp.RefTo(u))).String()
	default:
		return "", false
	}
	h.Quarantine, h.ByHand = false, false

	return k.mark(xp.RefTo(u), h), true
}
