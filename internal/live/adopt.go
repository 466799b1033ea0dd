package live

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	// patience is for how long it looks on while nothing moves, limit for how long at all, and pause is the time between two looks.
	patience, limit, pause time.Duration
	// silence is after which time of silence it asks Crossplane to look at an object, and stuck after which it says why there probably is none.
	silence, stuck time.Duration
	// arrived are the objects of which it has told that they are held, by UID.
	arrived sync.Map
	// stepped is called with each step that was taken.
	stepped func(change adoption.Change)
}

// NewAdopter returns an Adopter of the cluster's XRs.
func NewAdopter(cluster *Cluster, log logrus.FieldLogger) *Adopter {
	return &Adopter{
		cluster: cluster, log: log, patience: 2 * time.Second, limit: 10 * time.Second, pause: 200 * time.Millisecond,
		silence: 10 * time.Second, stuck: stuckAfter, stepped: func(adoption.Change) {},
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
	began := time.Now()
	moved, last := began, ""
	left := leftoversIn(a.cluster)
	for {
		world, err := a.cluster.Observe(ctx, selector, refs)
		if err != nil {
			return nil, err
		}
		subjects := append(others(world), refs...)
		a.arrive(ctx, world, subjects)
		plans, stepped := a.pass(ctx, world, subjects)
		left.see(world, plans)
		moving := false
		for _, p := range plans {
			moving = moving || p.Moving
		}
		if now := summary(plans); stepped || now != last {
			moved, last = time.Now(), now
		}
		if !stepped && (!moving || time.Since(moved) > a.patience) || time.Since(began) > a.limit {
			a.urge(ctx, world, plans)
			left.report(ctx, a, plans)

			return plans, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(a.pause):
		}
	}
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

// pass takes one step for each of what refs name that has one to take.
func (a *Adopter) pass(ctx context.Context, world *adoption.World, refs []xp.Ref) (plans map[xp.ID]adoption.Plan, stepped bool) {
	plans = map[xp.ID]adoption.Plan{}
	changed := map[*unstructured.Unstructured]bool{}
	for _, r := range refs {
		if _, ok := plans[r.ID()]; ok {
			continue
		}
		plan := adoption.Next(world, r)
		for _, change := range append(plan.Also, plan.Change) {
			// The plan of a claim is that of its XR.
			if change.Patch == nil || changed[change.Target] {
				continue
			}
			changed[change.Target] = true
			if err := a.step(ctx, change); err != nil {
				// An admission policy can refuse one for ever. The others go on.
				plan.Waiting, plan.Causes = append(plan.Waiting, err.Error()), append(plan.Causes, "refused")
				plan.Blocked = true
			} else {
				stepped = true
			}
		}
		plans[r.ID()] = plan
	}

	return plans, stepped
}

func (a *Adopter) step(ctx context.Context, change adoption.Change) error {
	log := a.log.WithFields(logrus.Fields{"kind": change.Target.GetKind(), "namespace": change.Target.GetNamespace(), "name": change.Target.GetName()})
	after, err := a.cluster.Patch(ctx, change.Target, change.Patch)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// It has changed since it was observed; the next pass plans anew.
		log.WithError(err).Debug("Looking again")

		return nil
	}
	if err != nil {
		return err
	}
	log.WithField("step", change.Step).Info("Adoption step taken")
	a.stepped(change)
	a.released(ctx, change.Target, after, "its hold is lifted: "+strings.Replace(change.Step, "give its own settings back", "its own settings are back", 1))

	return nil
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
