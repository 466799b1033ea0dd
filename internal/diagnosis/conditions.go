package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// patience is how long an object may stay unreconciled after it was changed. A provider that has
// thousands to reconcile needs longer than Crossplane.
const (
	patience         = time.Minute
	patienceProvider = 5 * time.Minute
)

// checkConditions finds what Crossplane or a provider has not reconciled, or can't.
func (d *diagnosis) checkConditions() {
	for _, u := range fullObjects(sorted(slices.Concat(d.claims, d.composites, d.managed))) {
		if isHeld(u) || isPausedByPerson(u) || u.GetDeletionTimestamp() != nil {
			continue
		}
		r := xp.RefTo(u)
		if why, severity := d.whyStuck(u); why != "" {
			d.add(report.Stuck, severity, r, why, d.nextStep(u))

			continue // What it said before is not about what it is now.
		}
		synced, told := xp.ConditionOf(u, xp.ConditionSynced)
		ready, judged := xp.ConditionOf(u, xp.ConditionReady)
		if told && synced.Status != "True" && synced.Reason != xp.ReasonReconcilePaused {
			d.add(report.NotSynced, report.Warning, r, "it can't be reconciled: "+cmp.Or(synced.Message, synced.Reason, "nothing says why"), unsynced(u, synced))
		}
		if judged && synced.Status == "True" && ready.Status != "True" {
			d.add(report.NotReady, report.Warning, r, "it is not Ready: "+cmp.Or(ready.Message, ready.Reason, "nothing says why"),
				"wait, or see what it composes, or its provider's log")
		}
	}
}

// unsynced says what to do about what Crossplane or a provider can't reconcile. What was restored
// without this plugin has another UID than what it has published with a secret store
// (crossplane-runtime v1 pkg/connection, errFmtNotOwnedBy).
func unsynced(u *unstructured.Unstructured, c xp.Condition) string {
	if name, _, ok := xp.StoreSecret(u); ok && strings.Contains(c.Message, "existing secret is not owned by UID") {
		return fmt.Sprintf("if the Secret %s in which it publishes is its own, as after a restore without this plugin, set the label %s of that to %s", name,
			xp.LabelOwnerUID, u.GetUID())
	}

	return "mend that; its events tell more: kubectl describe"
}

// isPausedByPerson reports whether a person has had Crossplane or the provider leave an object
// alone: one whose managementPolicies are empty is as good as paused (crossplane-runtime
// pkg/reconciler/managed/policies.go).
func isPausedByPerson(u *unstructured.Unstructured) bool {
	policies, ok := xp.ManagementPolicies(u)

	return xp.IsPaused(u) || ok && len(policies) == 0 && isOnlyManaged(u)
}

func isOnlyManaged(u *unstructured.Unstructured) bool {
	return xp.IsManaged(u) && !xp.IsComposite(u) && !xp.IsClaim(u)
}

// whyStuck says why nothing seems to reconcile an object, "" if something does, or may yet.
func (d *diagnosis) whyStuck(u *unstructured.Unstructured) (why string, severity report.Severity) {
	synced, told := xp.ConditionOf(u, xp.ConditionSynced)
	age := d.Now.Sub(lastChange(u))
	ago := age.Round(time.Second)
	switch {
	case age < patience:
		return "", ""
	case !told:
		why = fmt.Sprintf("nothing has reconciled it since it was changed %s ago", ago)
	case synced.Reason == xp.ReasonReconcilePaused:
		why = fmt.Sprintf("it was changed %s ago, and still says that it is paused, which it is not", ago)
	case synced.Generation != 0 && synced.Generation != u.GetGeneration():
		why = fmt.Sprintf("it was changed %s ago, and reconciled only as it was before", ago)
	default:
		return "", ""
	}
	if isOnlyManaged(u) && age < patienceProvider {
		return why, report.Warning
	}

	return why, report.Grave
}

// nextStep says what to do about an object that nothing reconciles.
func (d *diagnosis) nextStep(u *unstructured.Unstructured) string {
	switch {
	case isOnlyManaged(u):
		if name := d.inactive(u.GroupVersionKind().GroupKind()); name != "" {
			return "its ManagedResourceDefinition " + name + " is not active, so its provider does nothing about it, or does not run and says " +
				xp.ReasonAwaitingActivation + "; " + xp.HowToActivate(name)
		}

		return "see whether its provider runs and is Healthy: kubectl get providers"
	case d.Installation == nil:
		return "see whether Crossplane runs: kubectl get deployments -A -l " + adoption.LabelCrossplane
	default:
		return adoption.Stuck(u, *d.Installation)
	}
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
