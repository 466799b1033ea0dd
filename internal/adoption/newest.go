package adoption

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// NewestBackup returns the newest Backup of a schedule that is Completed, which is the one that
// Velero restores with --from-schedule (velero pkg/controller/restore_controller.go,
// mostRecentCompletedBackup). ok is false if there is none.
func NewestBackup(backups []*unstructured.Unstructured, label string) (newest *unstructured.Unstructured, ok bool) {
	for _, u := range backups {
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		if ScheduleOf(u) != label || phase != "Completed" || xp.Label(u, LabelReceipt) != "" {
			continue
		}
		if newest == nil || startOf(u).After(startOf(newest)) || startOf(u).Equal(startOf(newest)) && u.GetName() > newest.GetName() {
			newest = u
		}
	}

	return newest, newest != nil
}
