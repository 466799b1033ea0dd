package live

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/retry"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// stuckAfter is for how long Crossplane may say nothing until there is probably a reason.
const stuckAfter = time.Minute

// An Adopter carries held XRs as far towards adoption as they go: one poll by Velero, of which there is one every 10 s, does not have to be one
// step. It goes on while something moves.
type Adopter struct {
	cluster *Cluster
	log     logrus.FieldLogger
	// glance is for how long it looks on to see whether anything moves at all, patience for how long after something has, and limit for how long in all.
	glance, patience, limit time.Duration
	// pause is the least time between two looks.
	pause time.Duration
	// silence is after which time of silence it asks Crossplane to look at an object, and stuck after which it says why there probably is none.
	silence, stuck time.Duration
	// writes is how many objects are written at a time.
	writes int
	// arrived are the objects of which it has told that they are held, by UID.
	arrived sync.Map
	// stepped is called with each step that was taken, one after the other.
	stepping sync.Mutex
	stepped  func(change adoption.Change)
}

// NewAdopter returns an Adopter of the cluster's XRs.
func NewAdopter(cluster *Cluster, log logrus.FieldLogger) *Adopter {
	return &Adopter{
		cluster: cluster, log: log, glance: 300 * time.Millisecond, patience: 2 * time.Second, limit: 20 * time.Second, pause: 200 * time.Millisecond,
		silence: 10 * time.Second, writes: writes, stuck: stuckAfter, stepped: func(adoption.Change) {},
	}
}

// OnStep has it call a function with each step that it has taken.
func (a *Adopter) OnStep(do func(change adoption.Change)) *Adopter {
	a.stepped = do

	return a
}

// Adopt takes the next steps for the XR that ref names and for all XRs that the label selector finds with it, and returns a Plan for each.
func (a *Adopter) Adopt(ctx context.Context, selector string, ref xp.Ref) (map[xp.ID]adoption.Plan, error) {
	return a.adopt(ctx, selector, []xp.Ref{ref}, (*adoption.World).Subjects)
}

// AdoptOnly takes the next steps for what refs name, with what an XR composes and its claim, and for nothing else that the label selector finds. It returns
// a Plan for each.
func (a *Adopter) AdoptOnly(ctx context.Context, selector string, refs []xp.Ref) (map[xp.ID]adoption.Plan, error) {
	return a.adopt(ctx, selector, refs, func(*adoption.World) []xp.Ref { return nil })
}

// adopt takes the next steps for what refs name, and for what else the function finds in what was observed.
func (a *Adopter) adopt(ctx context.Context, selector string, refs []xp.Ref, others func(*adoption.World) []xp.Ref) (map[xp.ID]adoption.Plan, error) {
	p := a.newPoll(ctx)
	for {
		looked := time.Now()
		world, err := a.cluster.Observe(ctx, selector, refs)
		if err != nil {
			return nil, err
		}
		p.pass(ctx, world, append(others(world), refs...))
		took := time.Since(looked)
		p.ask(ctx, took)
		if !p.goesOn(took) {
			p.end(ctx, world)

			return p.plans, nil
		}
		if err := sleep(ctx, max(a.pause, took)); err != nil {
			return nil, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// GiveUp leaves the hold on what ref names, with the reason in its marker and in an Event. What does not exist needs none, and of what is adopted and
// not proven there is an Event.
func (a *Adopter) GiveUp(ctx context.Context, ref xp.Ref, why string) error {
	// Crossplane writes the status of what it finds paused, so the object may have changed since it was read.
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		u, err := a.cluster.Get(ctx, ref)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return err
		}
		h, err := adoption.HoldOf(u)
		if err != nil {
			return err
		}
		if h == nil {
			return a.cluster.Warn(ctx, u, adoption.EventStopped, why+". It is not held any more; mend that, and Crossplane carries on")
		}
		news, err := adoption.Stopped(u, why+". It stays held, so nothing is lost; mend that, then run: "+FieldManager+" release "+ref.Path())
		if err != nil {
			return err
		}

		return a.tellOne(ctx, news)
	})
}
