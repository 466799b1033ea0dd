package diagnosis

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// patience is how long an object may stay unreconciled after it was changed.
const patience = time.Minute

// checkConditions finds what Crossplane or a provider has not reconciled, or can't.
func (d *diagnosis) checkConditions() {
	for _, u := range sorted(slices.Concat(d.claims, d.composites, d.managed)) {
		if isHeld(u) || xp.IsPaused(u) || u.GetDeletionTimestamp() != nil {
			continue
		}
		r := xp.RefTo(u)
		synced, told := xp.ConditionOf(u, xp.ConditionSynced)
		ready, judged := xp.ConditionOf(u, xp.ConditionReady)
		since := lastChange(u)
		switch age := d.Now.Sub(since); {
		case age < patience:
		case !told:
			d.add(report.Stuck, report.Grave, r, fmt.Sprintf("nothing has reconciled it since it was changed %s ago", age.Round(time.Second)), d.cure(u))
		case synced.Generation != 0 && synced.Generation != u.GetGeneration():
			d.add(report.Stuck, report.Grave, r, fmt.Sprintf("it was changed %s ago, and reconciled only as it was before", age.Round(time.Second)), d.cure(u))
		}
		if told && synced.Status != "True" {
			d.add(report.NotSynced, report.Warning, r, "it can't be reconciled: "+synced.Message, "mend that; its events tell more: kubectl describe")
		}
		if judged && synced.Status == "True" && ready.Status != "True" {
			d.add(report.NotReady, report.Warning, r, "it is not Ready: "+orElse(ready.Message, orElse(ready.Reason, "nothing says why")),
				"wait, or see what it composes, or its provider's log")
		}
	}
}

// cure says what to do about an object that nothing reconciles.
func (d *diagnosis) cure(u *unstructured.Unstructured) string {
	if xp.IsManaged(u) && !xp.IsComposite(u) {
		return "see whether its provider runs and is Healthy: kubectl get providers"
	}

	return adoption.Stuck(u, d.Installation)
}

// lastChange is when somebody wrote anything but the status of an object, as far as that is known.
func lastChange(u *unstructured.Unstructured) time.Time {
	last := u.GetCreationTimestamp().Time
	for _, f := range u.GetManagedFields() {
		if f.Subresource == "" && f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}

	return last
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}

	return s
}
