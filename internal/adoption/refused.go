package adoption

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// IsRefused reports whether a wait is for an XR whose composed resources the API server refuses.
// Crossplane names these in the condition, and says why in Events only (crossplane
// internal/controller/apiextensions/composite, Reconcile).
func IsRefused(wait reason.Message) bool {
	return wait.Code == reason.CrossplaneFailing &&
		(strings.Contains(wait.Text, "Unsynced resources: ") || strings.Contains(wait.Text, "some resources were invalid"))
}

// IsRefusal reports whether the message of an Event is that the API server refuses an object as
// invalid.
func IsRefusal(message string) bool {
	return strings.Contains(message, "cannot apply composed resource") && strings.Contains(message, " is invalid: ")
}

// WhyRefused returns why an XR waits, with what the API server says. An immutable field that has the
// XR's UID has another one since the restore.
func WhyRefused(xr *unstructured.Unstructured, said string) reason.Message {
	if strings.Contains(said, "immutable") && xr.GetUID() != "" && strings.Contains(said, string(xr.GetUID())) {
		return reason.UIDInImmutable.Messagef("%s: Crossplane can't reconcile it, because a field that can't be changed has the UID that it had in the backup: %s. "+
			"Delete the object that this names, if it may be made again: Crossplane composes it again", xp.String(xr), said)
	}

	return reason.CrossplaneFailing.Messagef("%s: Crossplane can't reconcile it: %s", xp.String(xr), said)
}
