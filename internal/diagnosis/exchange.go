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
		why, next := "an exchange paused it and has not ended", "run the exchange again, or end it: "+AbandonCommand(o.Ref)
		switch {
		case d.of == Backup:
			next = "a restore leaves it paused; back up again when the exchange has ended"
		case !xp.HasComposed(u):
			why = "an exchange paused it and deleted what it composed, and it waits for a restore of what it composed in the backup"
			next = "restore from that backup, or let it compose again: " + AbandonCommand(o.Ref)
		}
		d.add(reason.Exchanging, report.Error, o.Ref, why, next)
	}
}

// AbandonCommand returns the command that ends the exchange of a claim or XR.
func AbandonCommand(r xp.Ref) string {
	return xp.NewCommand(xp.Program, "exchange").On(r.Path()).Word("--abandon").String()
}
