package restoreitem

import (
	"context"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkTimeout fails an operation that has waited longer than the setting allows. The hold stays.
// If the setting can't be read, or the Adopter can't give up, the description reports that, and the
// next poll tries again.
func (a *Adopt) checkTimeout(ref xp.Ref, restore *velerov1.Restore, plan adoption.Plan, progress *velero.OperationProgress) {
	settings, err := a.settings(restore)
	if err != nil {
		a.log.WithError(err).Warn("Not looking at the setting " + setting.NameTimeout)
		progress.Description += "; cannot tell whether the time of the setting " + setting.NameTimeout + " is over: " + err.Error()

		return
	}
	limit, began := settings.AdoptionTimeout, restoredAt(restore, plan)
	if limit == 0 || began.IsZero() || a.now().Sub(began) < limit {
		return
	}
	why := fmt.Sprintf("not adopted within %s, the setting %s of the restore %s/%s: %s", limit, setting.NameTimeout, restore.Namespace, restore.Name,
		describe(plan))
	key, err := a.cluster.MarkKey(context.Background(), restore.Namespace)
	if err == nil {
		err = a.adopter.GiveUp(context.Background(), key, ref, why)
	}
	if err != nil {
		a.log.WithField("operation", operationID(ref)).WithError(err).Warn("Trying again at the next poll to say that it is given up")
		progress.Description += "; trying again to say that the time is over: " + err.Error()

		return
	}
	progress.Completed = true
	progress.Err = fmt.Sprintf("%s is %s. What is held stays held, so nothing is lost; mend that, then run: %s", ref, why, xp.ReleaseCommand(ref))
}

// restoredAt returns when the time for an adoption starts: when the restore's last object was
// created, since Velero polls operations only after that. It is not before the restore began, since
// the object can be from an earlier one.
func restoredAt(restore *velerov1.Restore, plan adoption.Plan) time.Time {
	began := plan.RestoredAt
	if start := restore.Status.StartTimestamp; start != nil && start.After(began) {
		began = start.Time
	}

	return began
}
