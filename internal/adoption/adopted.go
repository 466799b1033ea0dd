package adoption

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// WhyNotAdopted returns why a claim or an XR is not adopted, as far as the object itself shows it,
// and the next step; both are zero if it is adopted. A restored object never looks adopted before
// it is held: it is created with its hold.
func WhyNotAdopted(u *unstructured.Unstructured) (why reason.Message, next string) {
	h, err := HoldOf(u)
	switch {
	case err != nil:
		return reason.Message{Code: cmp.Or(reason.CodeOf(err), reason.MarkUnreadable), Text: err.Error()}, "correct or remove that annotation"
	case h != nil && h.Quarantine:
		return reason.Quarantined.Messagef("in quarantine since %s, by %s", h.Since, h.By()), HowToRelease(u, h)
	case h != nil:
		why, next = reason.Message{Text: fmt.Sprintf("held by %s since %s: %s", h.By(), h.Since, Why(u, h))},
			"see what it waits for: "+xp.ValidateCommand(xp.RefTo(u)).String()
		if h.ByHand {
			next = manualNext(h)
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
