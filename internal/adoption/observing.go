package adoption

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// settleTime is how long a provider must find an external resource before it may do more. A cloud
// answers from several replicas: after one has returned a resource another can return "not found",
// and a provider then creates a second one.
const settleTime = 5 * time.Second

// Why an MR waits that only observes.
const (
	waitObserved = "its provider has not observed it yet"
	waitSettled  = "its provider has found its external resource, and looks for it once more"
)

const (
	stepFound        = "its provider has found it; have it look once more"
	stepReportPaused = "its status is back; have its provider say once more that it is paused"
	stepUnfound      = "its provider does not find it any more; have it look once more"
)

// observingStep returns the next step of an MR that only observes.
func observingStep(s *Snapshot, u *unstructured.Unstructured, h *Hold) managedStep {
	if xp.IsPaused(u) {
		return managedStep{
			Change: Change{Target: u, Patch: s.key.observePatch(u, h), Step: "let its provider observe it"},
			why:    reason.AwaitingProvider.Messagef(waitObserved), moving: true,
		}
	}
	c, ok := reconciled(u)
	switch {
	case !ok:
		return managedStep{why: reason.AwaitingProvider.Messagef(waitObserved), moving: true}
	case c.Status != "True":
		return s.unfoundStep(u, h, c)
	}
	if e := s.untilSettled(u, h); !e.why.IsZero() {
		return e
	}
	if h.ByHand {
		return managedStep{ready: true}
	}

	return managedStep{Change: s.key.lift(u, h, "its provider has observed it; give its own settings "+
		"back"), why: reason.Releasing.Messagef(waitReleased), moving: true}
}

// unfoundStep returns the step of an MR whose provider does not find its external resource. It
// marks that if the provider found it before.
func (s *Snapshot) unfoundStep(u *unstructured.Unstructured, h *Hold, c xp.Condition) managedStep {
	own := `["*"]`
	if len(h.Policies) > 0 {
		own = `["` + strings.Join(h.Policies, `","`) + `"]`
	}
	e := managedStep{why: reason.ObservesFirst.Messagef("it only observes, and its provider can't find its external resource: %s. Correct that; if the external "+
		"resource is gone and the provider may create another, set its spec.managementPolicies to %s", c.Message, own)}
	if h.Settling != "" && !h.Lost {
		e.Change = s.lookAgain(u, h, true, stepUnfound)
	}

	return e
}

// untilSettled returns the step of an MR whose provider has found its external resource: it must
// find it again after settleTime. If it was lost meanwhile, that time starts again. The zero value
// means settled. The transition time of a condition is no help: upjet's asynchronous kinds write it
// with each observe.
func (s *Snapshot) untilSettled(u *unstructured.Unstructured, h *Hold) managedStep {
	settled := parseTime(h.Settling).Add(settleTime)
	switch {
	case h.Settling != "" && s.now.Before(settled):
		return managedStep{why: reason.ObservesFirst.Messagef(waitSettled), moving: true, nextAt: settled}
	case h.Settling == "" || h.Lost:
		return managedStep{Change: s.lookAgain(u, h, false, stepFound), why: reason.ObservesFirst.Messagef(waitSettled), moving: true}
	default:
		return managedStep{}
	}
}

// lookAgain returns the Change that marks whether the provider has found the external resource.
func (s *Snapshot) lookAgain(u *unstructured.Unstructured, h *Hold, lost bool, step string) Change {
	after := *h
	after.Settling, after.Lost = s.now.UTC().Format(time.RFC3339), lost

	return s.rewriteMark(u, &after, step)
}

// rewriteMark returns the Change that writes another mark. It makes the provider reconcile the MR
// once more: providers reconcile on a change of annotations (crossplane-runtime,
// resource.DesiredStateChanged).
func (s *Snapshot) rewriteMark(u *unstructured.Unstructured, after *Hold, step string) Change {
	return Change{Target: u, Patch: patch(u, map[string]any{AnnotationHold: s.key.mark(xp.RefTo(u), after)}), Step: step}
}
