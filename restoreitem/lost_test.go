package restoreitem

import (
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Nothing that this restore has brought back on hold is released before it has brought back all, so an XR that does without the item has lost its hold.
func TestAdoptNamesWhatWasLostWithAHold(t *testing.T) {
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x", xptest.UID("old"))))
	lost := xptest.XR("x", xptest.UID("new"), xptest.Labelled(xp.LabelRestore, "monday"))
	cases := map[string]struct {
		reason string
		live   *cluster
		// err is how the error begins; "" if the item is left out with a warning or comes back.
		err  string
		skip bool
	}{
		"ThisRestores": {
			reason: "A warning in a log is not counted by Velero.", live: live(lost),
			err: "cannot restore Bucket b: its XR XOrder x came back with this restore and is not held any more, and Crossplane has composed it without this; ",
		},
		"Another": {reason: "An XR of an earlier restore may have been adopted since.", live: live(xptest.With(lost, xptest.Labelled(xp.LabelRestore, "sunday"))), skip: true},
		"Live":    {reason: "So may one that no restore has created.", live: live(xptest.XR("x", xptest.UID("new"))), skip: true},
		"Lists":   {reason: "What it lists comes back, held or not.", live: live(xptest.With(lost, xptest.Refs(bucket)))},
		"Held":    {reason: "What is held is as old as the item.", live: live(heldWith(lost))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := adopt(t, tc.live, bucket, restoreOf(nil))
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
