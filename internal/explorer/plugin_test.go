package explorer

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A view is what the plugin observes.
type view struct {
	objects   [2*maxNodes + 1]object
	revisions set
	revised   uint8
}

// A plan is what the plugin writes after an observation.
type plan []write

// A write is the write of one object. step is the number of the step if the object is a tenant's.
type write struct {
	instance instance
	after    object
	step     set
}

// Verbs of the plugin, other than writes.
const (
	verbLooks  = "looks"
	verbKilled = "is killed before it writes"
	verbEnds   = "ends its poll"
)

// noon is the time of every observation. The times in holds matter to users only.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// pluginSteps are the steps of a poll (internal/adopter/poll.go, takeSteps). It observes, then writes one
// object after another, in any order, each only if it has not changed since. A killed one has
// written some.
func (w *world) pluginSteps(s *state, emit func(step)) {
	if s.plan != 0 {
		next := *s
		next.plan, next.pending, next.done = 0, 0, 0
		emit(step{label: label{plugin, verbKilled, -1}, next: next})
		w.write(s, emit)

		return
	}
	if !s.velero.polled {
		return
	}
	if s.done != 0 {
		next := *s
		next.done = 0
		emit(step{label: label{plugin, verbEnds, -1}, next: next})
	}
	id, harm := w.planFor(s)
	next := *s
	for n, change := range w.plans[id] {
		if s.done&change.step == 0 {
			next.plan, next.pending = id, next.pending|with(n)
		}
	}
	if next.plan != 0 || harm != 0 {
		emit(step{label: label{plugin, verbLooks, -1}, next: next, damage: harm})
	}
}

func (w *world) write(s *state, emit func(step)) {
	for n, change := range w.plans[s.plan] {
		if !s.pending.has(n) {
			continue
		}
		next := *s
		next.pending &^= with(n)
		next.done |= change.step
		before := &s.objects[change.instance]
		next.objects[change.instance] = change.after
		verb := "changes"
		var harm damage
		switch after := change.after; {
		case before.mark != 0 && after.mark == 0:
			verb = "releases"
			if w.isXR(change.instance) && !w.isTenants(change.instance) && !w.proven(s, change.instance) && !w.isGivenUp(s, change.instance) {
				harm = unproven
			}
		case before.paused && !after.paused:
			verb = "unpauses"
		}
		emit(step{label: label{plugin, verb, int8(change.instance)}, next: next, damage: harm})
	}
}

// proven reports whether an XR controls all that it had, except what a user has removed from its
// Composition.
func (w *world) proven(s *state, i instance) bool {
	o := &s.objects[i]
	if w.paused.has(nodeOf(i)) {
		return true
	}
	for _, c := range w.children(nodeOf(i)) {
		child := &s.objects[original(c)]
		if !w.isRemoved(s, c) && (!o.refs.has(original(c)) || !child.live || child.controller != ownedBy(i, o.life)) {
			return false
		}
	}

	return true
}

// planFor returns the number of the plan for the observable state, 0 if there is nothing to write,
// and the damage in the plan.
func (w *world) planFor(s *state) (uint32, damage) {
	v := view{objects: s.objects, revisions: s.revisions, revised: s.revised}
	for i := range v.objects {
		if !v.objects[i].live {
			v.objects[i] = object{}
		}
	}
	id, ok := w.planIDs[v]
	if ok {
		return id, w.planDamage[v]
	}
	p, harm := w.computePlan(&v)
	if len(p) > 0 {
		id = uint32(len(w.plans))
		w.plans = append(w.plans, p)
	}
	w.planIDs[v] = id
	if harm != 0 {
		w.planDamage[v] = harm
	}

	return id, harm
}

// observed returns the plugin's snapshot, the objects that it plans for, and the instance of each
// object.
func (w *world) observed(v *view) (snapshot *adoption.Snapshot, subjects []xp.Ref, instances map[xp.ID]instance) {
	snapshot = adoption.NewSnapshot(w.key)
	snapshot.SetTime(noon)
	refs := []xp.Ref{}
	instances = map[xp.ID]instance{}
	for i := range v.objects {
		o := v.objects[i]
		if !o.live {
			continue
		}
		u := w.encode(i, o)
		instances[xp.RefTo(u).ID()] = i
		if o.restored {
			snapshot.AddRestored(u)
		} else {
			snapshot.Add(u)
		}
		if i == theClaim {
			refs = append(refs, xp.RefTo(u))
		}
	}
	for n := range w.xrs {
		if v.revisions.has(n) {
			snapshot.Add(w.revision(n, 1))
		}
		if int(v.revised) > 0 && w.parent[v.revised-1] == n {
			snapshot.Add(w.revision(n, 2))
		}
	}
	if w.tenants != 0 {
		w.addUnrelated(snapshot)
	}
	if w.judged {
		w.investigate(snapshot)
	}

	return snapshot, append(snapshot.Subjects(), refs...), instances
}

// computePlan runs the plugin's planning for all that it observes.
func (w *world) computePlan(v *view) (p plan, harm damage) {
	snapshot, subjects, instances := w.observed(v)
	changed := map[*unstructured.Unstructured]bool{}
	for _, r := range subjects {
		var changes []hold.Change
		if w.forced {
			changes = []hold.Change{adoption.AssessForce(snapshot, r).Change}
		} else {
			next := adoption.Next(snapshot, r)
			if next.Lost {
				w.losses[*v] = true
			}
			changes = append(slices.Clone(next.Also), next.Change)
		}
		for _, c := range changes {
			if c.Patch == nil || changed[c.Target] {
				continue
			}
			changed[c.Target] = true
			i, ok := instances[xp.RefTo(c.Target).ID()]
			if subject := instances[r.ID()]; w.tenants != 0 {
				harm |= w.damageOf(v, subject, i, ok)
			}
			if !ok {
				continue
			}
			if after := w.decode(xptest.Merge(c.Target, c.Patch), v.objects[i]); after != v.objects[i] {
				p = append(p, write{instance: i, after: after, step: w.stepOf(i, c)})
			}
		}
	}
	if w.tenants != 0 && w.isInfluenced(v, snapshot, subjects, instances) {
		harm |= influenced
	}

	return p, harm
}
