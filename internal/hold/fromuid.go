package hold

import (
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A FromUID says which fields of an MR or composed XR its Composition has made from the UID of an XR,
// and that these fields may identify what the object manages or composes. The restored XR has another
// UID: when Crossplane reconciles it, it writes other values.
type FromUID struct {
	// XR composes the object, and UID is the UID in the backup of that XR, or of one above it.
	XR  xp.Ref `json:"xr"`
	UID string `json:"uid"`
	// Fields are the paths of the first of these fields.
	Fields []string `json:"fields"`
}

// Why returns why the XR must not be reconciled, and the next step.
func (f *FromUID) Why() reason.Message {
	return reason.UIDInIdentity.Messagef("its %s has the UID %s of the backup, and Crossplane writes the XR's new UID there, so that it is another external "+
		"resource, or a Secret without the values of the backup. Let the Composition take it from what a restore keeps: a name, the namespace, or a label or field "+
		"of the XR that you give the old value. If the update policy is Manual, choose the new revision. Then run: %s",
		f.Named(), f.UID, xp.NewCommand(xp.Program, "release", "--force").On(f.XR.Path()))
}

// Named returns the Fields in words.
func (f *FromUID) Named() string { return strings.Join(f.Fields, " and its ") }

// ReasonFromUID returns the reason of a hold with such fields.
func ReasonFromUID(f *FromUID) string {
	why := f.Why()

	return why.Code.Messagef("restored from a backup; %s", why.Text).String()
}
