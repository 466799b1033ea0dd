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

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Reasons of Events. Users and scripts search for them; docs/messages.md explains them.
const (
	EventHeld       = "Held"
	EventWaiting    = "Waiting"
	EventStuck      = "AdoptionStuck"
	EventStopped    = "AdoptionStopped"
	EventReleased   = "Released"
	EventLeftBehind = "UsagesLeftBehind"
)

// A Notice is a report about a held object: an Event, and a change of the mark.
type Notice struct {
	// Target is the object, at the observed version.
	Target *unstructured.Unstructured
	// Event is the reason of the Event and Message its text; Event is "" for none. Warning means
	// that a user must act.
	Event, Message string
	Warning        bool
	// Patch writes the report into the mark, so that no poll repeats it; nil if nothing is waited
	// for yet. Configuration is as in Change.
	Patch, Configuration map[string]any
}

// waitingPrefix begins the report of what a held object waits for. stuckPrefix begins
// Hold.LastReported if the report says that no reconcile is to be expected.
const (
	waitingPrefix = "not adopted yet, waiting for "
	stuckPrefix   = "stuck:"
)

// stopped is Hold.LastReported if no operation works on the hold any more.
const stopped = "stopped"

// HeldNotices returns the first notices of the held objects that refs name, and of their claims, in
// a stable order. It leaves out objects that have had a report.
func HeldNotices(s *Snapshot, refs []xp.Ref) []Notice {
	requested := xp.IDs(refs)
	var notices []Notice
	for _, f := range s.held() {
		if f.hold.LastReported != "" {
			continue
		}
		if bound := s.isBound(f); requested[f.ID()] || bound && requested[f.bound.ID()] {
			notices = append(notices, Notice{Target: f.identity(), Event: EventHeld, Message: fmt.Sprintf("held by %s: %s", f.hold.By(), f.hold.Reason)})
		}
	}

	return notices
}

// Changes returns the notices of held objects that wait for another cause than at their last
// report, in a stable order. recent are the objects that have not waited long. They need no Event,
// only a mark that the start of the hold was reported.
func Changes(s *Snapshot, plans map[xp.ID]Plan, recent map[xp.ID]bool) []Notice {
	var notices []Notice
	for _, f := range s.held() {
		id := f.ID()
		plan, ok := plans[id]
		if !ok && s.isBound(f) {
			id = f.bound.ID()
			plan, ok = plans[id]
		}
		if !ok || plan.Done {
			continue
		}
		if n, ok := s.notice(f, plan, recent[id]); ok {
			notices = append(notices, n)
		}
	}

	return notices
}

// notice returns the notice for a held object; ok is false if there is nothing new to report.
func (s *Snapshot) notice(f *observedObject, plan Plan, recent bool) (n Notice, ok bool) {
	switch {
	case plan.Failed.IsZero() && len(plan.Waiting) == 0:
		return Notice{}, false
	case recent:
		return s.LaterNotice(f.Ref)
	}
	n = Notice{Event: EventWaiting, Message: waitingPrefix + FirstReasons(plan.Waiting)}
	reported := plan.Fingerprint()
	switch {
	case !plan.Failed.IsZero():
		n.Event, n.Message, n.Warning = EventStopped, plan.Failed.String(), true
	case plan.Stuck:
		n.Event, n.Warning, reported = EventStuck, true, stuckPrefix+reported
	}
	if f.hold.LastReported == reported {
		return Notice{}, false
	}
	why := n.Message
	if f.hold.Clone != "" {
		why = f.hold.Reason // The Plan failed with this reason.
	}

	return s.explained(f, n, why, reported), true
}

// LaterNotice returns the notice for an object that gets its report later. It marks only that the
// start of the hold was reported. ok is false if that is marked, or the object is not held.
func (s *Snapshot) LaterNotice(r xp.Ref) (n Notice, ok bool) {
	f := s.observed[r.ID()]
	if f == nil || f.err != nil || f.hold == nil || f.hold.LastReported != "" {
		return Notice{}, false
	}

	return s.explained(f, Notice{}, f.hold.Reason, hold.ReportedStart), true
}

// explained returns the notice for a held object with the change that writes a reason (with the next
// step) and the fingerprint of what was reported into the mark.
func (s *Snapshot) explained(f *observedObject, n Notice, why, reported string) Notice {
	h := *f.hold
	h.Reason, h.LastReported = why, reported
	if h.Polled == "" && !s.now.IsZero() {
		h.Polled = s.now.UTC().Format(time.RFC3339)
	}
	n.Target = f.identity()
	n.Patch = s.key.MarkPatch(n.Target, &h)
	if u := s.get(f.ID()); u != nil {
		n.Configuration, _ = hold.Change{Target: u, Patch: n.Patch}.Applied()
	}

	return n
}

// Stopped returns the notice that no operation works on u any more, with a mark signed by k. It fails
// if u is not held.
func Stopped(k hold.Key, u *unstructured.Unstructured, why string) (Notice, error) {
	h, err := k.HoldOf(u)
	if err != nil {
		return Notice{}, err
	}
	if h == nil {
		return Notice{}, fmt.Errorf("cannot explain the hold of %s: it has none", xp.String(u))
	}
	h.Reason, h.LastReported = why, stopped

	return Notice{Target: u, Event: EventStopped, Message: why, Warning: true, Patch: k.MarkPatch(u, h)}, nil
}

// Forged returns the errors of all observed marks that are not this plugin's, in a stable order.
func (s *Snapshot) Forged() []error {
	var forged []error
	for _, f := range s.observed {
		if errors.Is(f.err, hold.ErrForged) {
			forged = append(forged, f.err)
		}
	}
	slices.SortFunc(forged, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })

	return forged
}

// held returns the held XRs and claims, in a stable order. It includes a copy of a claim that never
// had an XR: only its hold shows that it is one.
func (s *Snapshot) held() []*observedObject {
	var held []*observedObject
	for _, f := range s.observed {
		if f.err == nil && f.hold != nil && (f.composite || f.claim || f.hold.Clone != "" && !f.marked) {
			held = append(held, f)
		}
	}
	slices.SortFunc(held, func(a, b *observedObject) int { return a.Compare(b.Ref) })

	return held
}

// isBound reports whether f is a claim that is bound to the XR that it names.
func (s *Snapshot) isBound(f *observedObject) bool {
	if !f.claim || f.bound == (xp.Ref{}) {
		return false
	}
	claim, xr := s.Get(f.Ref), s.Get(f.bound)

	return xr != nil && xp.Bound(xp.ClaimFrom(claim), xp.CompositeFrom(xr))
}

// FirstReasons returns the first three of the waiting messages, and the number of the others.
func FirstReasons(waiting []reason.Message) string {
	const few = 3
	s := reason.Join(waiting[:min(few, len(waiting))])
	if more := len(waiting) - few; more > 0 {
		s += fmt.Sprintf("; and %d more", more)
	}

	return s
}

// Fingerprint returns a short text, the same for all Plans that wait for the same reasons and
// kinds, or have failed with the same message. Names and controllers' messages do not count.
func (p Plan) Fingerprint() string {
	var causes []string
	for _, why := range p.Waiting {
		causes = append(causes, string(why.Code))
	}
	for _, gvk := range p.On {
		causes = append(causes, gvk.String())
	}
	if p.Stuck {
		causes = append(causes, EventStuck)
	}
	if !p.Failed.IsZero() {
		causes = []string{p.Failed.String()}
	}
	slices.Sort(causes) // Their order and repetition do not matter.
	h := fnv.New64a()
	for _, c := range slices.Compact(causes) {
		_, _ = h.Write([]byte(c + "\n")) // It never fails.
	}

	return strconv.FormatUint(h.Sum64(), 16)
}
