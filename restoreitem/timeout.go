package restoreitem

import (
	"context"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
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
		progress.Description += "; cannot find out whether the time of the setting " + setting.NameTimeout + " is over: " + reason.ErrorMessage(err).String()

		return
	}
	limit, began := settings.AdoptionTimeout, a.restoredAt(restore, plan)
	if limit == 0 || began.IsZero() || a.now().Sub(began) < limit {
		return
	}
	why := fmt.Sprintf("not adopted within %s, the setting %s of the Restore %s/%s: %s", limit, setting.NameTimeout, restore.Namespace, restore.Name,
		describe(plan))
	key, err := a.cluster.MarkKey(context.Background(), restore.Namespace)
	if err == nil {
		err = a.adopter.GiveUp(context.Background(), key, ref, why)
	}
	if err != nil {
		a.log.WithField("operation", operationID(ref)).WithError(err).Warn("Trying again at the next poll to write that the time is over")
		progress.Description += "; trying again to write that the time is over: " + reason.ErrorMessage(err).String()

		return
	}
	progress.Completed = true
	progress.Err = reason.RestoreStopped.Messagef("%s is %s. Its hold stays on, so nothing is lost. Correct that, then run: %s", ref, why,
		xp.ReleaseCommand(ref)).String()
}

// restoredAt returns when the time for an adoption starts: when the restore's last object was
// created, since Velero polls operations only after that. It is not before the restore began, since
// the object can be from an earlier one.
func (a *Adopt) restoredAt(restore *velerov1.Restore, plan adoption.Plan) time.Time {
	if start := a.startOf(restore); start.After(plan.RestoredAt) {
		return start
	}

	return plan.RestoredAt
}

// startOf returns when a restore began, by the API server's clock; zero if not known. Velero notes
// it by the clock of its Pod, which this process shares.
func (a *Adopt) startOf(restore *velerov1.Restore) time.Time {
	if restore.Status.StartTimestamp == nil {
		return time.Time{}
	}

	return a.cluster.ServerTime(restore.Status.StartTimestamp.Time)
}
