package live

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// defaultStuckAfter is for how long Crossplane may say nothing until there is probably a reason.
const defaultStuckAfter = time.Minute

// lookTimeout is for how long what was seen in one call serves the next: Velero polls the
// operations of a restore one after the other, and then not for a while.
const lookTimeout = 5 * time.Second

// An Adopter carries held XRs as far towards adoption as they go: one poll by Velero, of which
// there is one every 10 s, does not have to be one step. It goes on while something moves.
type Adopter struct {
	cluster *Cluster
	log     logrus.FieldLogger
	// firstLook is for how long it looks on to see whether anything moves at all, patience for how
	// long after something has, and limit for how long in all. Who is let go on with a hundred
	// others has a word of it when Crossplane is through with most of them.
	firstLook, patience, limit time.Duration
	// pause is the least time between two looks.
	pause time.Duration
	// requestAfter is after which time of silence it asks Crossplane to look at an object, calm for
	// how long nothing else must have moved then, and stuck after which it says why there probably
	// is no word.
	requestAfter, quiet, stuckAfter time.Duration
	// reportTimeout is for how long a poll tells where adoptions are.
	reportTimeout time.Duration
	// parallelWrites is how many objects are written at a time.
	writes int
	// relistFactor says that it must list again to see what has changed.
	relists bool
	// reportsAll says that somebody waits to be told all.
	reportsAll bool
	// asked says when Crossplane was asked to look at something.
	asked map[types.UID]time.Time
	// last is the observer of the last call, and ended when that was.
	last  *observer
	ended time.Time
	// arrived are the objects of which it has told that they are held, by UID, and forged those of
	// which it has told that their mark does not count.
	arrived, forged sync.Map
	// losses are those of which it has told that they have lost something, by UID.
	losses sync.Map
	// taken are the steps that it has taken, each a takenStep. What is written meanwhile asks for
	// them.
	taken sync.Map
	// stepped is called with each step that was taken, one after the other.
	stepping sync.Mutex
	stepped  func(change adoption.Change)
}

// NewAdopter returns an Adopter of the cluster's XRs.
func NewAdopter(cluster *Cluster, log logrus.FieldLogger) *Adopter {
	return &Adopter{
		cluster: cluster, log: log, firstLook: 200 * time.Millisecond, patience: 10 * time.Second, limit: 2 * time.Minute, pause: 100 * time.Millisecond,
		requestAfter: 10 * time.Second, quiet: 2 * time.Second, reportTimeout: 10 * time.Second, writes: parallelWrites,
		asked: map[types.UID]time.Time{}, stuckAfter: defaultStuckAfter, stepped: func(adoption.Change) {},
	}
}

// OnStep has it call a function with each step that it has taken.
func (a *Adopter) OnStep(do func(change adoption.Change)) *Adopter {
	a.stepped = do

	return a
}

// Adopt takes the next steps for the XR that ref names, for which the given Restore has an
// operation, and for all XRs that the label selector finds with it, and returns a Plan for each.
// What it has read, and has been told of since, serves the calls that follow at once, for XRs of
// other kinds. Marks count if they were signed with the key.
func (a *Adopter) Adopt(ctx context.Context, key adoption.Key, by adoption.Requester, selector string, ref xp.Ref) (map[xp.ID]adoption.Plan, error) {
	a.cluster.forgetOwners() // All that has owners is restored.
	o := a.last
	if o == nil || o.selector != selector || o.by.Restore != by.Restore || time.Since(a.ended) > lookTimeout || !o.isCurrent() {
		a.forget()
		o = newObserver(a.cluster, key, selector, nil)
		o.by = by
	}
	o.refs = append(o.refs, ref)
	plans, o, err := a.adopt(ctx, o, (*adoption.Snapshot).Subjects)
	a.last, a.ended = o, time.Now()
	if err != nil || a.relists {
		a.forget()
	}

	return plans, err
}

// forget ends what goes on between calls.
func (a *Adopter) forget() {
	if a.last != nil {
		a.last.unfollow()
	}
	a.last = nil
}

// AdoptOnly takes the next steps for what refs name, with what an XR composes and its claim, and
// for nothing else that the label selector finds. It returns a Plan for each. It takes only the
// right to list, and not that to watch, which fewer have than Velero.
func (a *Adopter) AdoptOnly(ctx context.Context, key adoption.Key, selector string, refs []xp.Ref) (map[xp.ID]adoption.Plan, error) {
	a.reportsAll, a.relists = true, true
	plans, _, err := a.adopt(ctx, newObserver(a.cluster, key, selector, refs), func(*adoption.Snapshot) []xp.Ref { return nil })

	return plans, err
}

// adopt takes the next steps for what an observer looks for, and for what else the function finds
// in what it observes. It returns the observer that was last at work.
func (a *Adopter) adopt(ctx context.Context, o *observer, others func(*adoption.Snapshot) []xp.Ref) (map[xp.ID]adoption.Plan, *observer, error) {
	p := a.newPoll(ctx)
	p.skipComposed(o)
	defer p.reportLate(ctx, unlimited)
	for {
		looked, listings := time.Now(), len(o.listings)
		if err := o.listNeeded(ctx); err != nil {
			return nil, o, err
		}
		p.observed = 0
		if len(o.listings) == listings { // Else it has waited for others.
			p.observed = time.Since(looked)
		}
		p.pass(ctx, o, append(others(o.snapshot), o.refs...))
		took := time.Since(looked)
		for seen := true; seen; {
			asked := p.requestReconciles(ctx, o, took)
			if !p.continues(took) {
				p.end(ctx, o)

				return p.plans, o, nil
			}
			next, changed, err := p.waitForChange(ctx, o, took)
			if err != nil {
				return nil, o, err
			}
			// What was written is known as it was then, with what Crossplane has said until then.
			o, seen = next, !changed && !asked && p.steps == 0 && !isLate(p.later())
		}
	}
}

// waitForChange waits until there is something to see, and returns the observer to see it with, and
// whether there is. What can't be followed is listed anew, after a while that is as long as that
// takes.
func (p *poll) waitForChange(ctx context.Context, o *observer, took time.Duration) (*observer, bool, error) {
	if !p.relists {
		o.follow(ctx, p.plans)
	}
	again := func() *observer {
		o.unfollow()
		anew := newObserver(o.cluster, o.key, o.selector, o.refs)
		anew.by = o.by
		p.skipComposed(anew)

		return anew
	}
	if p.relists {
		return again(), true, sleep(ctx, max(p.pause, took))
	}
	// Others are to have most of the time.
	least, most := max(p.pause, idleFactor*(p.observed+p.planned)), min(p.quiet, max(0, p.patience-time.Since(p.moved)))
	if later := p.later(); !later.IsZero() {
		most = min(p.quiet, max(0, time.Until(later)))
	}
	if err := o.events.wait(ctx, min(least, most), most); err != nil {
		return o, false, err
	}
	if changed, ok := o.catchUp(); ok {
		return o, changed, nil
	}
	p.relists = p.lost // Whoever is told nothing twice has to look for themselves.
	p.lost = true

	return again(), true, nil
}

// later returns when the first of the plans can be another though nothing has changed; zero if none
// can.
func (p *poll) later() time.Time {
	var first time.Time
	for _, plan := range p.plans {
		if !plan.NextAt.IsZero() && (first.IsZero() || plan.NextAt.Before(first)) {
			first = plan.NextAt
		}
	}

	return first
}

// isLate reports whether it is time for another plan though nothing has changed.
func isLate(at time.Time) bool { return !at.IsZero() && !time.Now().Before(at) }

// idleFactor is how many times as long as looking and planning take others have the machine, which
// may be the API server's too.
const idleFactor = 4

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// GiveUp leaves the hold on what ref names, with the reason in its marker and in an Event. What
// does not exist needs none, and of what is adopted and not proven there is an Event.
func (a *Adopter) GiveUp(ctx context.Context, key adoption.Key, ref xp.Ref, why string) error {
	// Crossplane writes the status of what it finds paused, so the object may have changed since it
	// was read.
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		u, err := a.cluster.Get(ctx, ref)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return err
		}
		h, err := key.HoldOf(u)
		if err != nil {
			return a.cluster.Warn(ctx, u, adoption.EventStopped, why+". "+err.Error())
		}
		if h == nil {
			return a.cluster.Warn(ctx, u, adoption.EventStopped, why+". It is not held any more; mend that, and Crossplane carries on")
		}
		notices, err := key.Stopped(u, why+". It stays held, so nothing is lost; mend that, then run: "+xp.ReleaseCommand(ref).String())
		if err != nil {
			return err
		}

		_, err = a.reportOne(ctx, notices)

		return err
	})
}
