package adoption

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// WhyNotAdopted says why a claim or an XR is not adopted, as far as it says so itself, and what to
// do; "" if it is. There is no moment in which a restored object looks adopted and is not held yet:
// it has its hold from its creation on.
func WhyNotAdopted(u *unstructured.Unstructured) (why, next string) {
	h, err := HoldOf(u)
	switch {
	case err != nil:
		return err.Error(), "correct or remove that annotation"
	case h != nil && h.Quarantine:
		return fmt.Sprintf("it is in quarantine since %s, where the Restore %s has put it", h.Since, h.Restore), HowToRelease(u, h)
	case h != nil:
		why, next = fmt.Sprintf("it is held by the Restore %s since %s: %s", h.Restore, h.Since, h.Reason),
			"see what it waits for: "+xp.ValidateCommand(xp.RefTo(u)).String()
		if h.ByHand {
			next = byHandText(h)
		}

		return why, next
	case u.GetDeletionTimestamp() != nil:
		return "it is being deleted", "see what its finalizers wait for, and restore it again"
	case xp.IsPaused(u):
		return "", "" // A person has paused it, and Crossplane says nothing of it until they are done.
	}
	switch c, ok := reconciled(u); {
	case !ok:
		return "Crossplane has not reconciled it as it is", "see whether Crossplane runs, and its XRD is Established: " + xp.ValidateCommand(xp.RefTo(u)).String()
	case c.Status != "True":
		return "Crossplane can't reconcile it: " + c.Message, "mend that; its events tell more: kubectl describe"
	default:
		return "", ""
	}
}
