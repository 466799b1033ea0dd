package diagnosis

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkIdentities finds MRs that nothing says for sure which external resource they manage.
func (d *diagnosis) checkIdentities() {
	for _, o := range sorted(d.managed) {
		if !o.is(isUnsure) {
			continue
		}
		mr := o.whole()
		identity := xp.IdentityOf(mr)
		code := report.IdentityMissing
		switch identity {
		case xp.InFlight:
			code = report.IdentityInFlight
		case xp.Recoverable, xp.Unknown:
			if !xp.MayCreate(mr) {
				continue
			}
		case xp.Named, xp.Unborn:
			continue
		}
		id, _ := xp.ProviderID(mr)
		reason, next := "it has no external-name, so nothing says which external resource it manages", "set its annotation "+xp.AnnotationExternalName+
			" to what its external resource is called in the cloud"
		if id != "" {
			next += "; its provider calls it " + id
		}
		if code == report.IdentityInFlight {
			reason = "its external resource was being created, so whether there is one only the cloud knows"
			next = "look for it in the cloud, set " + xp.AnnotationExternalName + " if it is there, and remove " + xp.AnnotationCreatePending
		}
		switch {
		case d.of == Cluster:
		case xp.IsPaused(mr):
			next += ". It is paused, and a restore leaves it so: do that before anybody unpauses it, or in the source cluster, and back up again"
		default:
			next += ". A restore holds it until then; if the source cluster is alive, do it there, and back up again"
		}
		if severity := d.gravity(mr, code); severity != "" {
			d.add(code, severity, xp.RefTo(mr), reason, next)
		}
	}
}

// gravity says how grave it is that an MR has no sure identity; "" if it is as it should be. In a cluster that is alive it may just be being created: a
// provider says so before it asks the cloud, and one that creates asynchronously writes the name when that is over, which can take very long.
func (d *diagnosis) gravity(mr *unstructured.Unstructured, code report.Code) report.Severity {
	if d.of == Backup {
		return report.Grave
	}
	_, restored := mr.GetLabels()[xp.LabelRestore]
	synced, _ := xp.ConditionOf(mr, xp.ConditionSynced)
	ready, _ := xp.ConditionOf(mr, xp.ConditionReady)
	switch {
	case mr.GetDeletionTimestamp() != nil:
		return ""
	case isHeld(mr), restored, ready.Status == "True", code == report.IdentityInFlight && synced.Status == "False" && synced.Reason != xp.ReasonReconcilePaused:
		return report.Grave
	case d.Now.Sub(lastChange(mr)) < patienceProvider:
		return ""
	default:
		return report.Warning
	}
}
