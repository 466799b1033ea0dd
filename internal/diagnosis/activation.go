package diagnosis

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

var kindCRD = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// checkActivations finds kinds of MRs that no ManagedResourceActivationPolicy in the backup
// activates.
func (d *diagnosis) checkActivations() {
	var policies []*unstructured.Unstructured
	for _, o := range d.ofKind(xp.KindActivationPolicy.GroupKind()) {
		policies = append(policies, o.full())
	}
	groups := map[string]bool{}
	kinds := map[schema.GroupKind]bool{}
	for _, o := range d.with(isManaged | isNew) {
		gk := o.GroupVersionKind().GroupKind()
		groups[gk.Group], kinds[gk] = true, true
	}
	for _, o := range d.ofKind(kindCRD) {
		// Crossplane gives a CRD the name of its MRD, so the name includes the group.
		if _, group, _ := strings.Cut(o.Name, "."); !groups[group] {
			continue
		}
		crd := o.full()
		name, defined := definedBy(crd)
		if !defined || !kinds[xp.ManagedKind(crd)] ||
			slices.ContainsFunc(policies, func(u *unstructured.Unstructured) bool { return xp.Activates(u, name) }) {
			continue
		}
		r := xp.Ref{APIVersion: xp.KindManagedDefinition.GroupVersion().String(), Kind: xp.KindManagedDefinition.Kind, Name: name}
		if d.IsUnread(r) {
			continue
		}
		const next = "if its provider has the capability safe-start, make sure that it is active in the cluster that you restore into, or "
		if d.get(r) == nil {
			d.add(reason.NotActivated, report.Warning, r, "managed resources in the backup need it, and the backup has neither it nor a "+
				"ManagedResourceActivationPolicy that activates it", next+xp.HowToActivate(name))

			continue
		}
		d.add(reason.NotActivated, report.Warning, r, "no ManagedResourceActivationPolicy in the backup activates it, and a restore does not change an existing one",
			next+xp.HowToActivate(name))
	}
}

// definedBy returns the name of the MRD that owns a CRD.
func definedBy(crd *unstructured.Unstructured) (name string, ok bool) {
	for _, o := range crd.GetOwnerReferences() {
		if o.Kind == xp.KindManagedDefinition.Kind && strings.HasPrefix(o.APIVersion, xp.GroupAPIExtensions+"/") {
			return o.Name, true
		}
	}

	return "", false
}
