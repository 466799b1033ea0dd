package adopter

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// report writes each notice into its object's mark and an Event, warnings first. It logs a notice
// that it can't write; the next poll writes it if it still holds. It also leaves notices for which
// there is no time to the next poll, since no object is released while it writes. The operation's
// description has the same text.
func (a *Adopter) report(ctx context.Context, o *observer, notices []adoption.Notice) {
	order := map[bool]int{true: -1}
	slices.SortStableFunc(notices, func(x, y adoption.Notice) int { return order[x.Warning] - order[y.Warning] })
	began := time.Now()
	var unreported atomic.Int64
	a.inParallel(len(notices), func(i int) {
		n := notices[i]
		notices[i] = adoption.Notice{} // Release the memory: there may be thousands.
		if !a.forUser && time.Since(began) > a.reportTimeout {
			unreported.Add(1)
			var marked bool
			if n, marked = o.later(xp.RefTo(n.Target)); !marked {
				return
			}
		}
		if after := a.record(ctx, n); after != nil {
			o.putWritten(after)
		}
	})
	if n := unreported.Load(); n > 0 {
		a.log.WithField("objects", n).Info("This poll has no time to report on more objects; the next one does")
	}
}

// later returns Snapshot.LaterNotice. It takes the lock, since other goroutines write.
func (o *observer) later(r xp.Ref) (adoption.Notice, bool) {
	o.snapshotMu.Lock()
	defer o.snapshotMu.Unlock()

	return o.snapshot.LaterNotice(r)
}

// reportOne writes one notice. It returns the new object, nil if the notice has no patch.
func (a *Adopter) reportOne(ctx context.Context, n adoption.Notice) (after *unstructured.Unstructured, err error) {
	if n.Patch != nil {
		if after, err = a.cluster.ApplyChange(ctx, hold.Change{Target: n.Target, Patch: n.Patch, Configuration: n.Configuration}); err != nil {
			return nil, err
		}
	}
	if n.Event == "" {
		return after, nil
	}
	kind := corev1.EventTypeNormal
	if n.Warning {
		kind = corev1.EventTypeWarning
	}

	return after, a.cluster.Event(ctx, n.Target, kind, n.Event, n.Message)
}

// collectHeld collects notices for held objects that were not reported yet.
func (p *poll) collectHeld(o *observer, refs []xp.Ref) {
	for _, n := range adoption.HeldNotices(o.snapshot, refs) {
		if _, seen := p.reportedHeld.LoadOrStore(n.Target.GetUID(), true); !seen {
			p.held = append(p.held, n)
		}
	}
}

func identityOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	return xp.IdentityOnly(xp.RefTo(u), u.GetUID(), u.GetResourceVersion())
}

// reportsRelease reports whether an object is a held XR or claim, whose release gets an Event.
func reportsRelease(u *unstructured.Unstructured) bool {
	if xp.IsManaged(u) || xp.IsSchedule(u) {
		return false
	}
	h, err := hold.Of(u)

	return err == nil && h != nil
}

// releaseNotice returns the notice that an object was released; ok is false if it is still held.
func releaseNotice(after *unstructured.Unstructured, why string) (n adoption.Notice, ok bool) {
	h, err := hold.Of(after)

	return adoption.Notice{Target: identityOf(after), Event: adoption.EventReleased, Message: why}, err == nil && h == nil
}

// reportLate writes up to limit notices about held objects, and then about released ones. Other
// objects wait for their release meanwhile, so it is called when there is nothing else to do.
func (p *poll) reportLate(ctx context.Context, limit int) {
	if n := len(p.held) + len(p.released); n > 0 && ctx.Err() != nil {
		p.log.WithField("events", n).WithError(ctx.Err()).Warn("Cannot report on the objects")

		return
	}
	for _, notices := range []*[]adoption.Notice{&p.held, &p.released} {
		now := (*notices)[:min(limit, len(*notices))]
		p.inParallel(len(now), func(n int) { p.record(ctx, now[n]) })
		*notices, limit = (*notices)[len(now):], limit-len(now)
	}
}

// record is reportOne, and logs an error. The next poll sees an object that was changed or deleted
// meanwhile.
func (a *Adopter) record(ctx context.Context, n adoption.Notice) *unstructured.Unstructured {
	after, err := a.reportOne(ctx, n)
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		a.log.WithFields(logrus.Fields{"object": xp.String(n.Target), "event": n.Event}).WithError(err).Warn("Cannot report on the object")
	}

	return after
}
