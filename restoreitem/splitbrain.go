package restoreitem

import (
	"context"
	"fmt"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// collisions returns the signs that another cluster manages what a Restore brings back. It looks
// once in a process: while items are restored, and in each round of polls.
func (a *Adopt) collisions(restore *velerov1.Restore) ([]reason.Message, error) {
	a.source.mu.Lock()
	defer a.source.mu.Unlock()
	if a.source.looked {
		return a.source.collisions, nil
	}
	found, err := a.source.cluster.Collisions(context.Background(), restore.Namespace, restore.Name)
	if err != nil {
		return nil, fmt.Errorf("cannot find out whether another cluster manages what the Restore %s brings back: %w", restore.Name, err)
	}
	for _, m := range found {
		a.log.WithField("reason", m.Code).Warn(m)
	}
	a.source.collisions, a.source.looked = found, true

	return found, nil
}

// itemSettings returns the settings for an item. If the Restore refuses a split brain and there is
// a sign of one, everything is held.
func (a *Adopt) itemSettings(restore *velerov1.Restore) (settings setting.Settings, refused bool, err error) {
	settings, err = a.settings(restore)
	if err != nil || a.source == nil || !settings.RefuseSplitBrain || settings.Hold == setting.HoldAll {
		return settings, false, err
	}
	found, err := a.collisions(restore)
	if err != nil || len(found) == 0 {
		return settings, false, err
	}
	settings.Hold = setting.HoldAll

	return settings, true, nil
}

// checkSplitBrain looks for signs of a split brain. If there are some and the Restore refuses it,
// the returned Plan has failed, and nothing is released. A quarantine releases nothing anyway. An
// error of the API server is worth a retry.
func (a *Adopt) checkSplitBrain(restore *velerov1.Restore) (adoption.Plan, error) {
	settings, unread := a.settings(restore)
	if a.source == nil || unread == nil && settings.Hold == setting.HoldAll {
		return adoption.Plan{}, nil
	}
	found, err := a.collisions(restore)
	if err != nil || len(found) == 0 || unread != nil || !settings.RefuseSplitBrain {
		return adoption.Plan{}, err
	}

	return adoption.Plan{Failed: refusal(restore)}, nil
}

func refusal(restore *velerov1.Restore) reason.Message {
	return reason.SplitBrainRefused.Messagef("nothing is released, as the setting %s asks: when no other cluster manages the same external resources, run: %s",
		setting.NameSplitBrain, xp.ReleaseOf(restore.Namespace+"/"+restore.Name))
}

// remarkSplitBrain adds the signs that were found to the Plan of an object that is or was held.
func (a *Adopt) remarkSplitBrain(plan adoption.Plan) adoption.Plan {
	if a.source == nil || !plan.Quarantine.IsZero() || plan.Done && plan.Total == 0 {
		return plan
	}
	a.source.mu.Lock()
	defer a.source.mu.Unlock()
	plan.Remarks = append(slices.Clip(plan.Remarks), a.source.collisions...)

	return plan
}
