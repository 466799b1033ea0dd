package diagnosis

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// stuckAfter is how long an object may stay unreconciled after a change. A provider with thousands
// of MRs needs longer than Crossplane.
const (
	stuckAfter         = time.Minute
	stuckAfterProvider = 5 * time.Minute
)

// checkConditions finds objects that Crossplane or a provider has not reconciled, or cannot.
func (d *diagnosis) checkConditions() {
	for _, u := range fullObjects(d.with(isClaim | isComposite | isManaged | isNew)) {
		if isHeld(u) || xp.IsIdle(u) || u.GetDeletionTimestamp() != nil {
			continue
		}
		r := xp.RefTo(u)
		if why, severity := d.whyStuck(u); why != "" {
			d.add(reason.Stuck, severity, r, why, d.nextStep(u))

			continue // Its conditions are from before the last change.
		}
		synced, hasSynced := xp.ConditionOf(u, xp.ConditionSynced)
		ready, hasReady := xp.ConditionOf(u, xp.ConditionReady)
		if hasSynced && synced.Status != "True" && synced.Reason != xp.ReasonReconcilePaused {
			d.add(reason.NotSynced, report.Warning, r, "it can't be reconciled: "+cmp.Or(synced.Message, synced.Reason, noReason),
				"correct that; its Events have more: kubectl describe")
		}
		if hasReady && synced.Status == "True" && ready.Status != "True" {
			d.add(reason.NotReady, report.Warning, r, "it is not Ready: "+cmp.Or(ready.Message, ready.Reason, noReason),
				"wait, or check what it composes, or its provider's log")
		}
	}
}

// noReason is in place of the message of a condition that has none.
const noReason = "its condition has no reason"

// whyStuck returns why no controller seems to reconcile an object; "" if one does, or still may.
func (d *diagnosis) whyStuck(u *unstructured.Unstructured) (why string, severity report.Severity) {
	synced, hasSynced := xp.ConditionOf(u, xp.ConditionSynced)
	age := d.Now.Sub(lastChange(u))
	ago := age.Round(time.Second)
	switch {
	case age < stuckAfter:
		return "", ""
	case !hasSynced:
		why = fmt.Sprintf("nothing has reconciled it since it was changed %s ago", ago)
	case synced.Reason == xp.ReasonReconcilePaused:
		why = fmt.Sprintf("it was changed %s ago and is not paused, and its condition still has the reason ReconcilePaused", ago)
	case synced.Generation != 0 && synced.Generation != u.GetGeneration():
		why = fmt.Sprintf("it was changed %s ago, and nothing has reconciled the change", ago)
	default:
		return "", ""
	}
	if xp.IsManaged(u) && age < stuckAfterProvider {
		return why, report.Warning
	}

	return why, report.Error
}

// nextStep returns what to do about an object that no controller reconciles.
func (d *diagnosis) nextStep(u *unstructured.Unstructured) string {
	switch {
	case xp.IsManaged(u):
		if name := d.inactive(u.GroupVersionKind().GroupKind()); name != "" {
			return "its ManagedResourceDefinition " + name + " is not active, so its provider ignores it, or does not run (" +
				xp.ReasonAwaitingActivation + "); " + xp.HowToActivate(name)
		}

		return "check whether its provider runs and is Healthy: kubectl get providers"
	case d.Installation == nil:
		return "check whether Crossplane runs: kubectl get deployments -A -l " + adoption.LabelCrossplane
	default:
		return adoption.Stuck(u, *d.Installation).String()
	}
}

// lastChange returns the time of the last write outside the status, as far as managedFields record
// it.
func lastChange(u *unstructured.Unstructured) time.Time {
	last := u.GetCreationTimestamp().Time
	for _, f := range u.GetManagedFields() {
		if f.Subresource == "" && f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}

	return last
}
