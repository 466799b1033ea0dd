package adopter

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// inParallel calls do n times, a.writes at a time, and returns when all calls have returned. It
// calls do in sequence if n is at most maxSequential.
func (a *Adopter) inParallel(n int, do func(n int)) {
	if n <= maxSequential {
		for i := range n {
			do(i)
		}

		return
	}
	inParallel(n, a.writes, do)
}

// inParallel calls do n times, at most limit at a time, and returns when all calls have returned.
func inParallel(n, limit int, do func(n int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, limit)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	wg.Wait()
}

// noteStep passes a step that was taken to the function of OnStep.
func (a *Adopter) noteStep(change hold.Change) {
	a.onStepMu.Lock()
	defer a.onStepMu.Unlock()
	a.onStep(change)
}

// step takes a step, and puts the new object into the Snapshot.
func (a *Adopter) step(ctx context.Context, o *observer, t *task) {
	target := xp.String(t.Target)
	defer func() {
		if cause := recover(); cause != nil {
			t.refusal = reason.PluginDefect.Errorf("cannot change %s, because of a defect of this plugin (%v); report this, with the object", target, cause)
		}
	}()
	log := a.log.WithFields(logrus.Fields{"kind": t.Target.GetKind(), "namespace": t.Target.GetNamespace(), "name": t.Target.GetName()})
	after, err := a.cluster.ApplyChange(ctx, t.Change)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// The object has changed since it was observed; replan plans again.
		log.WithError(err).Debug("Looking again")

		return
	}
	if err != nil {
		t.refusal = err

		return
	}
	t.taken = true
	log.WithField("step", t.Step).Info("Adoption step taken")
	a.takenSteps.Store(stepOf(t.Change), true)
	a.noteStep(t.Change)
	n, released := releaseNotice(after, "it is released: "+strings.Replace(t.Step, "give its own settings back", "its own settings are back", 1))
	switch {
	case !t.Warning.IsZero():
		log.WithFields(logrus.Fields{"step": t.Step, "reason": t.Warning.Code}).Warn("Another writer has interfered: " + t.Warning.String())
		t.notice = &adoption.Notice{Target: identityOf(after), Event: adoption.EventHeld, Message: t.Warning.String(), Warning: true}
	case released && t.reportsRelease:
		t.notice = &n
	}
	t.Change = hold.Change{} // Release the memory: there may be thousands.
	o.putWritten(after)
}

// A takenStep is a step that was taken on an object.
type takenStep struct {
	uid  types.UID
	step string
}

// stepRelease is the step that removes a hold, whatever the text of the step is.
const stepRelease = "lift"

func stepOf(change hold.Change) takenStep {
	s := takenStep{uid: change.Target.GetUID(), step: change.Step}
	if change.Lifts() {
		s.step = stepRelease
	}

	return s
}

// hasTaken reports whether this Adopter has taken a step on the object with the UID.
func (a *Adopter) hasTaken(uid types.UID, step string) bool {
	_, taken := a.takenSteps.Load(takenStep{uid: uid, step: step})

	return taken
}

// dropTaken returns the Plan without steps that were already taken. Another writer undoes them, and
// could do so as often as this plugin repeats them. A hold that is on again after its release fails
// the plan; any other step waits for the next poll.
func (p *poll) dropTaken(plan adoption.Plan) adoption.Plan {
	all := append(slices.Clone(plan.Also), plan.Change)
	plan.Also, plan.Change = nil, hold.Change{}
	for n, c := range all {
		if c.Patch == nil {
			continue
		}
		target, uid := xp.RefTo(c.Target), c.Target.GetUID()
		switch {
		case p.hasTaken(uid, stepRelease) && xp.HasAnnotation(c.Target, hold.Annotation):
			plan.Failed = reason.HoldAddedAgain.Messagef("%s: it was released, and another writer has put its hold on again. Find out who writes the annotation %s "+
				"(kubectl get --show-managed-fields), stop that writer, then run: %s", target, hold.Annotation, xp.ReleaseCommand(target))
		case p.hasTaken(uid, stepOf(c).step):
			plan.Waiting = append(slices.Clone(plan.Waiting), reason.ChangeUndone.Messagef("%s: another writer has undone a change (%s). Find out who writes it "+
				"(kubectl get --show-managed-fields), and stop that writer", target, c.Step))
			plan.Blocked = true
		case n < len(all)-1:
			plan.Also = append(plan.Also, c)
		default:
			plan.Change = c
		}
	}

	return plan
}

// logForged logs each mark in the Snapshot that this plugin did not write.
func (p *poll) logForged(o *observer) {
	for _, err := range o.snapshot.Forged() {
		if _, seen := p.loggedForged.LoadOrStore(err.Error(), true); !seen {
			p.log.WithError(err).WithField("reason", reason.MarkForged).Warn("The mark of a hold is ignored, because this plugin did not write it")
		}
	}
}
