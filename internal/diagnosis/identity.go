package diagnosis

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/externalname"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkIdentities finds MRs without a certain external resource.
func (d *diagnosis) checkIdentities() {
	for _, o := range d.with(isUnsure) {
		mr := o.full()
		switch identity := xp.IdentityOf(mr); {
		case identity == xp.Known && d.of == Backup && xp.IsNeverObserved(mr): // In a cluster it is not Ready, which checkConditions reports.
			d.add(reason.NotObserved, report.Warning, o.Ref,
				"it has an external-name, and at the backup upjet had found nothing under it: its status.atProvider is empty", "back up again when it is Ready. A "+
					"restore lets it only observe until its provider finds its external resource, and creates none, unless a setting changes that")
		case identity == xp.Known, identity == xp.NeverCreated:
		case identity == xp.CreatePending:
			d.addUnsure(mr, reason.CreatePending, identity)
		case xp.MayCreate(mr):
			d.addUnsure(mr, reason.IdentityMissing, identity)
		}
	}
}

// addUnsure adds the problem of an MR without a certain identity, unless it is normal.
func (d *diagnosis) addUnsure(mr *unstructured.Unstructured, code reason.Code, identity xp.Identity) {
	r := xp.RefTo(mr)
	id, _ := xp.ProviderID(mr)
	name, known := d.nameOf(mr, id)
	if known && d.of == Backup && identity == xp.Recoverable {
		d.add(code, report.Warning, r, "it has no external-name, and a restore gives it "+name.External+", as "+name.By+", unless a setting changes that",
			"in the source cluster, set its annotation "+xp.AnnotationExternalName+" to that: its provider can create a second external resource when it restarts")

		return
	}
	why, next := "it has no external-name, so its external resource is unknown", "set its annotation "+xp.AnnotationExternalName+
		" to the name of its external resource in the cloud"
	if id != "" {
		next += "; its provider has the id " + id
	}
	if known {
		next += ", so the name is " + name.External + ", as " + name.By
	}
	if code == reason.CreatePending {
		why = "its external resource was being created, so only the cloud shows whether it exists"
		next = "look for it in the cloud, set " + xp.AnnotationExternalName + " if it exists, and remove " + xp.AnnotationCreatePending
	}
	switch {
	case d.of == Cluster && code == reason.IdentityMissing && hold.IsMarked(mr):
		next += "; if it does not exist, have it created: " + xp.NewCommand(xp.Program, "release", "--force").On(r.Path()).String()
	case d.of == Cluster:
	case xp.IsPaused(mr):
		next += ". It is paused, and a restore leaves it paused: do that before a user unpauses it, or do it in the source cluster and back up again"
	default:
		next += ". A restore holds it until then. If the source cluster still runs, do it there and back up again"
	}
	if severity := d.identitySeverity(mr, code); severity != "" {
		d.add(code, severity, r, why, next)
	}
}

// nameOf returns the external-name that belongs to a provider's id, if it is known for the MR's
// kind and no other MR claims it.
func (d *diagnosis) nameOf(mr *unstructured.Unstructured, id string) (externalname.Name, bool) {
	gk := mr.GroupVersionKind().GroupKind()
	name, known := externalname.Known(gk, id)
	if !known || xp.HasFlag(mr, xp.FieldDoubted) || d.countManagers(gk)[id] > 1 {
		return externalname.Name{}, false
	}

	return name, true
}

// countManagers counts the MRs of a kind by the external resources that they name, with their
// external-name or their provider's id.
func (d *diagnosis) countManagers(gk schema.GroupKind) map[string]int {
	if by, is := d.managerCounts[gk]; is {
		return by
	}
	by := map[string]int{}
	for _, mr := range fullObjects(d.ofKind(gk)) {
		external := mr.GetAnnotations()[xp.AnnotationExternalName]
		id, _ := xp.ProviderID(mr)
		by[id]++
		if external != id {
			by[external]++
		}
	}
	d.managerCounts[gk] = by

	return by
}

// identitySeverity returns the severity of a missing identity; "" if it is normal. In a cluster the
// external resource may be under creation. A provider records that before it calls the cloud; one
// that creates asynchronously writes the external-name at the end, which can take very long.
func (d *diagnosis) identitySeverity(mr *unstructured.Unstructured, code reason.Code) report.Severity {
	if d.of == Backup {
		return report.Error
	}
	_, restored := mr.GetLabels()[xp.LabelRestore]
	synced, _ := xp.ConditionOf(mr, xp.ConditionSynced)
	ready, _ := xp.ConditionOf(mr, xp.ConditionReady)
	switch {
	case mr.GetDeletionTimestamp() != nil:
		return ""
	case isHeld(mr), restored, ready.Status == "True", code == reason.CreatePending && synced.Status == "False" && synced.Reason != xp.ReasonReconcilePaused:
		return report.Error
	case d.Now.Sub(lastChange(mr)) < stuckAfterProvider:
		return ""
	default:
		return report.Warning
	}
}
