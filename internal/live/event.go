package live

import (
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
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Types of Events.
const (
	eventNormal  = "Normal"
	eventWarning = "Warning"
)

const (
	// maxMessage is what events.k8s.io lets a note have (kubernetes
	// pkg/apis/core/validation/events.go). Whoever shows Events may rely on it.
	maxMessage = 1024
	// maxPrefix leaves room for what the API server adds to a generated name.
	maxPrefix = 200
)

// Warn writes a warning Event about an object, in its namespace or, for a cluster-scoped object, in
// the namespace default.
func (c *Cluster) Warn(ctx context.Context, u *unstructured.Unstructured, reason, message string) error {
	return c.event(ctx, u, eventWarning, reason, message)
}

// Note writes an Event about an object as Warn does, of something that is as it should be.
func (c *Cluster) Note(ctx context.Context, u *unstructured.Unstructured, reason, message string) error {
	return c.event(ctx, u, eventNormal, reason, message)
}

func (c *Cluster) event(ctx context.Context, u *unstructured.Unstructured, kind, reason, message string) error {
	namespace := u.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	now := time.Now().UTC().Format(time.RFC3339)
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata": map[string]any{"generateName": strings.TrimRight(cut(u.GetName(), maxPrefix, ""), ".-") + ".", "namespace": namespace},
		"involvedObject": map[string]any{
			"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "namespace": u.GetNamespace(), "name": u.GetName(), "uid": string(u.GetUID()),
		},
		"type": kind, "reason": reason, "message": cut(message, maxMessage, "…"),
		"source":         map[string]any{"component": FieldManager},
		"firstTimestamp": now, "lastTimestamp": now, "count": int64(1),
	}}
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	// Rather twice than not at all.
	return c.withFewRetries(func() error {
		_, err := c.client.Resource(events).Namespace(namespace).Create(ctx, event, metav1.CreateOptions{FieldManager: FieldManager})
		if err != nil {
			return fmt.Errorf("cannot write an Event about %s: %w", xp.String(u), err)
		}

		return nil
	})
}

// cut returns the beginning of a string, of no more bytes than given and with the end that says so;
// all of it if it has no more.
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

// report writes what is to be told into the mark of what it is about, and an Event, first of what
// needs a person. What can't be told is logged, and is no reason to stop: what has changed since it
// was observed is told at the next poll, if it is true then. So is what there is no time for in
// this one, since nobody is releaseNotice meanwhile; the operation of each says the same.
func (a *Adopter) report(ctx context.Context, o *observer, notices []adoption.Notice) {
	slices.SortStableFunc(notices, func(x, y adoption.Notice) int { return reportOrder(x) - reportOrder(y) })
	began := time.Now()
	var untold atomic.Int64
	a.inParallel(len(notices), func(i int) {
		n := notices[i]
		notices[i] = adoption.Notice{} // Of thousands nobody needs what was told any more.
		if !a.reportsAll && time.Since(began) > a.reportTimeout {
			untold.Add(1)
			var marked bool
			if n, marked = o.later(xp.RefTo(n.Target)); !marked {
				return
			}
		}
		after, err := a.reportOne(ctx, n)
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			a.log.WithField("object", xp.String(n.Target)).WithError(err).Warn("Cannot say on the object where its adoption is")
		}
		if after != nil {
			o.putWritten(after)
		}
	})
	if n := untold.Load(); n > 0 {
		a.log.WithField("objects", n).Info("There is no time in this poll to say on more objects where their adoption is; the next goes on with it")
	}
}

// later is adoption.Snapshot's, while others write.
func (o *observer) later(r xp.Ref) (adoption.Notice, bool) {
	o.adding.Lock()
	defer o.adding.Unlock()

	return o.snapshot.LaterNotice(r)
}

// reportOrder is lower for what is to be told first.
func reportOrder(n adoption.Notice) int {
	if n.Warning {
		return 0
	}

	return 1
}

// reportOne writes what is to be told of one object, and returns that as it is after its mark was
// written; nil if it was not.
func (a *Adopter) reportOne(ctx context.Context, n adoption.Notice) (after *unstructured.Unstructured, err error) {
	if n.Patch != nil {
		if after, err = a.cluster.ApplyChange(ctx, adoption.Change{Target: n.Target, Patch: n.Patch, Configuration: n.Configuration}); err != nil {
			return nil, err
		}
	}
	switch {
	case n.Event == "":
		return after, nil
	case n.Warning:
		return after, a.cluster.Warn(ctx, n.Target, n.Event, n.Message)
	default:
		return after, a.cluster.Note(ctx, n.Target, n.Event, n.Message)
	}
}

// noteHeld takes note of those that are held and of which nothing was told yet.
func (p *poll) noteHeld(o *observer, refs []xp.Ref) {
	for _, n := range adoption.HeldNotices(o.snapshot, refs) {
		if _, again := p.arrived.LoadOrStore(n.Target.GetUID(), true); !again {
			p.held = append(p.held, n)
		}
	}
}

func identityOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	return xp.IdentityOnly(xp.RefTo(u), u.GetUID(), u.GetResourceVersion())
}

// reportsRelease reports whether it is told of an object that it is held no more: of XRs and
// claims.
func reportsRelease(u *unstructured.Unstructured) bool {
	if xp.IsManaged(u) && !xp.IsComposite(u) || xp.IsSchedule(u) {
		return false
	}
	h, err := adoption.HoldOf(u)

	return err == nil && h != nil
}

// releaseNotice returns what is to be told of an object that a step has taken the hold off; ok is
// false if it has not.
func releaseNotice(after *unstructured.Unstructured, why string) (n adoption.Notice, ok bool) {
	h, err := adoption.HoldOf(after)

	return adoption.Notice{Target: identityOf(after), Event: adoption.EventReleased, Message: why}, err == nil && h == nil
}

// reportLate tells of those that have arrived, and then of those that were released, since it was
// last called: of no more than given. Others wait for their release meanwhile, so it is called when
// nothing else is to do.
func (p *poll) reportLate(ctx context.Context, most int) {
	if n := len(p.held) + len(p.free); n > 0 && ctx.Err() != nil {
		p.log.WithField("events", n).WithError(ctx.Err()).Warn("Cannot say on the objects where their adoption is")

		return
	}
	for _, notices := range []*[]adoption.Notice{&p.held, &p.free} {
		now := (*notices)[:min(most, len(*notices))]
		p.inParallel(len(now), func(n int) { p.recordEvent(ctx, now[n]) })
		*notices, most = (*notices)[len(now):], most-len(now)
	}
}

// recordEvent writes an Event of what is in no mark.
func (a *Adopter) recordEvent(ctx context.Context, n adoption.Notice) {
	if _, err := a.reportOne(ctx, n); err != nil {
		a.log.WithFields(logrus.Fields{"object": xp.String(n.Target), "event": n.Event}).WithError(err).Warn("Cannot say on the object where its adoption is")
	}
}
