package explorer

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"
)

// A hash stands for a state. A collision of 128 bits among some millions of states is out of the
// question.
type hash [2]uint64

// An exploration is the set of reachable states of a world. It is breadth first, so the first trace
// to a damage is a shortest one.
type exploration struct {
	*world

	seeds  [2]maphash.Seed
	known  map[hash]uint32
	states []state
	from   []uint32
	by     []label
	// edges are pairs of states of which the second can follow the first. ends are the states in
	// which all is as before and no actor has anything to do.
	edges [][2]uint32
	// acts are the transitions within one process of the plugin, in a world with a tenant.
	acts  []act
	ends  []uint32
	steps int
	rests int
	// found has the first state with each damage.
	found map[damage]uint32
	took  time.Duration
}

func explore(w *world, enough damage) (*exploration, error) {
	if err := w.init(); err != nil {
		return nil, err
	}
	x := &exploration{world: w, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, known: map[hash]uint32{}, found: map[damage]uint32{}}
	began := time.Now()
	x.add(w.start(), 0, label{})
	var steps []step
	for at := 0; at < len(x.states) && len(x.states) < most && !x.has(enough); at++ {
		s := x.states[at]
		steps = steps[:0]
		w.successors(&s, func(t step) { steps = append(steps, t) })
		for _, t := range steps {
			x.follow(uint32(at), t)
		}
		if isIdle(&s, steps) {
			x.rests++
			x.note(w.judge(&s), uint32(at))
			if w.isSound(&s) || w.isReported(&s) {
				x.ends = append(x.ends, uint32(at))
			}
		}
	}
	if at, ok := x.livelock(); ok {
		x.note(endless, at)
	}
	x.took = time.Since(began)

	return x, nil
}

// has reports whether all of some damages were found.
func (x *exploration) has(some damage) bool {
	for d := range damages {
		if _, ok := x.found[d]; some&d != 0 && !ok {
			return false
		}
	}

	return some != 0
}

func (w *world) successors(s *state, emit func(step)) {
	tidy := func(t step) {
		w.dropOutdated(s, &t.next, t.actor)
		w.keepMark(&t)
		if w.isTenants(int(t.object)) {
			t.damage &^= harmless
		}
		if t.next.holdRemoved { // A final state is judged instead: the plugin reports it then.
			t.damage &^= harmless | unproven
		}
		if t.next.applied {
			t.damage &^= created // Crossplane composes what is missing of an XR that comes from Git.
		}
		emit(t)
	}
	w.veleroSteps(s, tidy)
	w.pluginSteps(s, tidy)
	w.crossplaneSteps(s, tidy)
	w.kubernetesSteps(s, tidy)
	w.providerSteps(s, tidy)
	w.userSteps(s, tidy)
	w.tenantSteps(s, tidy)
	w.applierSteps(s, tidy)
	w.gitSteps(s, tidy)
}

// dropOutdated drops the writes of objects that have changed since the plugin looked: its patches
// carry the resource version.
func (w *world) dropOutdated(was, next *state, by actor) {
	for n, change := range w.plans[next.plan] {
		if next.pending.has(n) && by != plugin && next.objects[change.instance] != was.objects[change.instance] {
			next.pending &^= with(n)
		}
	}
	if next.pending == 0 {
		next.plan = 0
	}
}

func (x *exploration) add(s state, from uint32, by label) uint32 {
	h := hash{maphash.Comparable(x.seeds[0], s), maphash.Comparable(x.seeds[1], s)}
	id, ok := x.known[h]
	if !ok {
		id = uint32(len(x.states))
		x.known[h] = id
		x.states, x.from, x.by = append(x.states, s), append(x.from, from), append(x.by, by)
	}

	return id
}

func (x *exploration) follow(at uint32, t step) {
	x.steps++
	to := x.add(t.next, at, t.label)
	x.edges = append(x.edges, [2]uint32{at, to})
	if x.tenants != 0 && (t.actor != plugin || t.verb != verbEnds && t.verb != verbKilled) {
		x.acts = append(x.acts, act{at, to, t.actor == plugin && t.verb != verbLooks})
	}
	if t.damage == 0 {
		return
	}
	for d := range damages {
		if _, ok := x.found[d]; t.damage&d != 0 && !ok {
			// The first trace to this state may be another, without the damage.
			x.found[d] = uint32(len(x.states))
			x.states, x.from, x.by = append(x.states, t.next), append(x.from, at), append(x.by, t.label)
		}
	}
}

func (x *exploration) note(some damage, at uint32) {
	for d := range damages {
		if _, ok := x.found[d]; some&d != 0 && !ok {
			x.found[d] = at
		}
	}
}

// trace returns the steps to a state.
func (x *exploration) trace(to uint32) []label {
	var steps []label
	for ; to != 0; to = x.from[to] {
		steps = append([]label{x.by[to]}, steps...)
	}

	return steps
}

func (x *exploration) format(to uint32) string {
	var b strings.Builder
	for n, l := range x.trace(to) {
		fmt.Fprintf(&b, "%3d. %s\n", n+1, l.text(x.world))
	}

	return b.String()
}

// deadEnd returns a state from which no trace leads to an end. It returns false if there is none.
func (x *exploration) deadEnd() (uint32, bool) {
	before := make([][]uint32, len(x.states))
	for _, e := range x.edges {
		before[e[1]] = append(before[e[1]], e[0])
	}
	can := make([]bool, len(x.states))
	queue := append([]uint32{}, x.ends...)
	for _, end := range queue {
		can[end] = true
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, from := range before[at] {
			if !can[from] {
				can[from] = true
				queue = append(queue, from)
			}
		}
	}
	for at := range can {
		if !can[at] {
			return uint32(at), true
		}
	}

	return 0, false
}

func (x *exploration) String() string {
	return fmt.Sprintf("%d states, %d steps, %d at rest, %d of them sound, %d plans of the plugin, in %s (%.0f states/s)", len(x.states), x.steps, x.rests, len(x.ends),
		len(x.planIDs), x.took.Round(time.Millisecond), float64(len(x.states))/x.took.Seconds())
}
