package explorer

import "slices"

// crossplaneSteps are the steps of three reconcilers, one write at a time. Crossplane can be killed
// between any two.
//   - XRs (crossplane internal/controller/apiextensions/composite/reconciler.go, Reconcile), with
//     the functions' composer (composition_functions.go, Compose).
//   - Compositions (composition/reconciler.go), which become the controllers of revisions without
//     one.
//   - Claims.
func (w *world) crossplaneSteps(s *state, emit func(step)) {
	busy := false
	for i := range maxXRs {
		if !w.isXR(i) {
			continue
		}
		switch {
		case s.inflight[i].phase != 0:
			busy = true
			w.continueReconcile(s, i, emit)
		case s.objects[i].live:
			w.beginReconcile(s, i, emit)
		}
	}
	if busy {
		next := *s
		next.inflight = [maxXRs]reconcile{}
		emit(step{label: label{crossplane, "is killed", -1}, next: next})
	}
	for n := range w.xrs {
		if s.revisions.has(n) && !s.taken.has(n) {
			next := *s
			next.taken |= with(n)
			emit(step{label: label{crossplane, "takes control of the revision of the Composition of", int8(original(n))}, next: next})
		}
	}
	if w.claimed {
		w.reconcileClaim(s, emit)
	}
}

// verbIdles is a reconcile that changes nothing.
const verbIdles = "looks again at"

// beginReconcile is a reconcile up to the call of the functions.
func (w *world) beginReconcile(s *state, i instance, emit func(step)) {
	next := *s
	o := &next.objects[i]
	switch {
	case o.paused:
		// A reconcile of a paused XR writes the condition only (reconciler.go: meta.IsPaused).
		if o.synced == syncedPaused && o.current {
			return
		}
		o.synced, o.current = syncedPaused, true
		emit(step{label: label{crossplane, "notices the pause of", int8(i)}, next: next})
	case o.deleting:
		// Kubernetes' garbage collector deletes what it composed.
		*o = object{life: o.life}
		emit(step{label: label{crossplane, "takes the finalizer off", int8(i)}, next: next})
	default:
		if !w.chooseRevision(&next, i) {
			return
		}
		w.observe(&next, i)
		verb := "observes what there is of"
		if w.changesNothing(*s, next, i) {
			if !w.idle {
				return
			}
			verb = verbIdles
		}
		emit(step{label: label{crossplane, verb, int8(i)}, next: next})
	}
}

// chooseRevision reports whether there is a revision to reconcile with. With the policy Manual it
// is the named revision, whatever controls it. Otherwise it is the newest that the Composition
// controls, with an explicit Automatic of those that the XR selects (composite/api.go,
// APIRevisionFetcher.Fetch; apis/apiextensions/v1, LatestRevision).
func (w *world) chooseRevision(s *state, i instance) bool {
	o, n := &s.objects[i], nodeOf(i)
	changed := s.revised != 0 && w.parent[s.revised-1] == n
	if o.policy == manual && o.revision != 0 {
		return o.revision == 2 && changed || o.revision == 1 && s.revisions.has(n)
	}
	newest := uint8(0)
	if s.taken.has(n) {
		newest = 1
	}
	if selects := o.policy == automatic && w.selecting.has(n); changed && !selects {
		newest = 2
	}
	if newest != 0 && newest != o.revision {
		o.revision = newest
		w.newGeneration(o)
	}

	return newest != 0
}

// newGeneration gives an object a generation that its conditions do not have yet.
func (w *world) newGeneration(o *object) {
	if w.rules != v120 {
		o.current = false
	}
}

// observe finds the listed resources that no other owner controls, and calls the functions
// (composition_functions.go, ObserveComposedResources: "If we don't control this resource we just
// pretend it doesn't exist").
func (w *world) observe(s *state, i instance) {
	o := &s.objects[i]
	r := reconcile{phase: 1}
	for c := range theClaim {
		if child := &s.objects[c]; o.refs.has(c) && child.live && (child.controller == 0 || child.controller == ownedBy(i, o.life)) {
			r.observed |= with(c)
		}
	}
	r.desired, r.ready = w.functions(s, i, r.observed)
	s.inflight[i] = r
}

// functions returns the desired nodes of the XR, and whether all are Ready.
func (w *world) functions(s *state, i instance, observed set) (desired set, ready bool) {
	children, ready := w.children(nodeOf(i)), true
	isReady := func(n node) bool {
		for c := range theClaim {
			if observed.has(c) && nodeOf(c) == n && s.objects[c].ready {
				return true
			}
		}

		return false
	}
	if s.objects[i].revision == 2 {
		children = slices.DeleteFunc(children, func(n node) bool { return int(s.revised)-1 == n })
	}
	for k, n := range children {
		last := k == len(children)-1 && k > 0
		switch g := w.gates[nodeOf(i)]; {
		case last && g == gatedByReady && !isReady(children[0]), last && g == gatedByStatus && !s.objects[i].status:
			ready = false

			continue
		}
		desired |= with(n)
		ready = ready && isReady(n)
	}

	return desired, ready
}

// changesNothing reports whether a reconcile without interruption changes nothing. Only some worlds
// have such reconciles.
func (w *world) changesNothing(was, s state, i instance) bool {
	for s.inflight[i].phase != 0 {
		var after *state
		w.continueReconcile(&s, i, func(t step) { after = &t.next })
		if after == nil {
			return false
		}
		s = *after
	}

	return s == was
}

// Phases of a reconcile. From applies on, each phase is one node.
const (
	collects = iota + 1
	replacesRefs
	applies
)

func (w *world) continueReconcile(s *state, i instance, emit func(step)) {
	next := *s
	r, xr := &next.inflight[i], &next.objects[i]
	switch {
	case !xr.live:
		next.inflight[i] = reconcile{}
		emit(step{label: label{crossplane, "finds nothing left of", int8(i)}, next: next})
	case r.phase == collects:
		harm := w.collect(&next, i)
		r.phase = replacesRefs
		if next.objects == s.objects {
			w.continueReconcile(&next, i, emit) // There is nothing to delete, and that can't change.

			return
		}
		emit(step{label: label{crossplane, "deletes what is not wanted of", int8(i)}, next: next, damage: harm})
	case r.phase == replacesRefs:
		refs := w.names(s, i)
		if refs != xr.refs {
			xr.refs = refs
			w.newGeneration(xr)
		}
		r.phase = applies
		if next.objects == s.objects {
			w.continueReconcile(&next, i, emit) // No other actor writes the refs.

			return
		}
		emit(step{label: label{crossplane, "replaces the refs of", int8(i)}, next: next})
	default:
		w.apply(&next, i, emit)
	}
}

// collect deletes what was observed and is not desired (composition_functions.go,
// GarbageCollectComposedResources). Since crossplane PR #7627 it keeps resources without a
// controller.
func (w *world) collect(s *state, i instance) (harm damage) {
	r := s.inflight[i]
	for c := range theClaim {
		child := &s.objects[c]
		if !r.observed.has(c) || r.desired.has(nodeOf(c)) || !child.live || child.deleting || child.controller == 0 && w.rules == after7627 {
			continue
		}
		if w.isHeld(s, i) || child.controller == 0 {
			harm = early
		}
		deleteObject(child)
	}

	return harm
}

// isHeld reports whether the plugin has not proven yet that an XR controls what it composed. A
// claim passes its policy on when it is released, which is after that proof.
func (w *world) isHeld(s *state, i instance) bool {
	claim := &s.objects[theClaim]

	return s.objects[i].mark != 0 && (!w.claimed || nodeOf(i) != 0 || !claim.live || claim.mark != 0)
}

func deleteObject(o *object) {
	if o.finalizer {
		o.deleting = true

		return
	}
	*o = object{life: o.life}
}

// names returns the new refs of the XR: the observed instances, and new ones for the rest
// (composition_functions.go, UpdateResourceRefs: desired ones only).
func (w *world) names(s *state, i instance) set {
	r := s.inflight[i]
	var refs set
	for n := range w.parent {
		if !r.desired.has(n) {
			continue
		}
		found := recreated(n)
		for _, c := range []instance{original(n), recreated(n)} {
			if r.observed.has(c) {
				found = c

				break
			}
		}
		refs |= with(found)
	}

	return refs
}

// apply applies one node. After the last it sets the conditions of the XR.
func (w *world) apply(s *state, i instance, emit func(step)) {
	r, xr := &s.inflight[i], &s.objects[i]
	refs := w.names(s, i)
	for n := int(r.phase) - applies; n < len(w.parent); n++ {
		if !r.desired.has(n) {
			continue
		}
		c := original(n)
		if !refs.has(c) {
			c = recreated(n)
		}
		r.phase = uint8(applies + n + 1)
		child := &s.objects[c]
		switch {
		case !child.live:
			*child = object{live: true, life: child.life + 1, controller: ownedBy(i, xr.life)}
		case child.controller == 0:
			child.controller = ownedBy(i, xr.life)
		default:
			continue // It is as it should be, or the API server refuses a second controller.
		}
		emit(step{label: label{crossplane, "applies", int8(c)}, next: *s})

		return
	}
	xr.synced, xr.current, xr.ready, xr.finalizer = syncedTrue, true, r.ready, true
	xr.status = w.gates[nodeOf(i)] == gatedByStatus
	*r = reconcile{}
	emit(step{label: label{crossplane, "says that it has reconciled", int8(i)}, next: *s})
}

// reconcileClaim creates the XR of a claim if it is missing, and otherwise copies the claim's
// policy to it (crossplane internal/controller/apiextensions/claim, syncer_ssa.go).
func (w *world) reconcileClaim(s *state, emit func(step)) {
	next := *s
	claim, xr := &next.objects[theClaim], &next.objects[original(0)]
	switch {
	case !claim.live:
		return
	case claim.paused:
		claim.synced, claim.current = syncedPaused, true
	case !xr.live:
		*xr = object{live: true, life: xr.life + 1, policy: claim.policy}
	default:
		if w.copied && claim.mark != 0 {
			xr.mark = claim.mark
		}
		if claim.policy != unset && claim.policy != xr.policy {
			xr.policy = claim.policy
			w.newGeneration(xr)
		}
		claim.synced, claim.current = syncedTrue, true
	}
	if next != *s {
		emit(step{label: label{crossplane, "reconciles", theClaim}, next: next})
	}
}
