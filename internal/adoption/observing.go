package adoption

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// settleTime is how long a provider must find an external resource before it may do more. A cloud
// answers from several replicas: after one has returned a resource another can return "not found",
// and a provider then creates a second one.
const settleTime = 5 * time.Second

const (
	waitObserved     = "its provider has not observed it yet"
	waitSettled      = "its provider has found its external resource, and looks for it once more"
	stepFound        = "its provider has found it; have it look once more"
	stepReportPaused = "its status is back; have its provider say once more that it is paused"
	stepUnfound      = "its provider does not find it any more; have it look once more"
)

// observingStep returns the next step of an MR that only observes; zero if its provider has found
// its external resource, and again after settleTime. If that was lost meanwhile, the time starts
// again. The transition time of the condition is no help: upjet's asynchronous kinds write it with
// each observe.
func (s *Snapshot) observingStep(u *unstructured.Unstructured, h *hold.Hold) managedStep {
	if xp.IsPaused(u) {
		return managedStep{
			Change: hold.Change{Target: u, Patch: s.key.ObservePatch(u, h), Step: "let its provider observe it"},
			why:    reason.AwaitingProvider.Messagef(waitObserved), moving: true,
		}
	}
	settled := xp.ParseTime(h.Settling).Add(settleTime)
	switch c, ok := reconciled(u); {
	case !ok:
		return managedStep{why: reason.AwaitingProvider.Messagef(waitObserved), moving: true}
	case c.Status != "True":
		e := managedStep{why: reason.ObservesFirst.Messagef("it only observes, and its provider can't find its external resource: %s. Correct that; if the external "+
			"resource is gone and the provider may create another, set its spec.managementPolicies to %s", c.Message, h.OwnPolicies())}
		if h.Settling != "" && !h.Lost {
			e.Change = s.lookAgain(u, h, true, stepUnfound)
		}

		return e
	case h.Settling != "" && s.now.Before(settled):
		return managedStep{why: reason.ObservesFirst.Messagef(waitSettled), moving: true, nextAt: settled}
	case h.Settling == "" || h.Lost:
		return managedStep{Change: s.lookAgain(u, h, false, stepFound), why: reason.ObservesFirst.Messagef(waitSettled), moving: true}
	default:
		return managedStep{}
	}
}

// lookAgain returns the Change that marks whether the provider has found the external resource. It
// gives the MR a new generation, which the provider reports after its next look: it writes the policy
// Observe twice, or once again, which mean the same. Of a provider that reports no generation nothing
// proves that look.
func (s *Snapshot) lookAgain(u *unstructured.Unstructured, h *hold.Hold, lost bool, step string) hold.Change {
	after := *h
	after.Settling, after.Lost = s.now.UTC().Format(time.RFC3339), lost
	change := s.rewriteMark(u, &after, step)
	if c, _ := xp.ConditionOf(u, xp.ConditionSynced); c.Generation != 0 {
		observe := []any{xp.PolicyObserve, xp.PolicyObserve}
		if policies, _ := xp.ManagementPolicies(u); len(policies) > 1 {
			observe = observe[:1]
		}
		change.Patch["spec"] = map[string]any{"managementPolicies": observe}
	}

	return change
}

// rewriteMark returns the Change that writes another mark. It makes the provider reconcile the MR
// once more: providers reconcile on a change of annotations (crossplane-runtime,
// resource.DesiredStateChanged).
func (s *Snapshot) rewriteMark(u *unstructured.Unstructured, after *hold.Hold, step string) hold.Change {
	return hold.Change{Target: u, Patch: s.key.MarkPatch(u, after), Step: step}
}
