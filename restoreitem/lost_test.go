package restoreitem

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A restore releases nothing before it has restored all, so an XR that is reconciled without the
// item has lost its hold.
func TestAdoptNamesWhatWasLostWithAHold(t *testing.T) {
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x", xptest.UID("old"))))
	lost := xptest.XR("x", xptest.UID("new"), xptest.Labelled(xp.LabelRestore, "monday"))
	cases := map[string]struct {
		reason string
		live   *cluster
		// err is how the error begins, "" if the item is left out with a warning or restored.
		err  string
		skip bool
	}{
		"ThisRestores": {
			reason: "A warning in a log is not counted by Velero.", live: live(lost),
			err: "cannot restore Bucket b: its XR XOrder x was created since this restore began and is not held, and Crossplane has composed it without this; ",
		},
		"Replaced": {
			reason: "Who replaces it takes its labels off.", live: live(xptest.XR("x", xptest.UID("new"), xptest.Field("2026-01-02T12:00:05Z", "metadata", "creationTimestamp"))),
			err: "cannot restore Bucket b: its XR XOrder x was created since this restore began and is not held, and Crossplane has composed it without this; ",
		},
		"Earlier": {
			reason: "What is older is nothing that it has held.", skip: true,
			live: live(xptest.XR("x", xptest.UID("new"), xptest.Field("2026-01-02T11:59:55Z", "metadata", "creationTimestamp"))),
		},
		"Another": {reason: "An XR of an earlier restore may have been adopted since.", live: live(xptest.With(lost, xptest.Labelled(xp.LabelRestore, "sunday"))), skip: true},
		"Live":    {reason: "So may one that no restore has created.", live: live(xptest.XR("x", xptest.UID("new"))), skip: true},
		"Lists":   {reason: "What it lists comes back, held or not.", live: live(xptest.With(lost, xptest.Refs(bucket)))},
		"Held":    {reason: "What is held is as old as the item.", live: live(heldWith(lost))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			restore := restoreOf(nil)
			restore.Status.StartTimestamp = &metav1.Time{Time: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)}
			out := adopt(t, tc.live, bucket, restore)
			got := ""
			if out.err != nil {
				got = out.err.Error()
			}
			if (got == "") != (tc.err == "") || !strings.HasPrefix(got, tc.err) || out.err == nil && out.SkipRestore != tc.skip {
				t.Errorf("%s\ngot %v, error %q", tc.reason, out.RestoreItemActionExecuteOutput, got)
			}
		})
	}
}
