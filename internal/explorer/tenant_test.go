package explorer

import (
	"encoding/json"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// isTenants reports whether an instance is in the tenant's tree.
func (w *world) isTenants(i instance) bool {
	if i == theClaim {
		return w.tenants != 0
	}

	return i >= 0 && w.tenants.has(nodeOf(i))
}

// unrelated are objects without a controller that the tenant's mark names: one that no restore has
// created, one that a restore has, and one outside of all namespaces.
func unrelated() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		xptest.Object("v1", "ResourceQuota", xptest.Namespace, "limits"), xptest.Object("v1", "ConfigMap", xptest.Namespace, "settings"),
		xptest.Object("v1", "Namespace", "", "team-b"),
	}
}

// addUnrelated adds them to what the plugin observes. If the mutation accepts any resource, they
// look as much like the XR's own as they can.
func (w *world) addUnrelated(snapshot *adoption.Snapshot) {
	xr := snapshot.Get(xp.RefTo(w.backup[original(0)]))
	if w.acceptAny && xr != nil {
		xr = xptest.With(xr, xptest.Refs(unrelated()...))
		snapshot.AddRestored(xr)
	}
	for n, u := range unrelated() {
		switch {
		case w.acceptAny:
			snapshot.AddRestored(xptest.With(u, xptest.Labelled(xp.LabelComposite, w.nameOf(original(0)))))
		case n == 1:
			snapshot.AddRestored(u)
		default:
			snapshot.Add(u)
		}
	}
}

// forge returns the mark that the tenant makes. By it a user had paused the XR, which makes the
// plugin write owners, and it names objects of others.
func (w *world) forge() string {
	yes := "true"
	h := hold.Hold{Restore: "velero/monday", Since: noon.Format(time.RFC3339), Reason: "forged", Paused: &yes}
	for _, u := range unrelated() {
		h.Refs = append(h.Refs, xp.RefTo(u))
	}
	for n := range w.parent {
		if n >= w.xrs && !w.tenants.has(n) {
			h.Refs = append(h.Refs, xp.RefTo(w.bare(original(n), &object{})))
		}
	}
	b, err := json.Marshal(h)
	must(err)

	return string(b)
}

// reach returns the instance that the tenant may write.
func (w *world) reach() instance {
	if w.claimed {
		return theClaim
	}

	return original(0)
}

// tenantSteps are the steps of a tenant who may write annotations and labels of one XR, or of its
// claim, at any time and any number of times. The tenant can keep a mark that the plugin has
// written there, and put it back.
func (w *world) tenantSteps(s *state, emit func(step)) {
	i := w.reach()
	if w.tenants == 0 || !s.objects[i].live {
		return
	}
	write := func(verb string, change func(o *object)) {
		next := *s
		change(&next.objects[i])
		if next != *s {
			emit(step{label: label{tenant, verb, int8(i)}, next: next})
		}
	}
	write("forges a mark on", func(o *object) { o.mark = w.forgery })
	write("removes the mark of", func(o *object) { o.mark = 0 })
	for m := range w.marks {
		if s.seenMarks.has(m) {
			write("puts back a mark of", func(o *object) { o.mark = uint16(m) })
		}
	}
	write("pauses", func(o *object) { o.paused = true })
	write("unpauses", func(o *object) { o.paused = false })
	if !w.labels {
		return
	}
	write("labels", func(o *object) { o.restored = true })
	write("takes the label off", func(o *object) { o.restored = false })
}

// harmless are the damages that a tenant may do to the tenant's own tree.
const harmless = created | deleted | early

// keepMark gives the tenant the mark that a step has left.
func (w *world) keepMark(t *step) {
	if w.tenants == 0 {
		return
	}
	if m := t.next.objects[w.reach()].mark; m != 0 && m != w.forgery {
		if m >= 16 {
			panic("there are more marks than a set has room for")
		}
		t.next.seenMarks |= with(int(m))
	}
}

// damageOf returns the damage of a plan for a subject that changes an instance. ok is false for an
// object outside of all trees.
func (w *world) damageOf(v *view, subject, i instance, ok bool) (harm damage) {
	if !ok || w.isTenants(subject) != w.isTenants(i) {
		harm = changedOthers
	}
	if v.objects[subject].mark == w.forgery || ok && v.objects[i].mark == w.forgery {
		harm |= trustedForgery
	}

	return harm
}

// stepOf returns the number of a step on the tenant's objects. It distinguishes them as
// internal/adopter, step.go: a process lifts the hold of an object once, and takes any other step
// once.
func (w *world) stepOf(i instance, c hold.Change) set {
	if w.noOnce || !w.isTenants(i) {
		return 0
	}
	name := c.Step
	if c.Lifts() {
		name = "lift"
	}
	name += " " + string(c.Target.GetUID())
	id, ok := w.stepIDs[name]
	if !ok {
		id = len(w.stepIDs)
		w.stepIDs[name] = id
	}
	if id >= 16 {
		panic("there are more steps than a set has room for")
	}

	return with(id)
}

// isInfluenced reports whether the plan for another's tree differs from the plan without the
// tenant's objects: in its writes, its wait or its failure.
func (w *world) isInfluenced(v *view, snapshot *adoption.Snapshot, subjects []xp.Ref, instances map[xp.ID]instance) bool {
	without := *v
	for i := range without.objects {
		if w.isTenants(i) {
			without.objects[i] = object{}
		}
	}
	alone, _, _ := w.observed(&without)
	for _, r := range subjects {
		if w.isTenants(instances[r.ID()]) {
			continue
		}
		if !reflect.DeepEqual(adoption.Next(alone, r), adoption.Next(snapshot, r)) {
			return true
		}
	}

	return false
}

// An act is a transition within one process of the plugin.
type act struct {
	from, to uint32
	changes  bool
}

// livelock returns a state on a cycle in which one process of the plugin changes something. It
// returns false if there is none. It finds the strongly connected components (Tarjan).
func (x *exploration) livelock() (uint32, bool) {
	if x.acts == nil {
		return 0, false
	}
	after := make([][]uint32, len(x.states))
	for _, a := range x.acts {
		after[a.from] = append(after[a.from], a.to)
	}
	part, index, low := make([]uint32, len(x.states)), make([]uint32, len(x.states)), make([]uint32, len(x.states))
	next := make([]int, len(x.states))
	var path, open []uint32
	parts, n := uint32(0), uint32(0)
	enter := func(at uint32) {
		n++
		index[at], low[at] = n, n
		path, open = append(path, at), append(open, at)
	}
	for root := range x.states {
		if index[root] != 0 {
			continue
		}
		for enter(uint32(root)); len(path) > 0; {
			at := path[len(path)-1]
			if next[at] < len(after[at]) {
				to := after[at][next[at]]
				next[at]++
				switch {
				case index[to] == 0:
					enter(to)
				case part[to] == 0:
					low[at] = min(low[at], index[to])
				}

				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				above := path[len(path)-1]
				low[above] = min(low[above], low[at])
			}
			if low[at] != index[at] {
				continue
			}
			parts++
			for part[at] == 0 {
				part[open[len(open)-1]] = parts
				open = open[:len(open)-1]
			}
		}
	}
	for _, a := range x.acts {
		if a.changes && part[a.from] == part[a.to] {
			return a.to, true
		}
	}

	return 0, false
}
