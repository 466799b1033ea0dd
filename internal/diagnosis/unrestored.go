package diagnosis

import (
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkUnrestored finds what XRs compose that Velero does not restore, and Jobs that start again.
func (d *diagnosis) checkUnrestored() {
	for _, xr := range d.with(isComposite) {
		for _, r := range xr.refs {
			o := d.get(r)
			if !xp.MayStayOut(r.GroupVersionKind().GroupKind()) || o == nil || !d.isComposedBy(xr, o) {
				continue
			}
			switch u := o.full(); {
			case xp.Unrestored(u) != "":
				d.add(reason.MadeAgain, report.Warning, r, xr.String()+" composes it, and Velero restores no completed Pod or Job, and nothing of some kinds",
					"a restore does not wait for it, and Crossplane makes it again, so that a Job runs once more. If it must not, take it out of the Composition "+
						"before the restore")
			case xp.RunsAgain(u):
				d.add(reason.RunsAgain, report.Warning, r, xr.String()+" composes it, and it had started and not completed at the backup",
					"a restore starts it again. If it must not run again, delete or suspend it in the source cluster, and back up again")
			}
		}
	}
}
