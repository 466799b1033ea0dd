package live

import (
	"cmp"
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

// A reconcile is requested again at each poll for the first minutes, and later about once a minute.
const (
	requestEachPollFor = 10 * time.Minute
	requestInterval    = time.Minute
	pollInterval       = 20 * time.Second // A poll and its interval.
)

// maxRequests is how many reconciles are requested at a time. Crossplane may have reconciled none
// of a thousand objects because it does not run or is busy, and requests would only add to its
// work. More are requested when one of these has helped.
const maxRequests = 10

// requestReconciles requests a reconcile of a few objects that were not reconciled for a while, and
// reports whether it did. It does so when nothing changes, and again when that has helped and
// nothing changes any more. While anything changes Crossplane is busy.
func (p *poll) requestReconciles(ctx context.Context, o *observer, took time.Duration) bool {
	if p.steps > 0 || p.answered && p.continues(took) && time.Since(p.moved) <= p.quiet || p.requested && !p.answered {
		return false
	}
	now := p.cluster.serverNow()
	due := p.due(now)
	if len(due) == 0 {
		return false
	}
	// Begin elsewhere each time, so that objects that no request helps don't block the others.
	begin := int(now.Unix()/int64(p.requestAfter.Seconds()+1)*maxRequests) % len(due)
	due = append(due[begin:], due[:begin]...)
	due = due[:min(maxRequests, len(due))]
	targets := make([]*unstructured.Unstructured, len(due))
	for n, s := range due {
		p.requestedAt[s.UID], targets[n] = now, o.snapshot.Get(s.Ref)
	}
	p.inParallel(len(due), func(n int) { o.putWritten(p.requestReconcile(ctx, targets[n], now)) })
	p.moved, p.patience, p.requested, p.answered = time.Now(), p.firstWait, true, false

	return true
}

// due returns the objects for which a reconcile is to be requested, in a stable order. If
// Crossplane is down, it returns only those that a provider reconciles.
func (p *poll) due(now time.Time) []adoption.PendingReconcile {
	found := map[types.UID]adoption.PendingReconcile{}
	for _, plan := range p.plans {
		for _, s := range plan.Pending {
			if last, asked := p.requestedAt[s.UID]; p.isDue(now.Sub(s.Since)) && (!asked || now.Sub(last) >= p.requestAfter) {
				found[s.UID] = s
			}
		}
	}
	var due []adoption.PendingReconcile
	for _, s := range found {
		if s.Provider || !p.installed().IsDown() {
			due = append(due, s)
		}
	}
	slices.SortFunc(due, func(a, b adoption.PendingReconcile) int { return cmp.Compare(a.UID, b.UID) })

	return due
}

// explainPending adds the probable cause to plans whose reconcile has been pending for long.
func (p *poll) explainPending(w *adoption.Snapshot) {
	for id, plan := range p.plans {
		for _, s := range plan.Pending {
			if p.cluster.serverNow().Sub(s.Since) >= p.stuckAfter {
				plan = plan.Named(s, adoption.Stuck(w.Get(s.Ref), p.installed()))
			}
		}
		p.plans[id] = plan
	}
}

func (a *Adopter) isDue(age time.Duration) bool {
	return age >= a.requestAfter && (age < requestEachPollFor || age%requestInterval < pollInterval)
}

// installationOnce returns a function that reads Crossplane's Deployment on its first call.
func (a *Adopter) installationOnce(ctx context.Context) func() adoption.Installation {
	var found *adoption.Installation

	return func() adoption.Installation {
		if found == nil {
			i, err := a.cluster.Installation(ctx)
			if err != nil {
				a.log.WithError(err).Warn("Cannot find out which Crossplane runs")
				i.Hidden = true
			}
			found = &i
		}

		return *found
	}
}

// requestReconcile makes Crossplane reconcile an object by an annotation that it sets and removes
// at once: the change triggers the reconcile. It returns the new object.
func (a *Adopter) requestReconcile(ctx context.Context, u *unstructured.Unstructured, now time.Time) *unstructured.Unstructured {
	log := a.log.WithField("object", xp.String(u))
	asked, err := a.change(ctx, u, func(u *unstructured.Unstructured) (map[string]any, bool) {
		return adoption.RequestReconcile(u, now), true
	})
	if err == nil {
		asked, err = a.change(ctx, asked, adoption.ClearReconcileRequest)
	}
	if err != nil {
		log.WithError(err).Warn("Cannot request a reconcile")
	} else {
		log.Info("Requested a reconcile, since there was none for a while")
	}

	return asked
}

// change applies a patch, if one is needed, and returns the new object. It retries a conflict.
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
			now, readErr := a.cluster.Now(ctx, xp.RefTo(u))
			if readErr != nil {
				return readErr
			}
			seen = now
		}

		return err
	})

	return seen, err
}
