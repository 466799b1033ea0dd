package diagnosis

import (
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkIdentities finds MRs that nothing says for sure which external resource they manage.
func (d *diagnosis) checkIdentities() {
	for _, mr := range sorted(d.managed) {
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
		if d.of == Backup {
			next = "a restore holds it until a person does so: " + next + ", and back up again if the source cluster is alive"
		}
		d.add(code, report.Grave, xp.RefTo(mr), reason, next)
	}
}
