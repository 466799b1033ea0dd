package adopter

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
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
	now := p.cluster.ServerNow()
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
	due := slices.SortedFunc(maps.Values(found), func(a, b adoption.PendingReconcile) int { return cmp.Compare(a.UID, b.UID) })

	return slices.DeleteFunc(due, func(s adoption.PendingReconcile) bool { return !s.Provider && p.installed().IsDown() })
}

func (a *Adopter) isDue(age time.Duration) bool {
	return age >= a.requestAfter && (age < requestEachPollFor || age%requestInterval < pollInterval)
}

// requestReconcile makes Crossplane reconcile an object by an annotation that it sets and removes
// at once: the change triggers the reconcile. It returns the new object.
func (a *Adopter) requestReconcile(ctx context.Context, u *unstructured.Unstructured, now time.Time) *unstructured.Unstructured {
	log := a.log.WithField("object", xp.String(u))
	asked, err := a.cluster.PatchSeen(ctx, u, func(u *unstructured.Unstructured) (map[string]any, bool) {
		return hold.RequestReconcile(u, now), true
	})
	if err == nil {
		asked, err = a.cluster.PatchSeen(ctx, asked, hold.ClearReconcileRequest)
	}
	if err != nil {
		log.WithError(err).Warn("Cannot request a reconcile")
	} else {
		log.Info("Requested a reconcile, since there was none for a while")
	}

	return asked
}
