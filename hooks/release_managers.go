package hooks

import (
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// These are the messages for an object that Velero created without writing back its managedFields
// from the backup: the first two before its hold is lifted, the other two after.
const (
	reasonManagersMissing = "Velero was stopped before it wrote back who manages which of its fields, and release can't"
	nextManagersMissing   = "restore the same backup again before release, which writes it back"
	reasonManagersLost    = "who managed which of its fields is lost, since Velero was stopped before it wrote that back"
	nextManagersLost      = "if it is applied server-side, apply it once as it is before anything is left out of it: whoever applies a field manages it again. " +
		"Next time restore again before release, which brings back who managed what"
)

// addManagers adds to the result if a release loses, or has lost, the field managers.
func (h *held) addManagers() {
	why, next := reasonManagersLost, nextManagersLost
	switch h.Result {
	case report.Released, report.Forced:
	case report.WouldRelease, report.WouldForce:
		why, next = reasonManagersMissing, nextManagersMissing
	case report.Unproven, report.StillHeld, report.LeftAlone, report.WouldWait:
		return
	}
	if !adoption.ForgetsManagers(h.object) {
		return
	}
	if h.Reason != "" {
		why = h.Reason + "; " + why
	}
	h.Reason, h.Next = why, next
}
