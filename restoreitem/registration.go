package restoreitem

import (
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
)

// A Registration is the name of an action in Velero, and its selector. Velero runs the actions on
// an item sorted by name.
type Registration struct {
	Name     string
	Selector velero.ResourceSelector
}

// Orders returns the registrations of Order.
func Orders() []Registration {
	return []Registration{
		{Name: "velero.crossplane.io/1-order", Selector: Crossplane()},
		{Name: "velero.crossplane.io/1-order-composed", Selector: Composed()},
	}
}

// Adopts returns the registrations of Adopt.
func Adopts() []Registration {
	return []Registration{
		{Name: "velero.crossplane.io/2-adopt", Selector: Crossplane()},
		{Name: "velero.crossplane.io/2-adopt-composed", Selector: Composed()},
		{Name: "velero.crossplane.io/2-adopt-runtime", Selector: Runtime()},
		{Name: "velero.crossplane.io/2-adopt-used", Selector: Used()},
	}
}
