package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

var resourceEvents = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// Types of Events.
const (
	eventNormal  = "Normal"
	eventWarning = "Warning"
)

const (
	// maxMessage is the limit of a note in events.k8s.io (kubernetes
	// pkg/apis/core/validation/events.go). Programs that show Events may rely on it.
	maxMessage = 1024
	// maxPrefix leaves room for the suffix that the API server adds to a generated name.
	maxPrefix = 200
)

// Warn writes a warning Event about an object. The Event is in the object's namespace, or in the
// namespace default for a cluster-scoped object.
func (c *Cluster) Warn(ctx context.Context, u *unstructured.Unstructured, why, message string) error {
	return c.event(ctx, u, eventWarning, why, message)
}

func (c *Cluster) event(ctx context.Context, u *unstructured.Unstructured, kind, why, message string) error {
	namespace := cmp.Or(u.GetNamespace(), metav1.NamespaceDefault)
	now := c.serverNow().UTC().Format(time.RFC3339)
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata": map[string]any{"generateName": strings.TrimRight(cut(u.GetName(), maxPrefix, ""), ".-") + ".", "namespace": namespace},
		"involvedObject": map[string]any{
			"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "namespace": u.GetNamespace(), "name": u.GetName(), "uid": string(u.GetUID()),
		},
		"type": kind, "reason": why, "message": cut(reason.Clean(message), maxMessage, "…"),
		"source":         map[string]any{"component": FieldManager},
		"firstTimestamp": now, "lastTimestamp": now, "count": int64(1),
	}}
	// A retry may write the Event twice, which is better than never.
	return c.withFewRetries(func() error {
		_, err := c.client.Resource(resourceEvents).Namespace(namespace).Create(ctx, event, metav1.CreateOptions{FieldManager: FieldManager})
		if err != nil {
			return fmt.Errorf("cannot write an Event about %s: %w", xp.String(u), err)
		}

		return nil
	})
}

// cut returns s if it has at most limit bytes, else its beginning and end, together limit bytes.
func cut(s string, limit int, end string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= limit {
		return s
	}
	n := limit - len(end)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}

	return s[:n] + end
}

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
	kind := eventNormal
	if n.Warning {
		kind = eventWarning
	}

	return after, a.cluster.event(ctx, n.Target, kind, n.Event, n.Message)
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
