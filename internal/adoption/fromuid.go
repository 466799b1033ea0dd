package adoption

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// waitFromUID returns why an object is held as long as its XR is: the XR's release changes the
// fields, and only a user can say to what. It is the zero Message if it is not.
func (s *Snapshot) waitFromUID(h *Hold) reason.Message {
	if h.FromUID == nil {
		return reason.Message{}
	}
	// With an Owner the XR was not held from the start.
	if xr := s.xrOf(h.FromUID); xr != nil && h.Owner == nil {
		if of, err := s.holdOf(xr); of == nil && err == nil {
			return reason.Message{} // A user has released it by force.
		}
	}

	return h.FromUID.Why()
}

// xrOf returns the XR, which is cluster-scoped or in the namespace of the object; nil if there is
// none.
func (s *Snapshot) xrOf(f *FromUID) *unstructured.Unstructured {
	if xr := s.Get(f.XR); xr != nil {
		return xr
	}
	wide := f.XR
	wide.Namespace = ""

	return s.Get(wide)
}
