package adoption

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// settleTime is for how long a provider must have found an external resource before it may do
// anything else about it. A cloud answers from several copies of what it knows, and one that has
// shown a resource can say a moment later that there is none, for which a provider makes another.
const settleTime = 5 * time.Second

// waitSettled is why an MR is held whose external resource was found.
const waitSettled = "its provider has found its external resource, and looks once more"

const (
	stepFound = "its provider has found it; have it look once more"
	stepSay   = "its status is back; have its provider say once more that it is paused"
	stepLost  = "its provider does not find it any more; have it look once more"
)

// observingStep plans for an MR that only observes until it was observed.
func observingStep(w *Snapshot, u *unstructured.Unstructured, h *Hold) managedStep {
	if xp.IsPaused(u) {
		return managedStep{
			Change: Change{Target: u, Patch: w.key.observePatch(u, h), Step: "let its provider observe it"},
			why:    "its provider has not observed it yet", moving: true,
		}
	}
	c, ok := reconciled(u)
	switch {
	case !ok:
		return managedStep{why: "its provider has not observed it yet", moving: true}
	case c.Status != "True":
		return w.unfoundStep(u, h, c)
	}
	if e := w.untilSettled(u, h); e.why != "" {
		return e
	}
	if h.ByHand {
		return managedStep{ready: true}
	}

	return managedStep{Change: w.key.lift(u, h, "its provider has observed it; give its own settings back"), why: waitLetGo, moving: true}
}

// unfoundStep plans for an MR whose provider does not find its external resource, and takes note of
// it if it has before.
func (s *Snapshot) unfoundStep(u *unstructured.Unstructured, h *Hold, c xp.Condition) managedStep {
	own := `["*"]`
	if len(h.Policies) > 0 {
		own = `["` + strings.Join(h.Policies, `","`) + `"]`
	}
	e := managedStep{
		why: fmt.Sprintf("it only observes until its provider has found its external resource, and its provider can't: %s; mend that. If the external "+
			"resource is gone and is to be made anew, set its spec.managementPolicies to %s", c.Message, own),
		cause: "its provider can't observe it",
	}
	if h.Settling != "" && !h.Lost {
		e.Change = s.lookAgain(u, h, true, stepLost)
	}

	return e
}

// untilSettled has the provider of an MR that has found its external resource look once more, and
// waits until it has found it for a while; nothing if it has. What was lost meanwhile must be back
// for as long before that begins again. When a condition has turned True says nothing of that:
// upjet's asynchronous kinds write that anew with each look.
func (s *Snapshot) untilSettled(u *unstructured.Unstructured, h *Hold) managedStep {
	settled := at(h.Settling).Add(settleTime)
	switch {
	case h.Settling != "" && s.now.Before(settled):
		return managedStep{why: waitSettled, moving: true, later: settled}
	case h.Settling == "" || h.Lost:
		return managedStep{Change: s.lookAgain(u, h, false, stepFound), why: waitSettled, moving: true}
	default:
		return managedStep{}
	}
}

// lookAgain is the change that takes note of what the provider of an MR has found.
func (s *Snapshot) lookAgain(u *unstructured.Unstructured, h *Hold, lost bool, step string) Change {
	after := *h
	after.Settling, after.Lost = s.now.UTC().Format(time.RFC3339), lost

	return s.rewriteMark(u, &after, step)
}

// rewriteMark is the change that writes another mark, by which the provider of an MR looks once
// more: providers look at what has another annotation than before (crossplane-runtime,
// resource.DesiredStateChanged).
func (s *Snapshot) rewriteMark(u *unstructured.Unstructured, after *Hold, step string) Change {
	mark, err := s.key.mark(xp.RefTo(u), after)
	if err != nil {
		return Change{}
	}

	return Change{Target: u, Patch: patch(u, map[string]any{AnnotationHold: mark}), Step: step}
}
