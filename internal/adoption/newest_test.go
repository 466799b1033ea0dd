package adoption

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestNewestBackup(t *testing.T) {
	backup := func(name, schedule, phase, at string, o ...xptest.Option) *unstructured.Unstructured {
		o = append(o, xptest.Labelled(labelSchedule, schedule), xptest.Field(phase, "status", "phase"), xptest.Field(at, "status", "startTimestamp"))

		return xptest.Object("velero.io/v1", "Backup", "velero", name, o...)
	}
	old, newer := backup("a", "nightly", "Completed", "2026-11-19T01:00:00Z"), backup("b", "nightly", "Completed", "2026-11-20T01:00:00Z")
	cases := map[string]struct {
		reason  string
		backups []*unstructured.Unstructured
		want    string
	}{
		"Newest":  {reason: "The order does not matter.", backups: []*unstructured.Unstructured{newer, old}, want: "b"},
		"Partial": {reason: "Velero restores none that is not Completed.", backups: []*unstructured.Unstructured{old, backup("c", "nightly", "PartiallyFailed", "2026-11-21T01:00:00Z")}, want: "a"},
		"Others":  {reason: "It is of another schedule.", backups: []*unstructured.Unstructured{backup("c", "weekly", "Completed", "2026-11-21T01:00:00Z")}},
		"Receipt": {reason: "A receipt has no items.", backups: []*unstructured.Unstructured{old, backup("c", "nightly", "Completed", "2026-11-21T01:00:00Z", xptest.Labelled(LabelReceipt, "true"))}, want: "a"},
		"None":    {reason: "There are no backups."},
	}
	for name, tc := range cases {
		got, ok := NewestBackup(tc.backups, "nightly")
		if ok != (tc.want != "") || ok && got.GetName() != tc.want {
			t.Errorf("%s: %s It is %v", name, tc.reason, got)
		}
	}
}
