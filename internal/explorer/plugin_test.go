package explorer

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A view is what the plugin observes.
type view struct {
	objects   [2*maxNodes + 1]object
	revisions set
	revised   uint8
}

// A plan is what the plugin writes after it has looked: the objects as they are then.
type plan []write

type write struct {
	instance instance
	after    object
}

// noon is when everything is observed: what a hold says of time is only said to people.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// pluginSteps are those of a poll (internal/live/poll.go, take): it looks, and then writes one object after another, in any order, as long as each is as it was
// when it looked. One that is killed has written some of them.
func (w *world) pluginSteps(s *state, emit func(step)) {
	if s.plan != 0 {
		next := *s
		next.plan, next.left = 0, 0
		emit(step{label: label{plugin, "is killed before it writes", -1}, next: next})
		w.write(s, emit)

		return
	}
	if !s.velero.polled {
		return
	}
	if id := w.planFor(s); id != 0 {
		next := *s
		next.plan, next.left = id, with(len(w.plans[id]))-1
		emit(step{label: label{plugin, "looks", -1}, next: next})
	}
}

func (w *world) write(s *state, emit func(step)) {
	for n, change := range w.plans[s.plan] {
		if !s.left.has(n) {
			continue
		}
		next := *s
		next.left &^= with(n)
		before := &s.objects[change.instance]
		next.objects[change.instance] = change.after
		verb := "changes"
		var harm damage
		switch after := change.after; {
		case before.mark != 0 && after.mark == 0:
			verb = "releases"
			if w.isXR(change.instance) && !w.proven(s, change.instance) {
				harm = unproven
			}
		case before.paused && !after.paused:
			verb = "unpauses"
		}
		emit(step{label: label{plugin, verb, int8(change.instance)}, next: next, damage: harm})
	}
}

// proven tells whether an XR controls all that it had, but what a person has taken out of its Composition.
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

// planFor returns the number of the plan for what can be observed; 0 if there is nothing to write.
func (w *world) planFor(s *state) uint32 {
	v := view{objects: s.objects, revisions: s.revisions, revised: s.revised}
	for i := range v.objects {
		if !v.objects[i].live {
			v.objects[i] = object{}
		}
	}
	id, ok := w.planIDs[v]
	if ok {
		return id
	}
	if p := w.think(&v); len(p) > 0 {
		id = uint32(len(w.plans))
		w.plans = append(w.plans, p)
	}
	w.planIDs[v] = id

	return id
}

// think has the plugin plan for all that it observes.
func (w *world) think(v *view) plan {
	world := adoption.NewWorld(adoption.Unverified)
	world.SetTime(noon)
	refs := []xp.Ref{}
	instances := map[*unstructured.Unstructured]instance{}
	for i := range v.objects {
		o := v.objects[i]
		if !o.live {
			continue
		}
		u := w.encode(i, o)
		instances[u] = i
		if o.restored {
			world.AddRestored(u)
		} else {
			world.Add(u)
		}
		if i == theClaim {
			refs = append(refs, xp.RefTo(u))
		}
	}
	for n := range w.xrs {
		if v.revisions.has(n) {
			world.Add(xptest.Revision(revisionName(n, 1), w.backup[original(n)]))
		}
		if int(v.revised) > 0 && w.parent[v.revised-1] == n {
			world.Add(xptest.Revision(revisionName(n, 2), w.backup[original(n)]))
		}
	}
	var p plan
	changed := map[*unstructured.Unstructured]bool{}
	for _, r := range append(world.Subjects(), refs...) {
		var changes []adoption.Change
		if w.forced {
			changes = []adoption.Change{adoption.Force(world, r).Change}
		} else {
			next := adoption.Next(world, r)
			changes = append(slices.Clone(next.Also), next.Change)
		}
		for _, c := range changes {
			if c.Patch == nil || changed[c.Target] {
				continue
			}
			changed[c.Target] = true
			i := instances[c.Target]
			p = append(p, write{instance: i, after: w.decode(xptest.Merge(c.Target, c.Patch), v.objects[i])})
		}
	}

	return p
}
