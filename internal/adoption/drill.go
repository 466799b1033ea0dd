package adoption

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// LabelDrill is on a Restore that the command drill created; its value is the schedule, as Velero
// writes it into labels. LabelDrillResult is there when the drill is over.
const (
	LabelDrill       = "velero.crossplane.x-k8s.io/drill"
	LabelDrillResult = "velero.crossplane.x-k8s.io/drill-result"
)

// Values of LabelDrillResult.
const (
	DrillPassed = "passed"
	DrillFailed = "failed"
)

// Reasons of Events about a drill.
const (
	EventDrillPassed = "DrillPassed"
	EventDrillFailed = "DrillFailed"
)

// ActionAdopt is the name of the action that holds what a restore brings back. Velero without it
// would have the drill reconciled.
const ActionAdopt = "velero.crossplane.io/2-adopt"

// settingHold is the annotation of a Restore that has everything restored into quarantine, and
// holdAll its value.
const (
	settingHold = "velero.crossplane.io/hold"
	holdAll     = "all"
)

// drillTime is the layout of the time in the name of a drill's Restore.
const drillTime = "20060102150405"

// DrillName returns the name of the Restore of a drill of a schedule that begins at a time.
func DrillName(schedule string, at time.Time) string {
	return drillPrefix(schedule) + at.UTC().Format(drillTime)
}

func drillPrefix(schedule string) string { return "drill-" + schedule + "-" }

// IsDrillName reports whether DrillName can have made the name for the schedule.
func IsDrillName(name, schedule string) bool {
	at, ok := strings.CutPrefix(name, drillPrefix(schedule))
	_, err := time.Parse(drillTime, at)

	return ok && err == nil
}

// DrillRestore makes a Restore the one of a drill: everything that it brings back of the backup is
// held in quarantine. Of the Restore it takes spec, labels and annotations. label is the schedule as the value of a label.
func DrillRestore(restore *unstructured.Unstructured, velero, name, label, backup string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": restore.DeepCopy().Object["spec"]}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Restore"})
	u.SetNamespace(velero)
	u.SetName(name)
	u.SetAnnotations(restore.GetAnnotations())
	xp.Annotate(u, settingHold, holdAll)
	labels := restore.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[LabelDrill] = label
	delete(labels, LabelDrillResult)
	u.SetLabels(labels)
	unstructured.RemoveNestedField(u.Object, "spec", "scheduleName")
	set(u.Object, backup, "spec", "backupName")

	return u
}

// NewestBackup returns the newest Backup of a schedule that is Completed, which is the one that
// Velero restores with --from-schedule (velero pkg/controller/restore_controller.go,
// mostRecentCompletedBackup). ok is false if there is none.
func NewestBackup(backups []*unstructured.Unstructured, label string) (newest *unstructured.Unstructured, ok bool) {
	for _, u := range backups {
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		if ScheduleOf(u) != label || phase != "Completed" {
			continue
		}
		if newest == nil || startOf(u).After(startOf(newest)) || startOf(u).Equal(startOf(newest)) && u.GetName() > newest.GetName() {
			newest = u
		}
	}

	return newest, newest != nil
}

// BackupStarted returns when a Backup began; zero if it has not.
func BackupStarted(backup *unstructured.Unstructured) time.Time { return startOf(backup) }

// DrillHeld returns the Restore that holds an object in quarantine, and why it is not the Restore's
// alone; "" if it is. ok is false if the object is not in quarantine, or if its mark has another
// key.
func (k Key) DrillHeld(u *unstructured.Unstructured) (restore, shared string, ok bool) {
	h, err := k.HoldOf(u)
	if err != nil || h == nil || !h.Quarantine || h.ByCommand || u.GetDeletionTimestamp() != nil || !xp.IsPaused(u) {
		return "", "", false
	}

	switch by := h.changedBy(u); {
	case h.TakenOver:
		return h.Restore, "it existed before the restore", true
	case by != "":
		return h.Restore, by + " has changed it since", true
	default:
		return h.Restore, "", true
	}
}

// ScheduleOf returns the schedule of a Backup; "" for none.
func ScheduleOf(backup *unstructured.Unstructured) string {
	return xp.Label(backup, "velero.io/schedule-name")
}

func startOf(u *unstructured.Unstructured) time.Time {
	at, _, _ := unstructured.NestedString(u.Object, "status", "startTimestamp")

	return parseTime(at)
}

// changedBy returns the first writer, besides this plugin and Velero, that has changed u since it
// was restored, as managedFields name it; "" if there is none. The entries of the backup are known
// by their times, since the clocks of two clusters differ. The status does not count: the
// controllers report there that u is paused.
func (h *Hold) changedBy(u *unstructured.Unstructured) string {
	known := unpackManagers(h.Fields)
	for _, m := range entriesOf(u) {
		manager, _ := m["manager"].(string)
		if s, _ := m["subresource"].(string); s != "" || manager == FieldManager || manager == managerVelero {
			continue
		}
		isKnown := func(k map[string]any) bool { return isSame(k, m) && k["time"] == m["time"] }
		written, _ := m["time"].(string)
		if known == nil && parseTime(written).Before(parseTime(h.Since)) || slices.ContainsFunc(known, isKnown) {
			continue
		}

		return manager
	}

	return ""
}
