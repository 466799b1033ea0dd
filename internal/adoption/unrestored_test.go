package adoption

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Velero restores no completed Job or Pod, and nothing of some kinds, and only a backup with this
// plugin tells which.
func TestNextOfUnrestored(t *testing.T) {
	job, event := xptest.Object("batch/v1", "Job", "team-a", "j"), xptest.Object("v1", "Event", "team-a", "e")
	mr := xptest.NamespacedMR("b")
	x := xptest.XRV2("x", xptest.Refs(job, mr, event))
	bucket := xptest.With(mr, xptest.ControlledBy(x), xptest.Reconciled())
	ours := xptest.With(job, xptest.ControlledBy(x))
	paused := held(x, xptest.SeenPaused())
	free := held(x, unpaused(), xptest.Reconciled())
	revision := xptest.Revision(xptest.RevisionName, x)
	const next = ", which Velero does not restore. A restore does not wait for it, and Crossplane makes it again, so that a Job runs once more. If it must not, take it " +
		"out of the Composition before the restore [MadeAgain]"
	runPlans(t, map[string]planCase{
		"Missing": {
			reason: "Nothing brings them back, and Crossplane makes them again.", snapshot: snapshot(paused, bucket, revision), ref: xp.RefTo(x),
			want: outcome{Step: stepUnpause, Target: "Order team-a/x", Adopted: 1, Total: 1, Remarks: []string{"Order team-a/x composes Job team-a/j, Event team-a/e" + next}},
		},
		"Restored": {
			reason: "A Job that had not completed came back, and belongs to the XR.", snapshot: snapshot(paused, bucket, ours, revision), ref: xp.RefTo(x),
			want: outcome{Step: stepUnpause, Target: "Order team-a/x", Adopted: 2, Total: 2, Remarks: []string{"Order team-a/x composes Event team-a/e" + next}},
		},
		"Replaced": {
			reason: "Crossplane has made another Job, under another name.", ref: xp.RefTo(x),
			snapshot: snapshot(xptest.With(free, xptest.Refs(mr, xptest.Object("batch/v1", "Job", "team-a", "other"))), bucket, revision),
			want:     outcome{Step: stepRelease + "; without Job team-a/j, Event team-a/e, which it does not reference any more", Target: "Order team-a/x", Adopted: 1, Total: 1},
		},
		"Siblings": {
			reason: "All else is still waited for.", snapshot: snapshot(paused, revision), ref: xp.RefTo(x),
			want: outcome{
				Total: 1, Remarks: []string{"Order team-a/x composes Job team-a/j, Event team-a/e" + next},
				Waiting: []string{"Bucket team-a/b: it is not in the cluster. Restore it; or, if its external resource is gone too, remove it from the resourceRefs of Order team-a/x, and Crossplane composes another [NotInCluster]"},
			},
		},
	})
}
