// Package adopter carries out plans of package adoption with a Cluster: it observes what a plan needs,
// asks for the plan, applies its steps and waits until Crossplane has followed. It also takes over
// what another writer created (takeover.go), surveys a cluster without a change (survey.go), and
// releases by force (release.go). Package adoption decides, and package cluster makes the requests.
// Begin with Adopter (adopt.go), whose loop runs the passes of a poll (poll.go).
package adopter

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// defaultStuckAfter is for how long a reconcile may be pending before a cause is looked for.
const defaultStuckAfter = time.Minute

// observationTTL is for how long what one call observed serves the next. Velero polls the
// operations of a restore one after the other, and then pauses.
const observationTTL = 5 * time.Second

// An Adopter takes held XRs as far towards adoption as possible in each poll. Velero polls every
// ten seconds, so one poll takes several steps. It continues while anything changes.
type Adopter struct {
	cluster *cluster.Cluster
	log     logrus.FieldLogger
	// firstWait is for how long a poll waits for the first change, patience for how long it waits
	// after a change, and limit is its longest duration. An XR that is released with a hundred
	// others is often reconciled only when Crossplane has reconciled most of them.
	firstWait, patience, limit time.Duration
	// pause is the least time between two observations.
	pause time.Duration
	// requestAfter is after how much time without a reconcile the poll requests one. It does so
	// only if nothing has changed for the duration quiet. After stuckAfter it looks for a cause.
	requestAfter, quiet, stuckAfter time.Duration
	// reportTimeout limits how long a poll writes notices.
	reportTimeout time.Duration
	// writes is how many objects are written at a time.
	writes int
	// relists is set if each observation lists again instead of watching.
	relists bool
	// forUser is set if a user waits: for nothing but what the refs name, for all notices, and for
	// changes of all kinds.
	forUser bool
	// requestedAt is when a reconcile of an object was last requested, by UID.
	requestedAt map[types.UID]time.Time
	// last is the observer of the last call, and ended is when that call returned.
	last  *observer
	ended time.Time
	// reportedHeld and reportedLosses are the UIDs of objects whose hold or loss was reported, and
	// loggedForged the messages about marks without a valid signature that were logged.
	reportedHeld, reportedLosses, loggedForged sync.Map
	// takenSteps are the steps that were taken, as takenStep. Parallel writes read it.
	takenSteps sync.Map
	// onStepMu serializes the calls of onStep, which gets each step that was taken.
	onStepMu sync.Mutex
	onStep   func(change hold.Change)
}

// New returns an Adopter of the cluster's XRs that logs to log.
func New(cluster *cluster.Cluster, log logrus.FieldLogger) *Adopter {
	return &Adopter{
		cluster: cluster, log: log, firstWait: 200 * time.Millisecond, patience: 10 * time.Second, limit: 2 * time.Minute, pause: 100 * time.Millisecond,
		requestAfter: 10 * time.Second, quiet: 2 * time.Second, reportTimeout: 10 * time.Second, writes: parallelWrites,
		requestedAt: map[types.UID]time.Time{}, stuckAfter: defaultStuckAfter, onStep: func(hold.Change) {},
	}
}

// OnStep sets a function that is called with each step that was taken, one call at a time.
func (a *Adopter) OnStep(do func(change hold.Change)) *Adopter {
	a.onStep = do

	return a
}

// Adopt takes the next steps for the XR that ref names, for which the given Restore has an
// operation, and for all XRs that the label selector finds with it. It returns a Plan for each.
// Calls that follow within observationTTL reuse what was listed and watched, for XRs of other kinds
// too. A mark counts only if it was signed with the key.
func (a *Adopter) Adopt(ctx context.Context, key hold.Key, by adoption.Requester, selector string, ref xp.Ref) (map[xp.ID]adoption.Plan, error) {
	a.cluster.ForgetOwners() // All objects with owners are restored by now.
	o := a.last
	if o == nil || o.selector != selector || o.requester.Restore != by.Restore || time.Since(a.ended) > observationTTL || !o.isCurrent() {
		a.forget()
		o = newObserver(a.cluster, key, selector, nil)
		o.requester = by
	}
	o.refs = append(o.refs, ref)
	plans, o, err := a.adopt(ctx, o)
	a.last, a.ended = o, time.Now()
	if err != nil || a.relists {
		a.forget()
	}

	return plans, err
}

// forget drops the observer of the last call and ends its watches.
func (a *Adopter) forget() {
	if a.last != nil {
		a.last.unfollow()
	}
	a.last = nil
}

// AdoptOnly takes the next steps for what refs name, for what their XRs compose and for their
// claims, and for nothing else that the label selector finds. It returns a Plan for each. Without
// the right to watch, which fewer users have than Velero, it lists again instead.
func (a *Adopter) AdoptOnly(ctx context.Context, key hold.Key, selector string, refs []xp.Ref) (map[xp.ID]adoption.Plan, error) {
	a.forUser = true
	plans, o, err := a.adopt(ctx, newObserver(a.cluster, key, selector, refs))
	o.unfollow()

	return plans, err
}

// adopt takes the next steps for the observer's refs and, unless a user waits, for all XRs that it
// finds with them. It returns a Plan for each and the last observer that it used.
func (a *Adopter) adopt(ctx context.Context, o *observer) (map[xp.ID]adoption.Plan, *observer, error) {
	p := a.newPoll(ctx)
	p.configure(o)
	defer p.reportLate(ctx, unlimited)
	for {
		looked, listings := time.Now(), len(o.listings)
		if err := o.listNeeded(ctx); err != nil {
			return nil, o, err
		}
		p.listed, p.observed = time.Since(looked), 0
		if len(o.listings) == listings { // Otherwise the time includes requests.
			p.observed = time.Since(looked)
		}
		refs := o.refs
		if !p.forUser {
			refs = append(o.snapshot.Subjects(), refs...)
		}
		p.pass(ctx, o, refs)
		took := time.Since(looked)
		for seen := true; seen; {
			asked := p.requestReconciles(ctx, o, took)
			if !p.continues(took) {
				p.end(ctx, o)

				return p.plans, o, nil
			}
			next, changed, err := p.waitForChange(ctx, o)
			if err != nil {
				return nil, o, err
			}
			// The Snapshot has what Crossplane wrote up to the time of each write.
			o, seen = next, !changed && !asked && p.steps == 0 && !p.isLate(p.later())
		}
	}
}

// waitForChange waits for a change. It returns the observer to use next and whether there is
// something new to see. If the watches have failed it lists again.
func (p *poll) waitForChange(ctx context.Context, o *observer) (*observer, bool, error) {
	restart := func() *observer {
		o.unfollow()
		fresh := newObserver(o.cluster, o.key, o.selector, o.refs)
		fresh.requester = o.requester
		p.configure(fresh)

		return fresh
	}
	if p.relists {
		return restart(), true, sleep(ctx, max(p.pause, p.listed))
	}
	o.follow(ctx, p.plans)
	// Leave most of the time to other processes.
	least, most := max(p.pause, idleFactor*(p.observed+p.planned)), min(p.quiet, max(0, p.patience-time.Since(p.moved)))
	if later := p.later(); !later.IsZero() {
		most = min(p.quiet, max(0, later.Sub(p.cluster.ServerNow())))
	}
	if p.steps > 0 { // What it has written itself changes the next plans, and is no event.
		most = min(least, most)
	}
	if err := o.events.wait(ctx, min(least, most), most); err != nil {
		return o, false, err
	}
	if changed, ok := o.catchUp(); ok {
		return o, changed, nil
	}
	p.relists = p.missedEvents // A second failure means that watching does not work.
	p.missedEvents = true

	return restart(), true, nil
}

// later returns when the first plan can change although no object has changed; zero if none can.
func (p *poll) later() time.Time {
	var first time.Time
	for _, plan := range p.plans {
		if !plan.NextAt.IsZero() && (first.IsZero() || plan.NextAt.Before(first)) {
			first = plan.NextAt
		}
	}

	return first
}

// isLate reports whether the time is set and has come.
func (a *Adopter) isLate(at time.Time) bool { return !at.IsZero() && !a.cluster.ServerNow().Before(at) }

// idleFactor is the ratio of a poll's idle time to its work. The API server may be on the same
// machine.
const idleFactor = 4

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// GiveUp leaves the hold on what ref names, and writes the reason into its mark and an Event. An
// object without a hold gets only the Event.
func (a *Adopter) GiveUp(ctx context.Context, key hold.Key, ref xp.Ref, why string) error {
	// Crossplane may have written the status of the paused object meanwhile.
	return a.cluster.ChangeNow(ctx, ref, func(u *unstructured.Unstructured) error {
		h, err := key.HoldOf(u)
		if err != nil {
			return a.cluster.Warn(ctx, u, adoption.EventStopped, reason.RestoreStopped.Messagef("%s. %s", why, err).String())
		}
		if h == nil {
			return a.cluster.Warn(ctx, u, adoption.EventStopped, reason.RestoreStopped.Messagef("%s. It is not held, so Crossplane reconciles it", why).String())
		}
		notice, err := adoption.Stopped(key, u, reason.RestoreStopped.Messagef("%s. It stays held, so nothing is lost; correct that, then run: "+
			"%s", why, xp.ReleaseCommand(ref)).String())
		if err == nil {
			_, err = a.reportOne(ctx, notice)
		}

		return err
	})
}
