package live

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// How often Crossplane is asked again depends on for how long it has been silent: at each poll for the first minutes, and later about once a minute.
const (
	eager    = 10 * time.Minute
	seldom   = time.Minute
	someTime = 20 * time.Second // A poll and what it takes.
)

// urge says in the plans why there probably is no word of Crossplane where one is waited for, tells what has changed of what is waited for, and asks
// Crossplane to look at what has heard none for a while.
func (a *Adopter) urge(ctx context.Context, world *adoption.World, plans map[xp.ID]adoption.Plan) {
	now, look := time.Now(), a.lookOnce(ctx)
	due := map[types.UID]*unstructured.Unstructured{}
	for id, plan := range plans {
		for _, s := range plan.Silent {
			age := now.Sub(s.Since)
			if age >= a.stuck {
				plan = named(plan, s, look())
			}
			if a.isDue(age) {
				due[s.Target.GetUID()] = s.Target
			}
		}
		plans[id] = plan
	}
	a.tell(ctx, adoption.Changes(world, plans))
	for _, u := range due {
		a.ask(ctx, u, now)
	}
}

func (a *Adopter) isDue(age time.Duration) bool {
	return age >= a.silence && (age < eager || age%seldom < someTime)
}

// lookOnce returns a function that finds Crossplane when it is called first.
func (a *Adopter) lookOnce(ctx context.Context) func() adoption.Installation {
	var found *adoption.Installation

	return func() adoption.Installation {
		if found == nil {
			i, err := a.cluster.Installation(ctx)
			if err != nil {
				a.log.WithError(err).Warn("Cannot tell which Crossplane runs")
				i.Hidden = true
			}
			found = &i
		}

		return *found
	}
}

// named is a plan that says why an object probably hears nothing.
func named(plan adoption.Plan, s adoption.Silence, i adoption.Installation) adoption.Plan {
	plan.Waiting, plan.Causes = slices.Clone(plan.Waiting), append(slices.Clone(plan.Causes), adoption.CauseStuck)
	if n := slices.Index(plan.Waiting, s.Waiting); n >= 0 {
		plan.Waiting[n] += ": " + adoption.Stuck(s.Target, i)
	}

	return plan
}

// ask asks Crossplane to reconcile an object, by an annotation that is taken back at once: that it was changed is what makes Crossplane look.
func (a *Adopter) ask(ctx context.Context, u *unstructured.Unstructured, now time.Time) {
	log := a.log.WithField("object", xp.String(u))
	asked, err := a.change(ctx, u, func(u *unstructured.Unstructured) (map[string]any, bool) { return adoption.Ask(u, now), true })
	if err == nil {
		_, err = a.change(ctx, asked, adoption.TakeBack)
	}
	if err != nil {
		log.WithError(err).Warn("Cannot ask Crossplane to reconcile it")

		return
	}
	log.Info("Asked Crossplane to reconcile it, which has said nothing of it for a while")
}

// change patches an object, if there is something to patch, and returns it as it is then. Only if it has changed since it was seen it reads it again.
func (a *Adopter) change(ctx context.Context, u *unstructured.Unstructured, patch func(*unstructured.Unstructured) (map[string]any, bool)) (
	*unstructured.Unstructured, error,
) {
	seen := u
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		p, needed := patch(seen)
		if !needed {
			return nil
		}
		after, err := a.cluster.Patch(ctx, seen, p)
		if err == nil {
			seen = after

			return nil
		}
		if apierrors.IsConflict(err) {
			now, getErr := a.cluster.Get(ctx, xp.RefTo(u))
			if getErr != nil {
				return getErr
			}
			seen = now
		}

		return err
	})

	return seen, err
}
