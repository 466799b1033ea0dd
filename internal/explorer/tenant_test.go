package explorer

import (
	"encoding/json"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// isTenants reports whether an instance is of the tenant's tree.
func (w *world) isTenants(i instance) bool {
	if i == theClaim {
		return w.tenants != 0
	}

	return i >= 0 && w.tenants.has(nodeOf(i))
}

// bystanders are what nothing controls and the tenant's mark names: what nobody has restored, what
// a restore has brought back, and what no namespace is around.
func bystanders() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		xptest.Object("v1", "ResourceQuota", xptest.Namespace, "limits"), xptest.Object("v1", "ConfigMap", xptest.Namespace, "settings"),
		xptest.Object("v1", "Namespace", "", "team-b"),
	}
}

// addBystanders adds them to what the plugin observes. To one that is gullible they are all that
// makes an object the tenant's XR's own.
func (w *world) addBystanders(world *adoption.Snapshot) {
	xr := world.Get(xp.RefTo(w.backup[original(0)]))
	if w.gullible && xr != nil {
		xr = xptest.With(xr, xptest.Refs(bystanders()...))
		world.AddRestored(xr)
	}
	for n, u := range bystanders() {
		switch {
		case w.gullible:
			world.AddRestored(xptest.With(u, xptest.Labelled(xp.LabelComposite, w.call(original(0)))))
		case n == 1:
			world.AddRestored(u)
		default:
			world.Add(u)
		}
	}
}

// forge returns the mark that the tenant makes: as if a person had paused the XR, which has the
// plugin write owners, and of what is not the tenant's.
func (w *world) forge() string {
	yes := "true"
	h := adoption.Hold{Restore: "velero/monday", Since: noon.Format(time.RFC3339), Reason: "forged", Paused: &yes}
	for _, u := range bystanders() {
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

// tenantSteps are those of whoever may write the annotations and labels of one XR, or of its claim:
// at any time, and again and again. A mark that the plugin has once written on it can be kept, and
// put back.
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
		if s.kept.has(m) {
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

// harmless is the damage that a tenant may do to what is the tenant's own.
const harmless = created | deleted | early

// keepMark has the tenant keep the mark that a step has left.
func (w *world) keepMark(t *step) {
	if w.tenants == 0 {
		return
	}
	if m := t.next.objects[w.reach()].mark; m != 0 && m != w.forgery {
		if m >= 16 {
			panic("there are more marks than a set has room for")
		}
		t.next.kept |= with(int(m))
	}
}

// harmOf tells what is wrong with a plan for a subject that changes an instance, or, if ok is
// false, what is nobody's.
func (w *world) harmOf(v *view, subject, i instance, ok bool) (harm damage) {
	if !ok || w.isTenants(subject) != w.isTenants(i) {
		harm = seized
	}
	if v.objects[subject].mark == w.forgery || ok && v.objects[i].mark == w.forgery {
		harm |= believed
	}

	return harm
}

// stepOf returns the number of a step on what is the tenant's, as internal/live, once.go, tells
// them from one another: the hold of an object is lifted once in a process, and so is any other
// step taken.
func (w *world) stepOf(i instance, c adoption.Change) set {
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

// isSwayed reports whether a plan for what is not the tenant's would be another if there were
// nothing of the tenant's: it would change something else, wait for something else, or fail.
func (w *world) isSwayed(v *view, world *adoption.Snapshot, subjects []xp.Ref, instances map[xp.ID]instance) bool {
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
		if !reflect.DeepEqual(adoption.Next(alone, r), adoption.Next(world, r)) {
			return true
		}
	}

	return false
}

// An act is a step in one process of the plugin.
type act struct {
	from, to uint32
	changes  bool
}

// livelock returns a state from which a way leads back to it on which one process of the plugin
// changes something, if there is one. It finds the strongly connected components (Tarjan).
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
