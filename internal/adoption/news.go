package adoption

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

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
	// Target has the hold.
	Target *unstructured.Unstructured
	// Event is the reason of the Event, "" if there is to be none, and Message what it says. Bad says that somebody has to do something.
	Event, Message string
	Bad            bool
	// Patch writes the same into the mark, so that no poll tells it again; nil if nobody waits for anything yet.
	Patch map[string]any
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
	for _, u := range w.held() {
		xr, bound := boundXR(w, u)
		if !meant[xp.RefTo(u).ID()] && (!bound || !meant[xr.ID()]) {
			continue
		}
		if h, err := w.holdOf(u); err == nil && h.Told == "" {
			news = append(news, News{Target: u, Event: EventHeld, Message: fmt.Sprintf("held by the Restore %s: %s", h.Restore, h.Reason)})
		}
	}

	return news
}

// Changes returns what is to be told of those that are held and wait for something else than when somebody was told last, in a stable order. Of those that have
// not waited for it for long, passing, nobody needs to be told, but that somebody was told of their arrival must be marked.
func Changes(w *World, plans map[xp.ID]Plan, passing map[xp.ID]bool) []News {
	var news []News
	for _, u := range w.held() {
		id := xp.RefTo(u).ID()
		plan, ok := plans[id]
		r, isBound := boundXR(w, u)
		if !ok && isBound {
			id = r.ID()
			plan, ok = plans[id]
		}
		if !ok || plan.Done {
			continue
		}
		if n, ok := w.newsOf(u, plan, passing[id]); ok {
			news = append(news, n)
		}
	}

	return news
}

// newsOf returns what is to be told of what is held; ok is false if that was told already, or there is nothing.
func (w *World) newsOf(u *unstructured.Unstructured, plan Plan, passing bool) (n News, ok bool) {
	h, err := w.holdOf(u)
	if err != nil || h == nil || plan.Failed == "" && len(plan.Waiting) == 0 || passing && h.Told != "" {
		return News{}, false
	}
	if passing {
		return Later(u)
	}
	n = News{Target: u, Event: EventWaiting, Message: waitingFor + Few(plan.Waiting)}
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
	n.Patch, err = Explain(u, reason, told)

	return n, err == nil
}

// Later returns what is to be marked of what somebody is told of later: that its arrival was told. ok is false if that is marked, or nothing holds it.
func Later(u *unstructured.Unstructured) (n News, ok bool) {
	h, err := HoldOf(u)
	if err != nil || h == nil || h.Told != "" {
		return News{}, false
	}
	p, err := Explain(u, h.Reason, arrived)

	return News{Target: u, Patch: p}, err == nil
}

// Stopped returns what is to be told of what nothing works on any more. It fails if nothing holds it.
func Stopped(u *unstructured.Unstructured, why string) (News, error) {
	p, err := Explain(u, why, stopped)

	return News{Target: u, Event: EventStopped, Message: why, Bad: true, Patch: p}, err
}

// held returns the XRs and claims that are held, in a stable order.
func (w *World) held() []*unstructured.Unstructured {
	var held []*unstructured.Unstructured
	for _, u := range w.objects {
		if f := w.factOf(u); f.err == nil && f.hold != nil && (f.composite || f.key == AnnotationClaimHold) {
			held = append(held, u)
		}
	}
	slices.SortFunc(held, func(a, b *unstructured.Unstructured) int { return xp.RefTo(a).Compare(xp.RefTo(b)) })

	return held
}

// boundXR returns the XR that a claim is bound to.
func boundXR(w *World, u *unstructured.Unstructured) (xp.Ref, bool) {
	if !xp.IsClaim(u) {
		return xp.Ref{}, false
	}
	r, ok := xp.ClaimFrom(u).CompositeRef()
	if !ok {
		return xp.Ref{}, false
	}
	xr := w.Get(r)

	return r, xr != nil && xp.Bound(xp.ClaimFrom(u), xp.CompositeFrom(xr))
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
