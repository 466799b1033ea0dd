package live

import (
	"context"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// parallelWrites is how many objects are written at a time. Crossplane reconciles a hundred XRs at
// once, and of an API server that has much to do everybody gets as much as they ask for at a time.
const parallelWrites = 32

// manyWrites is how many are many.
const manyWrites = parallelWrites

// maxSequential is how many are written one after the other if there are no more, so that whoever
// looks on can follow.
const maxSequential = 5

// A poll is one call of an Adopter: looks at the cluster, each followed by the steps that can be
// taken then.
type poll struct {
	*Adopter

	// moved is when anything has moved last, and until is when it ends at the latest.
	began, moved, until time.Time
	// patience is for how long it looks on after the last that has moved.
	patience time.Duration
	// observed is how long the latest look took at what was known, and thought how long the plans
	// took to make.
	observed, planned time.Duration
	// last sums up the latest plans, and steps is how many were taken in the latest pass.
	last  string
	steps int
	plans map[xp.ID]adoption.Plan
	// first says what each waited for at the first look.
	first map[xp.ID]string
	// requested says that Crossplane was asked to look at something, and heard that something has
	// moved since it was asked last.
	requested, answered bool
	// lost says that once it was not told what happens.
	lost bool
	// failed are the plans of what has lost something: when nothing of a hold is left on it, it
	// looks adopted.
	failed map[xp.ID]adoption.Plan
	// held and free are what is still to be told of what has arrived and of what was released.
	held, free []adoption.Notice
	left       *leftovers
	// installed finds Crossplane when it is called first.
	installed func() adoption.Installation
}

func (a *Adopter) newPoll(ctx context.Context) *poll {
	now := time.Now()

	return &poll{
		Adopter: a, began: now, moved: now, patience: a.firstLook, failed: map[xp.ID]adoption.Plan{}, left: leftoversIn(a.cluster), installed: a.lookOnce(ctx),
	}
}

// pass plans for what refs name and takes the steps that can be taken now.
func (p *poll) pass(ctx context.Context, o *observer, refs []xp.Ref) {
	p.noteHeld(o, refs)
	p.nameForged(o)
	p.plans, p.steps = p.take(ctx, o, refs)
	p.keepLosses()
	if p.steps == 0 {
		p.reportLate(ctx, p.reportBudget())
	}
	p.left.see(o.snapshot, p.plans)
	now := summary(p.plans)
	if p.steps > 0 || p.last != "" && now != p.last {
		p.moved, p.patience, p.answered = time.Now(), p.Adopter.patience, true
	}
	p.last = now
	if p.first == nil {
		p.until = time.Now().Add(p.pollTimeout(time.Since(p.began)))
		p.first = map[xp.ID]string{}
		for id, plan := range p.plans {
			p.first[id] = plan.Fingerprint()
		}
	}
}

// fewRetries tells an observer how to look: not at what nothing can come of while no Crossplane
// runs, unless somebody wants to be told all.
func (p *poll) skipComposed(o *observer) {
	o.watches = !p.relists
	p.investigate(o)
	if !p.reportsAll {
		o.snapshot.SkipComposed(func() bool { return p.installed().IsGone() })
	}
}

// longestPoll is for how long a poll goes on at most. Velero asks for the operations of other
// restores after it.
const longestPoll = 5 * time.Minute

// pollTimeout returns for how long a poll goes on whose first look took as long as given: the next
// would begin with the same. Of thousands, on an API server that has much to do, that is more than
// it takes to release those of which there is word.
func (p *poll) pollTimeout(look time.Duration) time.Duration {
	return max(p.limit, min(pollFactor*look, longestPoll))
}

// pollFactor is how many times as long as its first look a poll goes on.
const pollFactor = 4

// continues reports whether there is anything more to see in this poll, if a look takes as long as
// given.
func (p *poll) continues(look time.Duration) bool {
	if time.Now().After(p.until) {
		return false
	}
	moving := false
	for _, plan := range p.plans {
		moving = moving || plan.Moving
	}

	// Where a look takes long it is not worth another one to see nothing move.
	return p.steps > 0 || !p.later().IsZero() || moving && time.Since(p.moved) <= p.patience && (!p.relists || look <= p.patience)
}

// end tells what has become of all.
func (p *poll) end(ctx context.Context, o *observer) {
	arrived := o.snapshot.RestoredAt()
	for id, plan := range p.plans {
		plan.RestoredAt = arrived
		p.plans[id] = plan
	}
	passing := p.passing()
	p.reportLate(ctx, unlimited)
	p.explainSilence(o.snapshot)
	p.report(ctx, o, adoption.Changes(o.snapshot, p.plans, passing))
	p.reportLost(ctx, o)
	p.left.report(ctx, p.Adopter, o, p.plans)
}

// passing returns what did not wait for the same when the poll began, or is under way, and has not
// failed: nobody has to be told of what passes by itself.
func (p *poll) passing() map[xp.ID]bool {
	passing := map[xp.ID]bool{}
	for id, plan := range p.plans {
		passing[id] = plan.Failed == "" && (plan.Fingerprint() != p.first[id] || p.isUnderWay(plan))
	}

	return passing
}

// isUnderWay reports whether a Plan waits for nothing but that Crossplane reconciles what it was
// let reconcile not long ago. It may have a thousand others to reconcile, and would do it once more
// for each that is told on it.
func (p *poll) isUnderWay(plan adoption.Plan) bool {
	if len(plan.Pending) == 0 || len(plan.Pending) < len(plan.Waiting) {
		return false
	}
	for _, s := range plan.Pending {
		if !s.Begun || time.Since(s.Since) >= p.stuckAfter {
			return false
		}
	}

	return true
}

// summary is the same for two passes between which nothing moved.
func summary(plans map[xp.ID]adoption.Plan) string {
	adopted, waiting := 0, 0
	for _, p := range plans {
		adopted += p.Adopted
		waiting += len(p.Waiting)
	}

	return fmt.Sprint(len(plans), adopted, waiting)
}

// A task is a step of the Plan for what ref names.
type task struct {
	adoption.Change

	ref xp.Ref
	// toldFree says that it is told if the step takes the hold off the target, and news what is to
	// be told.
	toldFree bool
	news     *adoption.Notice
	// taken says that the step was taken. If it was not, the target was another than the one that
	// was planned for; refusal is any other reason.
	taken   bool
	refusal error
}

// plan has the task be a change. Of the target it keeps only who that is: there may be thousands.
func (t *task) plan(change adoption.Change) {
	t.toldFree = reportsRelease(change.Target)
	change.Configuration, _ = change.Applied()
	change.Target = identityOf(change.Target)
	t.Change = change
}

// carriedOut says in a Plan that it had changes, which nobody needs any more.
func carriedOut() map[string]any { return map[string]any{} }

// attempts is how often a step is planned anew at once whose target has changed meanwhile, as one
// does that Crossplane is at work on.
const attempts = 3

// take plans for what refs name, and takes one step for each that has one to take. All is planned
// for what was seen, before anything is changed.
func (p *poll) take(ctx context.Context, o *observer, refs []xp.Ref) (plans map[xp.ID]adoption.Plan, taken int) {
	began := time.Now()
	plans, tasks := p.plan(o.snapshot, refs)
	p.planned = time.Since(began)
	if len(tasks) > manyWrites && !p.relists {
		// Of a watch that begins with the news of thousands of writes the API server makes an end
		// at once.
		o.followAll(ctx, o.unfollowed(o.isAlwaysFollowed))
	}
	for due, n := tasks, 0; len(due) > 0 && n < attempts; n++ {
		p.inParallel(len(due), func(n int) { p.step(ctx, o, due[n]) })
		due = p.replan(ctx, o, due)
	}
	for _, t := range tasks {
		if t.refusal == nil {
			taken++
			if t.news != nil {
				p.free = append(p.free, *t.news)
			}

			continue
		}
		// An admission policy can refuse one for ever. The others go on.
		plan := plans[t.ref.ID()]
		plan.Waiting, plan.Causes = append(plan.Waiting, t.refusal.Error()), append(plan.Causes, "refused")
		plan.Blocked = true
		plans[t.ref.ID()] = plan
	}

	return plans, taken
}

// unlimited is more than there are.
const unlimited = math.MaxInt

// plan plans for what refs name, and returns what is to be done of that now. Who is adopted stays
// so as long as the poll lasts: there are many looks at thousands, and each is to take no longer
// than what has moved since the last.
func (p *poll) plan(w *adoption.Snapshot, refs []xp.Ref) (plans map[xp.ID]adoption.Plan, tasks []*task) {
	plans = make(map[xp.ID]adoption.Plan, len(refs))
	changed := map[xp.ID]bool{}
	for _, r := range refs {
		id := r.ID()
		if _, again := plans[id]; again {
			continue
		}
		last, planned := p.plans[id]
		if last.Done || planned && last.Patch == nil && len(last.Also) == 0 && !isLate(last.NextAt) && w.IsPlanCurrent(r) {
			plans[id] = last

			continue
		}
		plan := p.dropTaken(adoption.Next(w, r))
		for _, change := range append(plan.Also, plan.Change) {
			// The plan of a claim is that of its XR.
			if change.Patch == nil || changed[xp.RefTo(change.Target).ID()] {
				continue
			}
			changed[xp.RefTo(change.Target).ID()] = true
			t := &task{ref: r}
			t.plan(change)
			tasks = append(tasks, t)
		}
		if plan.Patch != nil || len(plan.Also) > 0 {
			plan.Change, plan.Also = adoption.Change{Patch: carriedOut(), Step: plan.Step}, nil
		}
		plans[id] = plan
	}

	return plans, tasks
}

// underWay counts the XRs of which nothing but Crossplane's word is waited for. A claim has the
// plan of its XR.
func (p *poll) underWay() int {
	on := map[types.UID]bool{}
	for _, plan := range p.plans {
		if p.isUnderWay(plan) {
			on[plan.Pending[0].UID] = true
		}
	}

	return len(on)
}

// reportBudget returns of how many there is time to tell: of none while many have just been let
// reconcile and Crossplane has something to say of them, and of a few withResourceVersion a time as
// long as it has of anybody.
func (p *poll) reportBudget() int {
	if time.Now().After(p.until) || time.Since(p.moved) > p.Adopter.patience {
		return unlimited
	}
	switch n := p.underWay(); {
	case n > manyWrites:
		return 0
	case n > 0:
		return manyWrites
	default:
		return unlimited
	}
}

// replan returns those tasks that were not done, planned anew for what their targets are now.
func (p *poll) replan(ctx context.Context, o *observer, tasks []*task) []*task {
	var late []*task
	for _, t := range tasks {
		if !t.taken && t.refusal == nil {
			late = append(late, t)
		}
	}
	now := make([]*unstructured.Unstructured, len(late))
	p.inParallel(len(late), func(n int) {
		u, err := p.cluster.Now(ctx, xp.RefTo(late[n].Target))
		if err == nil {
			now[n] = u // Else the next look tells.
		}
	})
	var again []*task
	for n, t := range late {
		if now[n] == nil {
			continue
		}
		o.putWritten(now[n])
		plan := adoption.Next(o.snapshot, t.ref)
		for _, change := range append(plan.Also, plan.Change) {
			if change.Patch != nil && xp.RefTo(change.Target) == xp.RefTo(t.Target) {
				t.plan(change)
				again = append(again, t)
			}
		}
	}

	return again
}
