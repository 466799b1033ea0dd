// Package restoreitem has Velero's restore actions. Only main imports it. Begin with Order and
// Adopt. Velero calls an action once per item, sorted by name, and restores the AdditionalItems of
// one action before it calls the next (velero pkg/restore/restore.go, restoreItem).
package restoreitem

import (
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Registration is the name of an action in Velero, which sorts by it, and its selector.
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

// Crossplane selects what Crossplane may use: custom resources and Secrets.
func Crossplane() velero.ResourceSelector {
	include, exclude := xp.CustomResources()

	return velero.ResourceSelector{IncludedResources: append(include, "secrets"), ExcludedResources: exclude}
}

// Composed selects resources of Kubernetes' kinds that an XR composes.
func Composed() velero.ResourceSelector {
	include, exclude := xp.KubernetesResources()

	return velero.ResourceSelector{IncludedResources: include, ExcludedResources: exclude, LabelSelector: xp.LabelComposite}
}

// Used selects resources of Kubernetes' kinds that a Usage protects and no XR composes.
func Used() velero.ResourceSelector {
	include, exclude := xp.KubernetesResources()

	return velero.ResourceSelector{IncludedResources: include, ExcludedResources: exclude, LabelSelector: xp.LabelInUse + ",!" + xp.LabelComposite}
}

// Runtime selects what Crossplane creates for a package or an XRD, and no XR composes.
func Runtime() velero.ResourceSelector {
	return velero.ResourceSelector{IncludedResources: xp.RuntimeResources(), LabelSelector: "!" + xp.LabelComposite}
}
