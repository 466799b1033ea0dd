package live

import (
	"context"
	"fmt"
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

// urge asks Crossplane to look at what waits for a word of it and has heard none for a while, and says in the plans why there probably is none.
func (a *Adopter) urge(ctx context.Context, plans map[xp.ID]adoption.Plan) {
	now, asked, look := time.Now(), map[types.UID]bool{}, a.lookOnce(ctx)
	for id, plan := range plans {
		for _, s := range plan.Silent {
			age := now.Sub(s.Since)
			if age >= a.stuck {
				plan.Waiting = slices.Clone(plan.Waiting)
				a.name(ctx, s, &plan, look())
			}
			if !asked[s.Target.GetUID()] && a.isDue(age) {
				asked[s.Target.GetUID()] = true
				a.ask(ctx, s.Target, now)
			}
		}
		plans[id] = plan
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
			}
			found = &i
		}

		return *found
	}
}

// name says why an object probably hears nothing: in the plan, and if it is held on the object and in an Event.
func (a *Adopter) name(ctx context.Context, s adoption.Silence, plan *adoption.Plan, i adoption.Installation) {
	why := adoption.Stuck(s.Target, i)
	if n := slices.Index(plan.Waiting, s.Waiting); n >= 0 {
		plan.Waiting[n] += ": " + why
	}
	reason := fmt.Sprintf("not adopted yet, waiting for %s: %s", s.Waiting, why)
	if h, err := adoption.HoldOf(s.Target); err != nil || h == nil || h.Reason == reason {
		return
	}
	if err := a.explain(ctx, s.Target, "AdoptionStuck", reason); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		a.log.WithError(err).Warn("Cannot say on the object why it is not adopted")
	}
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
