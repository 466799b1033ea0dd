package xp

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// neverRestored are the kinds, with their resources, that Velero restores in no restore (velero
// pkg/controller/restore_controller.go, nonRestorableResources).
var neverRestored = map[schema.GroupKind]string{ //nolint:gochecknoglobals // It is a constant list.
	{Kind: "Node"}:                                      "nodes",
	{Kind: "Event"}:                                     "events",
	{Group: "events.k8s.io", Kind: "Event"}:             "events.events.k8s.io",
	{Group: "storage.k8s.io", Kind: "CSINode"}:          "csinodes.storage.k8s.io",
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}: "volumeattachments.storage.k8s.io",
	{Group: "velero.io", Kind: "Backup"}:                "backups.velero.io",
	{Group: "velero.io", Kind: "Restore"}:               "restores.velero.io",
	{Group: "velero.io", Kind: "ResticRepository"}:      "resticrepositories.velero.io",
	{Group: "velero.io", Kind: "BackupRepository"}:      "backuprepositories.velero.io",
}

var (
	kindPod = schema.GroupKind{Kind: "Pod"}
	kindJob = schema.GroupKind{Group: "batch", Kind: "Job"}
)

// IsNeverRestored reports whether Velero restores no object of a kind.
func IsNeverRestored(gk schema.GroupKind) bool { return neverRestored[gk] != "" }

// NeverRestoredResources returns the resources of these kinds, which Velero adds to the excluded
// ones of each Restore.
func NeverRestoredResources() []string { return slices.Sorted(maps.Values(neverRestored)) }

// MadeAgain is what happens to a composed object that Velero does not restore, and the next step.
const MadeAgain = "Velero does not restore. A restore does not wait for it, and Crossplane makes it again, so that a Job runs once more. If it must not, " +
	"take it out of the Composition before the restore"

// MayStayOut reports whether Velero does not restore some or all objects of a kind. Crossplane then
// makes a composed one again, under another name unless the Composition fixes that.
func MayStayOut(gk schema.GroupKind) bool {
	return IsNeverRestored(gk) || gk == kindPod || gk == kindJob
}

// WhyUnrestored returns NeverRestored or CompletedAtBackup if Velero restores an object of a backup
// in no restore, else "". text returns a field of the object (velero pkg/restore/restore.go,
// isCompleted).
func WhyUnrestored(gk schema.GroupKind, text func(path ...string) string) reason.Code {
	switch {
	case IsNeverRestored(gk):
		return reason.NeverRestored
	case gk == kindPod && (text("status", "phase") == "Succeeded" || text("status", "phase") == "Failed"), gk == kindJob && text("status", "completionTime") != "":
		return reason.CompletedAtBackup
	default:
		return ""
	}
}

// Unrestored is WhyUnrestored for an object in memory.
func Unrestored(u *unstructured.Unstructured) reason.Code {
	return WhyUnrestored(u.GroupVersionKind().GroupKind(), func(path ...string) string { return Get[string](u.Object, path...) })
}

// RunsAgain reports whether u is a Job that had started and not completed. A restore brings it back
// without its status, so that it starts again. A suspended Job has no startTime.
func RunsAgain(u *unstructured.Unstructured) bool {
	status := Get[map[string]any](u.Object, "status")

	return u.GroupVersionKind().GroupKind() == kindJob && Get[string](status, "startTime") != "" && Get[string](status, "completionTime") == ""
}

// KeepProgress copies to a trimmed copy of u what Unrestored and RunsAgain read.
func KeepProgress(trimmed, u *unstructured.Unstructured) {
	if gk := u.GroupVersionKind().GroupKind(); gk != kindPod && gk != kindJob {
		return
	}
	for _, field := range []string{"phase", "startTime", "completionTime"} {
		if s := Get[string](u.Object, "status", field); s != "" {
			_ = unstructured.SetNestedField(trimmed.Object, s, "status", field) // The status of the copy is a map, or missing.
		}
	}
}
