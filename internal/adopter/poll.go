package adopter

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// parallelWrites is how many objects are written at a time. Crossplane reconciles a hundred XRs at
// once, and a busy API server shares its time by the number of parallel requests.
const parallelWrites = 32

// manyWrites is the number of writes above which a poll saves requests.
const manyWrites = parallelWrites

// maxSequential is up to how many writes run one after the other, which a user can follow.
const maxSequential = 5

// A poll is one call of an Adopter, with several passes: each observes and takes the possible
// steps.
type poll struct {
	*Adopter

	// moved is when anything last changed, and until is when the poll ends at the latest.
	began, moved, until time.Time
	// patience is how long the poll waits after the last change.
	patience time.Duration
	// listed is how long the latest lists took, observed how long the latest observation took
	// without requests, and planned how long planning took.
	listed, observed, planned time.Duration
	// last summarizes the latest plans, and steps is how many steps the latest pass took.
	last  string
	steps int
	plans map[xp.ID]adoption.Plan
	// initial is what each plan waited for in the first pass.
	initial map[xp.ID]string
	// requested is set if the poll has requested reconciles, answered if there was a change since.
	requested, answered bool
	// missedEvents is set if events were missed once.
	missedEvents bool
	// failed are the plans of objects that have lost something, which can look adopted later.
	failed map[xp.ID]adoption.Plan
	// held and released are the notices that are still to be written about held and released
	// objects.
	held, released []adoption.Notice
	// unfinished are the objects that were not adopted in a pass.
	unfinished map[xp.ID]bool
	// installed returns Crossplane's Deployment; its first call reads it.
	installed func() adoption.Installation
}

func (a *Adopter) newPoll(ctx context.Context) *poll {
	now := time.Now()

	return &poll{
		Adopter: a, began: now, moved: now, patience: a.firstWait,
		failed: map[xp.ID]adoption.Plan{}, unfinished: map[xp.ID]bool{},
		installed: installationOnce(ctx, a.cluster, func(err error) { a.log.WithError(err).Warn("Cannot find out which Crossplane runs") }),
	}
}

// pass plans for what refs name, and takes the steps that are possible now.
func (p *poll) pass(ctx context.Context, o *observer, refs []xp.Ref) {
	p.collectHeld(o, refs)
	p.logForged(o)
	p.plans, p.steps = p.takeSteps(ctx, o, refs)
	p.keepLosses()
	if p.steps == 0 {
		p.reportLate(ctx, p.reportBudget())
	}
	for id, plan := range p.plans {
		p.unfinished[id] = p.unfinished[id] || !plan.Done
	}
	now := summary(p.plans)
	if p.steps > 0 || p.last != "" && now != p.last {
		p.moved, p.patience, p.answered = time.Now(), p.Adopter.patience, true
	}
	p.last = now
	if p.initial == nil {
		p.until = time.Now().Add(p.pollTimeout(time.Since(p.began)))
		p.initial = map[xp.ID]string{}
		for id, plan := range p.plans {
			p.initial[id] = plan.Fingerprint()
		}
	}
}

// configure configures an observer for the poll.
func (p *poll) configure(o *observer) {
	o.watches, o.watchesAll = !p.relists, p.forUser
	p.investigate(o)
}

// maxPoll limits a poll, since Velero polls the operations of other restores after it.
const maxPoll = 5 * time.Minute

// pollTimeout returns the duration of a poll from that of its first observation, with which the
// next poll would begin too. With thousands of XRs and a busy API server this is enough to release
// the XRs that Crossplane has reconciled.
func (p *poll) pollTimeout(took time.Duration) time.Duration {
	return max(p.limit, min(pollFactor*took, maxPoll))
}

// pollFactor is the ratio of a poll's duration to that of its first observation.
const pollFactor = 4

// continues reports whether the poll continues; took is the duration of an observation.
func (p *poll) continues(took time.Duration) bool {
	if time.Now().After(p.until) {
		return false
	}
	moving := false
	for _, plan := range p.plans {
		moving = moving || plan.Moving
	}

	// Where an observation takes long, another one without a change is not worth it.
	return p.steps > 0 || !p.later().IsZero() || moving && time.Since(p.moved) < p.patience && (!p.relists || took <= p.patience)
}

// end writes all notices.
func (p *poll) end(ctx context.Context, o *observer) {
	arrived := o.snapshot.RestoredAt()
	for id, plan := range p.plans {
		plan.RestoredAt = arrived
		p.plans[id] = plan
	}
	temporary := p.temporary()
	p.reportLate(ctx, unlimited)
	for id, plan := range p.plans {
		p.plans[id] = withCauses(p.cluster, plan, o.snapshot, p.stuckAfter, p.installed)
	}
	p.explainRefused(ctx, o.snapshot)
	p.report(ctx, o, adoption.Changes(o.snapshot, p.plans, temporary))
	p.reportLost(ctx, o)
	p.reportLeftovers(ctx, o)
}

// temporary returns the objects whose plan has not failed and now waits for something else than
// when the poll began, or is in progress. No user needs a notice of a temporary state.
func (p *poll) temporary() map[xp.ID]bool {
	temporary := map[xp.ID]bool{}
	for id, plan := range p.plans {
		temporary[id] = plan.Failed.IsZero() && (plan.Fingerprint() != p.initial[id] || p.isInProgress(plan))
	}

	return temporary
}

// isInProgress reports whether a Plan waits only for reconciles that Crossplane was allowed
// recently. Each notice on an object would cause one more reconcile, and there may be a thousand.
func (p *poll) isInProgress(plan adoption.Plan) bool {
	isLong := func(s adoption.PendingReconcile) bool {
		return !s.Begun || p.cluster.ServerNow().Sub(s.Since) >= p.stuckAfter
	}

	return len(plan.Pending) > 0 && len(plan.Pending) >= len(plan.Waiting) && !slices.ContainsFunc(plan.Pending, isLong)
}

// summary returns the same string for two passes between which nothing changed.
func summary(plans map[xp.ID]adoption.Plan) string {
	adopted, waiting := 0, 0
	for _, p := range plans {
		adopted += p.Adopted
		waiting += len(p.Waiting)
	}

	return fmt.Sprint(len(plans), adopted, waiting)
}

// A task is one step of the Plan for the object that ref names.
type task struct {
	hold.Change

	ref xp.Ref
	// reportsRelease is set if the release of the target gets a notice, and notice is the notice to
	// write.
	reportsRelease bool
	notice         *adoption.Notice
	// taken is set if the step was taken. If not, refusal is the error, or nil if the target has
	// changed since.
	taken   bool
	refusal error
}

// plan sets the task's change. It keeps only the identity of the target: there may be thousands.
func (t *task) plan(change hold.Change) {
	t.reportsRelease = reportsRelease(change.Target)
	change.Configuration, _ = change.Applied()
	change.Target = identityOf(change.Target)
	t.Change = change
}

// attempts is how often a pass plans a step whose target changes, as during Crossplane's reconcile.
const attempts = 3

// takeSteps plans for what refs name, and takes at most one step per target. All plans are made
// from what was observed before anything is changed.
func (p *poll) takeSteps(ctx context.Context, o *observer, refs []xp.Ref) (plans map[xp.ID]adoption.Plan, taken int) {
	began := time.Now()
	plans, tasks := p.plan(o.snapshot, refs)
	p.planned = time.Since(began)
	if len(tasks) > manyWrites && !p.relists {
		// The API server ends a watch at once that starts with the events of thousands of writes.
		o.followAll(ctx, o.unfollowed(o.isAlwaysFollowed))
	}
	for due, n := tasks, 0; len(due) > 0 && n < attempts; n++ {
		p.inParallel(len(due), func(n int) { p.step(ctx, o, due[n]) })
		due = p.replan(ctx, o, due)
	}
	for _, t := range tasks {
		if t.refusal == nil {
			taken++
			if t.notice != nil {
				p.released = append(p.released, *t.notice)
			}

			continue
		}
		// An admission policy can refuse one object for ever. The others go on.
		plan := plans[t.ref.ID()]
		plan.Waiting = append(plan.Waiting, reason.Message{Code: cmp.Or(reason.CodeOf(t.refusal), reason.ChangeRefused), Text: t.refusal.Error()})
		plan.Blocked = true
		plans[t.ref.ID()] = plan
	}

	return plans, taken
}

// unlimited is more than any number of notices.
const unlimited = math.MaxInt

// plan plans for what refs name, and returns the tasks to do now. An adopted XR is not planned for
// again in the same poll, and neither is one for which nothing has changed: thousands get many
// passes.
func (p *poll) plan(w *adoption.Snapshot, refs []xp.Ref) (plans map[xp.ID]adoption.Plan, tasks []*task) {
	plans = make(map[xp.ID]adoption.Plan, len(refs))
	changed := map[xp.ID]bool{}
	for _, r := range refs {
		id := r.ID()
		if _, seen := plans[id]; seen {
			continue
		}
		last, planned := p.plans[id]
		if last.Done || planned && last.Patch == nil && len(last.Also) == 0 && !p.isLate(last.NextAt) && w.IsPlanCurrent(r) {
			plans[id] = last

			continue
		}
		plan := p.dropTaken(adoption.Next(w, r))
		for _, change := range append(plan.Also, plan.Change) {
			// A claim and its XR have the same plan.
			if change.Patch == nil || changed[xp.RefTo(change.Target).ID()] {
				continue
			}
			changed[xp.RefTo(change.Target).ID()] = true
			t := &task{ref: r}
			t.plan(change)
			tasks = append(tasks, t)
		}
		if plan.Patch != nil || len(plan.Also) > 0 {
			plan.Change, plan.Also = hold.Change{Patch: map[string]any{}, Step: plan.Step}, nil // The tasks have the changes.
		}
		plans[id] = plan
	}

	return plans, tasks
}

// reportBudget returns how many notices may be written now: none while many XRs are in progress,
// manyWrites while some are, and all when none is or nothing has changed for a while.
func (p *poll) reportBudget() int {
	if time.Now().After(p.until) || time.Since(p.moved) > p.Adopter.patience {
		return unlimited
	}
	busy := sets.New[types.UID]() // A claim waits for the same reconcile as its XR.
	for _, plan := range p.plans {
		if p.isInProgress(plan) {
			busy.Insert(plan.Pending[0].UID)
		}
	}
	switch n := busy.Len(); {
	case n > manyWrites:
		return 0
	case n > 0:
		return manyWrites
	default:
		return unlimited
	}
}

// replan returns the tasks that were not done, planned for the current targets.
func (p *poll) replan(ctx context.Context, o *observer, tasks []*task) []*task {
	var late []*task
	for _, t := range tasks {
		if !t.taken && t.refusal == nil {
			late = append(late, t)
		}
	}
	now := make([]*unstructured.Unstructured, len(late))
	inParallel(len(late), p.writes, func(n int) { // Each can take seconds, until a busy API server's cache is fresh.
		now[n], _ = p.cluster.Now(ctx, xp.RefTo(late[n].Target)) // nil on an error: the next observation finds out.
	})
	var replanned []*task
	for n, t := range late {
		if now[n] == nil {
			continue
		}
		o.putWritten(now[n])
		plan := adoption.Next(o.snapshot, t.ref)
		for _, change := range append(plan.Also, plan.Change) {
			if change.Patch != nil && xp.RefTo(change.Target) == xp.RefTo(t.Target) {
				t.plan(change)
				replanned = append(replanned, t)
			}
		}
	}

	return replanned
}
