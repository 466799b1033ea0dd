package restoreitem

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkSplitBrain looks for signs that another cluster manages what the Restore brings back, once
// in a process, which is a round of polls. If there are some and the setting split-brain says so,
// it returns a Plan that releases nothing. A quarantine releases nothing anyway. An error of the
// API server is worth a retry.
func (a *Adopt) checkSplitBrain(restore *velerov1.Restore) (adoption.Plan, error) {
	settings, err := a.settings(restore)
	if a.source == nil || err == nil && settings.Hold == setting.HoldAll {
		return adoption.Plan{}, nil
	}
	found, looked := a.source.found()
	if !looked {
		if found, err = a.source.cluster.Collisions(context.Background(), restore.Namespace, restore.Name); err != nil {
			return adoption.Plan{}, err
		}
		a.source.setFound(found)
		for _, m := range found {
			a.log.WithField("reason", m.Code).Warn(m)
		}
	}
	if len(found) == 0 || err != nil || !settings.RefuseSplitBrain {
		return adoption.Plan{}, nil
	}

	return adoption.Plan{Blocked: true, Waiting: []reason.Message{reason.SplitBrainRefused.Messagef("nothing is released, as the setting %s asks: when no other "+
		"cluster manages the same external resources, run: %s", setting.NameSplitBrain, xp.ReleaseOf(restore.Namespace+"/"+restore.Name))}}, nil
}

// remarkSplitBrain adds the signs that were found to the Plan of an object that is or was held.
func (a *Adopt) remarkSplitBrain(plan adoption.Plan) adoption.Plan {
	if a.source == nil || !plan.Quarantine.IsZero() || plan.Done && plan.Total == 0 {
		return plan
	}
	found, _ := a.source.found()
	plan.Remarks = append(plan.Remarks[:len(plan.Remarks):len(plan.Remarks)], found...)

	return plan
}

func (s *sourceCheck) found() (collisions []reason.Message, looked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.collisions, s.looked
}

func (s *sourceCheck) setFound(collisions []reason.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collisions, s.looked = collisions, true
}
