package hooks

import (
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// These are the messages for an object that Velero created without writing back its managedFields
// from the backup: the first two before its hold is lifted, the other two after.
const (
	reasonManagersMissing = "Velero was stopped before it restored the managedFields, and release can't restore them"
	nextManagersMissing   = "restore the same backup again before the release, which restores them"
	reasonManagersLost    = "its managedFields of the backup are lost, because Velero was stopped before it restored them"
	nextManagersLost      = "if it is applied server-side, apply it once as it is before you remove a field from it; next time restore again before the release"
)

// addManagers adds to the result if a release loses, or has lost, the field managers.
func (h *held) addManagers() {
	why, next := reasonManagersLost, nextManagersLost
	switch h.Result { //nolint:exhaustive // The others are neither released nor going to be.
	case report.Released, report.Forced:
	case report.WouldRelease, report.WouldForce:
		why, next = reasonManagersMissing, nextManagersMissing
	default:
		return
	}
	if !adoption.ForgetsManagers(h.object) {
		return
	}
	if h.Reason != "" {
		why = h.Reason + "; " + why
	}
	h.because(reason.ManagersNotRestored.Messagef("%s", why))
	h.Next = next
}
