package restoreitem

import (
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
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
		"OfThisRestore": {
			reason: "Velero does not count a warning in a log, so the restore must fail.", live: live(lost),
			err: "cannot restore Bucket b: its XR XOrder x is newer than this restore and not held, and Crossplane has reconciled it without this. ",
		},
		"Replaced": {
			reason: "An XR that another writer replaced lacks the restore's labels.", live: live(xptest.XR("x", xptest.UID("new"), xptest.Field("2026-01-02T12:00:05Z", "metadata", "creationTimestamp"))),
			err: "cannot restore Bucket b: its XR XOrder x is newer than this restore and not held, and Crossplane has reconciled it without this. ",
		},
		"Earlier": {
			reason: "This restore cannot have held an older XR.", skip: true,
			live: live(xptest.XR("x", xptest.UID("new"), xptest.Field("2026-01-02T11:59:55Z", "metadata", "creationTimestamp"))),
		},
		"ReplacedBySlowServer": {
			reason: "The API server's clock is five minutes slow.", live: behind(live(xptest.XR("x", xptest.UID("new"), xptest.Field("2026-01-02T11:55:05Z", "metadata", "creationTimestamp")))),
			err: "cannot restore Bucket b: its XR XOrder x is newer than this restore and not held, and Crossplane has reconciled it without this. ",
		},
		"EarlierBySlowServer": {
			reason: "It is slow, and created the XR before this restore.", skip: true,
			live: behind(live(xptest.XR("x", xptest.UID("new"), xptest.Field("2026-01-02T11:54:55Z", "metadata", "creationTimestamp")))),
		},
		"Another": {reason: "An XR of an earlier restore may have been adopted since.", live: live(xptest.With(lost, xptest.Labelled(xp.LabelRestore, "sunday"))), skip: true},
		"Live":    {reason: "A live XR that no restore created may have dropped the MR.", live: live(xptest.XR("x", xptest.UID("new"))), skip: true},
		"Lists":   {reason: "A composed resource in the XR's list comes back, held or not.", live: live(xptest.With(lost, xptest.Refs(bucket)))},
		"Held":    {reason: "A held XR is as old as the item.", live: live(heldWith(lost))},
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

// behind makes the clock of a cluster's API server five minutes slow.
func behind(c *cluster) *cluster {
	c.ahead = -5 * time.Minute

	return c
}

// What is compared with times of the API server is in its time, whatever clock Velero's Pod has.
func TestServerTime(t *testing.T) {
	for _, ahead := range []time.Duration{5 * time.Minute, 0, -5 * time.Minute} {
		w := &fakeAdopter{}
		a := NewAdopt(Crossplane(), &cluster{ahead: ahead}, w, logrus.New(), Shared{})
		if off := a.now().Sub(time.Now().Add(ahead)); off.Abs() > time.Minute {
			t.Errorf("%s ahead: marks are off by %s", ahead, off)
		}
		restore, began := restoreOf(nil), metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
		restore.Status.StartTimestamp = &began
		if _, err := a.Progress(operation, restore); err != nil || !w.by.Started.Equal(began.Add(ahead)) {
			t.Errorf("%s ahead: the Restore began at %s; error %v", ahead, w.by.Started, err)
		}
	}
}
