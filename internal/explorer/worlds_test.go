package explorer

// A flat tree is one XR with two MRs, of which a person can take the second out of the Composition.
func flat(r rules) *world {
	return &world{name: "flat", rules: r, parent: []node{-1, 0, 0}, xrs: 1, removable: with(2)}
}

// A nested tree is an XR with another XR, which composes two MRs, and an MR. A person can take any
// of the three kinds out of its Composition.
func nested(r rules) *world {
	return &world{name: "nested", rules: r, parent: []node{-1, 0, 0, 1, 1}, xrs: 2, removable: with(1) | with(2) | with(4)}
}

// A tenant has one XR with an MR, and nobody else has anything.
func alone(r rules) *world {
	return &world{name: "a tenant alone", rules: r, parent: []node{-1, 0}, xrs: 1, tenants: with(0) | with(1), labels: true}
}

// A shared world has a tenant's XR, which composes nothing, and somebody else's, with an MR.
func shared(r rules) *world {
	return &world{name: "a tenant and others", rules: r, parent: []node{-1, -1, 1}, xrs: 2, tenants: with(0)}
}

// A world can differ in several ways.
type way struct {
	name string
	of   func(w *world)
}

func (w *world) in(ways ...way) *world {
	other := *w
	for _, one := range ways {
		other.name += ", " + one.name
		one.of(&other)
	}

	return &other
}

var (
	inMoments   = way{"every moment", func(w *world) { w.fine = true }}
	inIdleness  = way{"idle reconciles", func(w *world) { w.idle = true }}
	backwards   = way{"in the opposite order", func(w *world) { w.reversed = true }}
	inTheOpen   = way{"open", func(w *world) { w.open = true }}
	unlabelled  = way{"unlabelled", func(w *world) { w.labels = false }}
	claimed     = way{"claimed", func(w *world) { w.claimed = true }}
	publishing  = way{"publishing", func(w *world) { w.publishes = with(len(w.parent) - 1) }}
	pinned      = way{"pinned by a person", func(w *world) { w.manual = with(0) }}
	pausedByHer = way{"paused by a person", func(w *world) { w.paused = with(0) }}
	readyFirst  = way{"gated by Ready", func(w *world) { w.gates = [2]gate{gatedByReady, gatedByReady} }}
	underJudge  = way{"judged", func(w *world) { w.judged = true }}
	takenOff    = way{"with its hold taken off", func(w *world) { w.judged, w.applied, w.removable = true, true, 0 }}
	gitFirst    = way{"applied from Git", func(w *world) { w.judged, w.git, w.removable = true, true, 0 }}
	manyTimes   = way{"many times", func(w *world) { w.often = true }}
	statusFirst = way{"gated by status", func(w *world) { w.gates = [2]gate{gatedByStatus, gatedByStatus} }}
)

// small are the worlds that are explored with every change, and large those that take longer.
func small() []*world {
	var all []*world
	for _, r := range []rules{v120, v23, after7627} {
		all = append(all, flat(r).in(), flat(r).in(inMoments, inIdleness), flat(r).in(publishing), flat(r).in(pinned), flat(r).in(pausedByHer),
			flat(r).in(readyFirst), flat(r).in(statusFirst), flat(r).in(underJudge))
	}

	return append(all, flat(v23).in(gitFirst, inMoments), flat(v120).in(gitFirst), flat(after7627).in(gitFirst), flat(v120).in(claimed, gitFirst),
		flat(v23).in(takenOff), flat(v120).in(claimed, underJudge), nested(v120).in(), nested(v23).in(), nested(after7627).in(), flat(v120).in(claimed), flat(v120).in(claimed, inMoments, inIdleness),
		flat(v120).in(backwards), flat(v23).in(backwards), flat(after7627).in(backwards), flat(v120).in(claimed, backwards),
		alone(v23).in(), alone(v120).in(claimed), shared(v23).in(), shared(v120).in(claimed))
}

func large() []*world {
	var all []*world
	for _, r := range []rules{v120, v23, after7627} {
		all = append(all, nested(r).in(pinned), nested(r).in(pausedByHer), nested(r).in(readyFirst), nested(r).in(statusFirst), nested(r).in(publishing),
			nested(r).in(inIdleness), nested(r).in(inMoments), flat(r).in(inMoments, inIdleness, publishing), flat(r).in(inMoments, inIdleness, statusFirst))
	}

	all = append(all, flat(v120).in(takenOff), flat(after7627).in(takenOff), flat(v120).in(claimed, takenOff), flat(v23).in(takenOff, manyTimes),
		nested(v23).in(underJudge))

	return append(all, nested(v120).in(claimed), flat(v120).in(claimed, publishing), flat(v120).in(claimed, readyFirst), flat(v120).in(claimed, statusFirst),
		alone(v23).in(inMoments), alone(v120).in(claimed, inMoments), shared(v23).in(inMoments), shared(after7627).in())
}
