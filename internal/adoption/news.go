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

// News is what is to be told of a held XR or claim: in its mark, and in an Event.
type News struct {
	// Target says who has the hold, and as of which version.
	Target *unstructured.Unstructured
	// Event is the reason of the Event, "" if there is to be none, and Message what it says. Bad says that somebody has to do something.
	Event, Message string
	Bad            bool
	// Patch writes the same into the mark, so that no poll tells it again; nil if nobody waits for anything yet. Configuration is as that of a Change.
	Patch, Configuration map[string]any
}

// CauseStuck is the cause of what waits for a word that probably doesn't come.
const CauseStuck = "stuck"

// arrived is what somebody was told of last if that was only that the hold is on.
const arrived = "arrived"

// stopped is what somebody was told of last if nothing works on a hold any more.
const stopped = "stopped"

// Arrivals returns what is to be told of those that refs name, and of their claims, which are held and of which nothing was told yet, in a stable order.
func Arrivals(w *World, refs []xp.Ref) []News {
	meant := map[xp.ID]bool{}
	for _, r := range refs {
		meant[r.ID()] = true
	}
	var news []News
	for _, f := range w.held() {
		if f.hold.Told != "" {
			continue
		}
		if bound := w.isBound(f); meant[f.ID()] || bound && meant[f.bound.ID()] {
			news = append(news, News{Target: f.outline(), Event: EventHeld, Message: fmt.Sprintf("held by the Restore %s: %s", f.hold.Restore, f.hold.Reason)})
		}
	}

	return news
}

// Changes returns what is to be told of those that are held and wait for something else than when somebody was told last, in a stable order. Of those that have
// not waited for it for long, passing, nobody needs to be told, but that somebody was told of their arrival must be marked.
func Changes(w *World, plans map[xp.ID]Plan, passing map[xp.ID]bool) []News {
	var news []News
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
		if n, ok := f.news(plan, passing[id], w.now); ok {
			news = append(news, w.applied(f, n))
		}
	}

	return news
}

// news returns what is to be told of what is held; ok is false if that was told already, or there is nothing.
func (f *fact) news(plan Plan, passing bool, now time.Time) (n News, ok bool) {
	h := f.hold
	if plan.Failed == "" && len(plan.Waiting) == 0 || passing && h.Told != "" {
		return News{}, false
	}
	if passing {
		return f.later(now)
	}
	n = News{Target: f.outline(), Event: EventWaiting, Message: waitingFor + Few(plan.Waiting)}
	told := plan.Gist()
	reason := n.Message
	switch {
	case plan.Failed != "":
		n.Event, n.Message, n.Bad = EventStopped, plan.Failed, true
		reason = plan.Failed
	case slices.Contains(plan.Causes, CauseStuck):
		n.Event, n.Bad, told = EventStuck, true, toldStuck+told
	}
	if h.Told == told || plan.Brief && (!n.Bad || strings.HasPrefix(h.Told, toldStuck)) {
		return News{}, false
	}
	if h.Clone != "" {
		reason = h.Reason // It is what the Plan failed with.
	}
	p, err := f.explain(reason, told, now)
	n.Patch = p

	return n, err == nil
}

// Later returns what is to be marked of what r names if somebody is told of it later: that its arrival was told. ok is false if that is marked, or nothing
// holds it.
func (w *World) Later(r xp.Ref) (n News, ok bool) {
	f := w.fact(r.ID())
	if f == nil || f.err != nil || f.hold == nil {
		return News{}, false
	}

	n, ok = f.later(w.now)

	return w.applied(f, n), ok
}

// applied returns what is to be told of an object with what is to be applied to it, as it is now.
func (w *World) applied(f *fact, n News) News {
	if u := w.get(f.ID()); n.Patch != nil && u != nil && f.isOf(u) {
		n.Configuration, _ = Change{Target: u, Patch: n.Patch}.Applied()
	}

	return n
}

func (f *fact) later(now time.Time) (n News, ok bool) {
	if f.hold.Told != "" {
		return News{}, false
	}
	p, err := f.explain(f.hold.Reason, arrived, now)

	return News{Target: f.outline(), Patch: p}, err == nil
}

// Stopped returns what is to be told of what nothing works on any more. It fails if nothing holds it.
func (k Key) Stopped(u *unstructured.Unstructured, why string) (News, error) {
	p, err := k.Explain(u, why, stopped)

	return News{Target: u, Event: EventStopped, Message: why, Bad: true, Patch: p}, err
}

// Forged returns why the marks do not count that were observed and that this plugin did not write, in a stable order.
func (w *World) Forged() []error {
	var forged []error
	w.each(func(f *fact) {
		if errors.Is(f.err, ErrForged) {
			forged = append(forged, f.err)
		}
	})
	slices.SortFunc(forged, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })

	return forged
}

// held returns the XRs and claims that are held, in a stable order. A copy of a claim that never had an XR has nothing of a claim but its hold.
func (w *World) held() []*fact {
	var held []*fact
	w.each(func(f *fact) {
		if f.err == nil && f.hold != nil && (f.composite || f.claim || f.hold.Clone != "" && !f.marked) {
			held = append(held, f)
		}
	})
	slices.SortFunc(held, func(a, b *fact) int { return a.Compare(b.Ref) })

	return held
}

// isBound tells whether it is of a claim that is bound to the XR that it names.
func (w *World) isBound(f *fact) bool {
	if !f.claim || f.bound == (xp.Ref{}) {
		return false
	}
	claim, xr := w.Get(f.Ref), w.Get(f.bound)

	return xr != nil && xp.Bound(xp.ClaimFrom(claim), xp.CompositeFrom(xr))
}

// Few names the first of what is waited for.
func Few(waiting []string) string {
	const few = 3
	s := strings.Join(waiting[:min(few, len(waiting))], "; ")
	if more := len(waiting) - few; more > 0 {
		s += fmt.Sprintf("; and %d more", more)
	}

	return s
}

// Gist is the same for two Plans that wait for the same, or have failed with the same, in general.
func (p Plan) Gist() string {
	if p.Failed != "" {
		return digest([]string{p.Failed})
	}

	return digest(p.Causes)
}

// digest is short and the same for the same causes, whatever their order and however often each comes.
func digest(causes []string) string {
	causes = slices.Clone(causes)
	slices.Sort(causes)
	h := fnv.New64a()
	for _, c := range slices.Compact(causes) {
		_, _ = h.Write([]byte(c + "\n")) // It never fails.
	}

	return strconv.FormatUint(h.Sum64(), 16)
}
