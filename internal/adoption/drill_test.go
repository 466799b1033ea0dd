package adoption

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestIsDrillName(t *testing.T) {
	at := time.Date(2026, 11, 20, 4, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason         string
		name, schedule string
		want           bool
	}{
		"Own":      {reason: "It has made this name.", name: DrillName("nightly", at), schedule: "nightly", want: true},
		"Other":    {reason: "The name is that of another schedule.", name: DrillName("weekly", at), schedule: "nightly"},
		"Longer":   {reason: "The name of another schedule begins with that of this one.", name: DrillName("nightly-eu", at), schedule: "nightly"},
		"NoTime":   {reason: "A user has made it.", name: "drill-nightly-monday", schedule: "nightly"},
		"NoMonth":  {reason: "The digits are no time.", name: "drill-nightly-20261320040000", schedule: "nightly"},
		"Empty":    {reason: "Nothing follows.", name: "drill-nightly-", schedule: "nightly"},
		"Trailing": {reason: "Something follows the time.", name: DrillName("nightly", at) + "0", schedule: "nightly"},
	}
	for name, tc := range cases {
		if got := IsDrillName(tc.name, tc.schedule); got != tc.want {
			t.Errorf("%s: %s IsDrillName(%q) is %t", name, tc.reason, tc.name, got)
		}
	}
}

func TestDrillRestore(t *testing.T) {
	template := xptest.Object("velero.io/v1", "Restore", "elsewhere", "mine", xptest.Labelled("team", "a"), xptest.Labelled(LabelDrillResult, DrillPassed),
		xptest.Annotated(settingHold, "none"), xptest.Field("weekly", "spec", "scheduleName"), xptest.Field("update", "spec", "existingResourcePolicy"),
		xptest.Field("Completed", "status", "phase"))
	want := xptest.Object("velero.io/v1", "Restore", "velero", "drill", xptest.Labelled("team", "a"), xptest.Labelled(LabelDrill, "nightly"),
		xptest.Annotated(settingHold, holdAll), xptest.Field("update", "spec", "existingResourcePolicy"), xptest.Field("nightly-1", "spec", "backupName"))
	unstructured.RemoveNestedField(want.Object, "metadata", "uid")
	before := template.DeepCopy()
	if diff := cmp.Diff(want.Object, DrillRestore(template, "velero", "drill", "nightly", "nightly-1").Object); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(before, template); diff != "" {
		t.Errorf("the template has changed: -want, +got:\n%s", diff)
	}
	if got := DrillRestore(&unstructured.Unstructured{Object: map[string]any{}}, "velero", "drill", "nightly", "nightly-1"); got.GetKind() != "Restore" {
		t.Errorf("without a template it is %v", got)
	}
}

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

func TestDrillHeld(t *testing.T) {
	of := Hold{Restore: "velero/drill-nightly-20261120040000", Since: cameAt, Quarantine: true}
	mr := xptest.MR("b")
	copied, handover, another := of, of, of
	copied.Clone, handover.Handover, another.Quarantine = "Bucket a", true, false
	taken := mr.DeepCopy()
	h, err := Put(taken, of)
	if err != nil {
		t.Fatal(err)
	}
	h.TakenOver = true
	mark, err := handoverKey.mark(xp.RefTo(taken), h)
	if err != nil {
		t.Fatal(err)
	}
	xp.Annotate(taken, AnnotationHold, mark)
	cases := map[string]struct {
		reason string
		live   *unstructured.Unstructured
		ok     bool
		shared string
	}{
		"TakenOver": {reason: "A user has made it.", live: taken, ok: true, shared: "it existed before the restore"},
		"Held":      {reason: "A drill brought it.", live: inStandby(t, mr, of), ok: true},
		"Copy":      {reason: "So it did if the original is live.", live: inStandby(t, mr, copied), ok: true},
		"Handover":  {reason: "The command hold holds it, which a drill does not.", live: inStandby(t, mr, handover)},
		"Adopting":  {reason: "It is not in quarantine.", live: inStandby(t, mr, another)},
		"Unpaused":  {reason: "Another writer has removed the pause, so its provider may act.", live: inStandby(t, mr, of, xptest.Annotated("crossplane.io/paused", "false"))},
		"Deleting":  {reason: "Its deletion has begun.", live: inStandby(t, mr, of, xptest.Deleting())},
		"NotSigned": {reason: "A user has written the mark.", live: xptest.With(inStandby(t, mr, of), xptest.Field("forged", "metadata", "name"))},
		"Live":      {reason: "It is reconciled.", live: mr},
	}
	for name, tc := range cases {
		restore, shared, ok := handoverKey.DrillHeld(tc.live)
		if ok != tc.ok || shared != tc.shared || ok && restore != of.Restore {
			t.Errorf("%s: %s It is held by %q, %q, %t", name, tc.reason, restore, shared, ok)
		}
	}
}
