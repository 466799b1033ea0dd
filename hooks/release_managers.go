package hooks

import (
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// What is said of what Velero has created and not written the managedFields of the backup back to:
// before its hold is lifted, and after that.
const (
	reasonManagersMissing = "Velero was stopped before it wrote back who manages which of its fields, and release can't"
	nextManagersMissing   = "restore the same backup again before release, which writes it back"
	reasonManagersLost    = "who managed which of its fields is lost, since Velero was stopped before it wrote that back"
	nextManagersLost      = "if it is applied server-side, apply it once as it is before anything is left out of it: whoever applies a field manages it again. " +
		"Next time restore again before release, which brings back who managed what"
)

// sayManagers says of what is lifted, or would be, if who managed which of its fields does not come
// back.
func (h *held) sayManagers() {
	reason, next := reasonManagersLost, nextManagersLost
	switch h.Result {
	case report.Released, report.Forced:
	case report.WouldRelease, report.WouldForce:
		reason, next = reasonManagersMissing, nextManagersMissing
	case report.Unproven, report.StillHeld, report.LeftAlone, report.WouldWait:
		return
	}
	if !adoption.ForgetsManagers(h.object) {
		return
	}
	if h.Reason != "" {
		reason = h.Reason + "; " + reason
	}
	h.Reason, h.Next = reason, next
}
