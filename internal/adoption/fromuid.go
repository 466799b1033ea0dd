package adoption

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// waitFromUID returns why an object is held as long as its XR is: the XR's release changes the
// fields, and only a user can say to what. It is the zero Message if it is not.
func (s *Snapshot) waitFromUID(h *hold.Hold) reason.Message {
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
func (s *Snapshot) xrOf(f *hold.FromUID) *unstructured.Unstructured {
	if xr := s.Get(f.XR); xr != nil {
		return xr
	}
	wide := f.XR
	wide.Namespace = ""

	return s.Get(wide)
}
