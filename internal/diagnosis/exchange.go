package diagnosis

import (
	"slices"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkExchanges finds claims and XRs that an exchange has paused. checkHolds reports those that
// are held by then.
func (d *diagnosis) checkExchanges() {
	for _, o := range sorted(slices.Concat(d.claims, d.composites)) {
		if o.is(isMarked) {
			continue
		}
		u := o.full()
		if !xp.HasAnnotation(u, xp.AnnotationExchange) || !xp.IsPaused(u) {
			continue
		}
		why, next := "an exchange has paused it and is not over", "run it again, or have it go on as it is: "+abandonCommand(o.Ref)
		switch {
		case d.of == Backup:
			next = "a restore leaves it paused; back up again when the exchange is over"
		case !xp.HasComposed(u):
			why = "an exchange has paused it and deleted what it had composed anew, and it waits for a restore to give it what it composed in the backup"
			next = "restore from that backup, or have it compose anew: " + abandonCommand(o.Ref)
		}
		d.add(reason.Exchanging, report.Grave, o.Ref, why, next)
	}
}

func abandonCommand(r xp.Ref) string {
	return xp.NewCommand(xp.Program, "exchange").On(r.Path()).Word("--abandon").String()
}
