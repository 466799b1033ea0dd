package explorer

// A flat tree is an XR with two MRs. A user can remove the second from the Composition.
func flat(r rules) *world {
	return &world{name: "flat", rules: r, parent: []node{-1, 0, 0}, xrs: 1, removable: with(2)}
}

// A nested tree is an XR with an MR and another XR, which composes two MRs. A user can remove one
// node of each kind from its Composition.
func nested(r rules) *world {
	return &world{name: "nested", rules: r, parent: []node{-1, 0, 0, 1, 1}, xrs: 2, removable: with(1) | with(2) | with(4)}
}

// In an alone world there is one tree, a tenant's XR with an MR.
func alone(r rules) *world {
	return &world{name: "a tenant alone", rules: r, parent: []node{-1, 0}, xrs: 1, tenants: with(0) | with(1), labels: true}
}

// In a shared world a tenant has an XR without composed resources, and another user an XR with an
// MR.
func shared(r rules) *world {
	return &world{name: "a tenant and others", rules: r, parent: []node{-1, -1, 1}, xrs: 2, tenants: with(0)}
}

// A variant changes a world.
type variant struct {
	name string
	of   func(w *world)
}

func (w *world) vary(variants ...variant) *world {
	other := *w
	for _, one := range variants {
		other.name += ", " + one.name
		one.of(&other)
	}

	return &other
}

var (
	inMoments    = variant{"every moment", func(w *world) { w.fine = true }}
	inIdleness   = variant{"idle reconciles", func(w *world) { w.idle = true }}
	backwards    = variant{"in the opposite order", func(w *world) { w.reversed = true }}
	inTheOpen    = variant{"open", func(w *world) { w.open = true }}
	unlabelled   = variant{"unlabelled", func(w *world) { w.labels = false }}
	claimed      = variant{"claimed", func(w *world) { w.claimed = true }}
	publishing   = variant{"publishing", func(w *world) { w.publishes = with(len(w.parent) - 1) }}
	pinned       = variant{"pinned by a person", func(w *world) { w.manual = with(0) }}
	inAChannel   = variant{"in a channel", func(w *world) { w.selecting = with(0) }}
	pausedByUser = variant{"paused by a person", func(w *world) { w.paused = with(0) }}
	readyFirst   = variant{"gated by Ready", func(w *world) { w.gates = [2]gate{gatedByReady, gatedByReady} }}
	judgedUnheld = variant{"judged", func(w *world) { w.judged = true }}
	takenOff     = variant{"with its hold taken off", func(w *world) { w.judged, w.applied, w.removable = true, true, 0 }}
	gitFirst     = variant{"applied from Git", func(w *world) { w.judged, w.git, w.removable = true, true, 0 }}
	manyTimes    = variant{"many times", func(w *world) { w.often = true }}
	statusFirst  = variant{"gated by status", func(w *world) { w.gates = [2]gate{gatedByStatus, gatedByStatus} }}
)

// small returns the worlds that every change is tested with, large those that take longer.
func small() []*world {
	var all []*world
	for _, r := range []rules{v120, v23, after7627} {
		all = append(all, flat(r).vary(), flat(r).vary(inMoments, inIdleness), flat(r).vary(publishing), flat(r).vary(pinned), flat(r).vary(inAChannel), flat(r).vary(pausedByUser),
			flat(r).vary(readyFirst), flat(r).vary(statusFirst), flat(r).vary(judgedUnheld))
	}

	return append(all, flat(v23).vary(gitFirst, inMoments), flat(v120).vary(gitFirst), flat(after7627).vary(gitFirst), flat(v120).vary(claimed, gitFirst),
		flat(v23).vary(takenOff), flat(v120).vary(claimed, judgedUnheld), nested(v120).vary(), nested(v23).vary(), nested(after7627).vary(), flat(v120).vary(claimed), flat(v120).vary(claimed, inMoments, inIdleness),
		flat(v120).vary(backwards), flat(v23).vary(backwards), flat(after7627).vary(backwards), flat(v120).vary(claimed, backwards),
		alone(v23).vary(), alone(v120).vary(claimed), shared(v23).vary(), shared(v120).vary(claimed))
}

func large() []*world {
	var all []*world
	for _, r := range []rules{v120, v23, after7627} {
		all = append(all, nested(r).vary(pinned), nested(r).vary(inAChannel), nested(r).vary(pausedByUser), nested(r).vary(readyFirst), nested(r).vary(statusFirst), nested(r).vary(publishing),
			nested(r).vary(inIdleness), nested(r).vary(inMoments), flat(r).vary(inMoments, inIdleness, publishing), flat(r).vary(inMoments, inIdleness, statusFirst))
	}

	all = append(all, flat(v120).vary(takenOff), flat(after7627).vary(takenOff), flat(v120).vary(claimed, takenOff), flat(v23).vary(takenOff, manyTimes),
		nested(v23).vary(judgedUnheld))

	return append(all, nested(v120).vary(claimed), flat(v120).vary(claimed, publishing), flat(v120).vary(claimed, readyFirst), flat(v120).vary(claimed, statusFirst),
		alone(v23).vary(inMoments), alone(v120).vary(claimed, inMoments), shared(v23).vary(inMoments), shared(after7627).vary())
}
