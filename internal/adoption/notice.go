package adoption

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Reasons of Events. People and scripts look for them; docs/release.md says what they mean.
const (
	EventHeld       = "Held"
	EventWaiting    = "Waiting"
	EventStuck      = "AdoptionStuck"
	EventStopped    = "AdoptionStopped"
	EventReleased   = "Released"
	EventLeftBehind = "UsagesLeftBehind"
)

// Notice is what is to be told of a held XR or claim: in its mark, and in an Event.
type Notice struct {
	// Target says who has the hold, and as of which version.
	Target *unstructured.Unstructured
	// Event is the reason of the Event, "" if there is to be none, and Message what it says. Bad
	// says that somebody has to do something.
	Event, Message string
	Warning        bool
	// Patch writes the same into the mark, so that no poll tells it again; nil if nobody waits for
	// anything yet. Configuration is as that of a Change.
	Patch, Configuration map[string]any
}

// CauseStuck is the cause of what waits for a word that probably doesn't come.
const CauseStuck = "stuck"

// heldNoticeStep is what somebody was told of last if that was only that the hold is on.
const heldNoticeStep = "arrived"

// stopped is what somebody was told of last if nothing works on a hold any more.
const stopped = "stopped"

// HeldNotices returns what is to be told of those that refs name, and of their claims, which are
// held and of which nothing was told yet, in a stable order.
func HeldNotices(w *Snapshot, refs []xp.Ref) []Notice {
	meant := map[xp.ID]bool{}
	for _, r := range refs {
		meant[r.ID()] = true
	}
	var notices []Notice
	for _, f := range w.held() {
		if f.hold.LastReported != "" {
			continue
		}
		if bound := w.isBound(f); meant[f.ID()] || bound && meant[f.bound.ID()] {
			notices = append(notices, Notice{Target: f.identity(), Event: EventHeld, Message: fmt.Sprintf("held by the Restore %s: %s", f.hold.Restore, f.hold.Reason)})
		}
	}

	return notices
}

// Changes returns what is to be told of those that are held and wait for something else than when
// somebody was told last, in a stable order. Of those that have not waited for it for long,
// passing, nobody needs to be told, but that somebody was told of their arrival must be marked.
func Changes(w *Snapshot, plans map[xp.ID]Plan, passing map[xp.ID]bool) []Notice {
	var notices []Notice
	for _, f := range w.held() {
		id := f.ID()
		plan, ok := plans[id]
		if !ok && w.isBound(f) {
			id = f.bound.ID()
			plan, ok = plans[id]
		}
		if !ok || plan.Done {
			continue
		}
		if n, ok := f.notice(plan, passing[id], w.now); ok {
			notices = append(notices, w.applied(f, n))
		}
	}

	return notices
}

// notice returns what is to be told of what is held; ok is false if that was told already, or there
// is nothing.
func (f *observedObject) notice(plan Plan, passing bool, now time.Time) (n Notice, ok bool) {
	h := f.hold
	if plan.Failed == "" && len(plan.Waiting) == 0 || passing && h.LastReported != "" {
		return Notice{}, false
	}
	if passing {
		return f.laterNotice(now)
	}
	n = Notice{Target: f.identity(), Event: EventWaiting, Message: waitingPrefix + FirstReasons(plan.Waiting)}
	told := plan.Fingerprint()
	reason := n.Message
	switch {
	case plan.Failed != "":
		n.Event, n.Message, n.Warning = EventStopped, plan.Failed, true
		reason = plan.Failed
	case slices.Contains(plan.Causes, CauseStuck):
		n.Event, n.Warning, told = EventStuck, true, stuckPrefix+told
	}
	if h.LastReported == told || plan.WithoutComposed && (!n.Warning || strings.HasPrefix(h.LastReported, stuckPrefix)) {
		return Notice{}, false
	}
	if h.Clone != "" {
		reason = h.Reason // It is what the Plan failed with.
	}
	p, err := f.explain(reason, told, now)
	n.Patch = p

	return n, err == nil
}

// LaterNotice returns what is to be marked of what r names if somebody is told of it later: that its
// arrival was told. ok is false if that is marked, or nothing holds it.
func (s *Snapshot) LaterNotice(r xp.Ref) (n Notice, ok bool) {
	f := s.observed(r.ID())
	if f == nil || f.err != nil || f.hold == nil {
		return Notice{}, false
	}

	n, ok = f.laterNotice(s.now)

	return s.applied(f, n), ok
}

// applied returns what is to be told of an object with what is to be applied to it, as it is now.
func (s *Snapshot) applied(f *observedObject, n Notice) Notice {
	if u := s.get(f.ID()); n.Patch != nil && u != nil && f.isOf(u) {
		n.Configuration, _ = Change{Target: u, Patch: n.Patch}.Applied()
	}

	return n
}

func (f *observedObject) laterNotice(now time.Time) (n Notice, ok bool) {
	if f.hold.LastReported != "" {
		return Notice{}, false
	}
	p, err := f.explain(f.hold.Reason, heldNoticeStep, now)

	return Notice{Target: f.identity(), Patch: p}, err == nil
}

// Stopped returns what is to be told of what nothing works on any more. It fails if nothing holds
// it.
func (k Key) Stopped(u *unstructured.Unstructured, why string) (Notice, error) {
	p, err := k.Explain(u, why, stopped)

	return Notice{Target: u, Event: EventStopped, Message: why, Warning: true, Patch: p}, err
}

// Forged returns why the marks do not count that were observed and that this plugin did not write,
// in a stable order.
func (s *Snapshot) Forged() []error {
	var forged []error
	s.each(func(f *observedObject) {
		if errors.Is(f.err, ErrForged) {
			forged = append(forged, f.err)
		}
	})
	slices.SortFunc(forged, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })

	return forged
}

// held returns the XRs and claims that are held, in a stable order. A copy of a claim that never
// had an XR has nothing of a claim but its hold.
func (s *Snapshot) held() []*observedObject {
	var held []*observedObject
	s.each(func(f *observedObject) {
		if f.err == nil && f.hold != nil && (f.composite || f.claim || f.hold.Clone != "" && !f.marked) {
			held = append(held, f)
		}
	})
	slices.SortFunc(held, func(a, b *observedObject) int { return a.Compare(b.Ref) })

	return held
}

// isBound reports whether it is of a claim that is bound to the XR that it names.
func (s *Snapshot) isBound(f *observedObject) bool {
	if !f.claim || f.bound == (xp.Ref{}) {
		return false
	}
	claim, xr := s.Get(f.Ref), s.Get(f.bound)

	return xr != nil && xp.Bound(xp.ClaimFrom(claim), xp.CompositeFrom(xr))
}

// FirstReasons names the first of what is waited for.
func FirstReasons(waiting []string) string {
	const few = 3
	s := strings.Join(waiting[:min(few, len(waiting))], "; ")
	if more := len(waiting) - few; more > 0 {
		s += fmt.Sprintf("; and %d more", more)
	}

	return s
}

// Fingerprint is the same for two Plans that wait for the same, or have failed with the same, in
// general.
func (p Plan) Fingerprint() string {
	if p.Failed != "" {
		return digest([]string{p.Failed})
	}

	return digest(p.Causes)
}

// digest is short and the same for the same causes, whatever their order and however often each
// comes.
func digest(causes []string) string {
	causes = slices.Clone(causes)
	slices.Sort(causes)
	h := fnv.New64a()
	for _, c := range slices.Compact(causes) {
		_, _ = h.Write([]byte(c + "\n")) // It never fails.
	}

	return strconv.FormatUint(h.Sum64(), 16)
}
