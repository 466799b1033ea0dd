package live

import (
	"context"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
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
	a.atOnce(n, do)
}

// atOnce is inParallel also for a few calls, which change nothing.
func (a *Adopter) atOnce(n int, do func(n int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, a.writes)
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
func (a *Adopter) noteStep(change adoption.Change) {
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
	t.Change = adoption.Change{} // Release the memory: there may be thousands.
	o.putWritten(after)
}
