package explorer

import "slices"

// isIdle reports whether no actor has anything to do but to restore again, to change a Composition
// or to be killed.
func isIdle(s *state, steps []step) bool {
	if s.velero.at != 0 {
		return false
	}
	for _, t := range steps {
		if !slices.Contains([]actor{velero, user, tenant, applier}, t.actor) && t.verb != verbIdles {
			return false
		}
	}

	return true
}

// judge returns the damage of a final state.
func (w *world) judge(s *state) damage {
	var found damage
	if w.git && w.hasWrongOwner(s) {
		found |= wrongOwner
	}
	if w.isReported(s) {
		if !s.holdRemoved && !s.applied {
			found |= falseAlarm
		}

		return found
	}
	if w.hasOrphans(s) {
		found |= orphaned
	}
	if s.velero.whole && !w.isSound(s) {
		found |= unsettled
	}

	return found
}

// hasWrongOwner reports whether a restored object has a live XR as its controller that does not
// list it.
func (w *world) hasWrongOwner(s *state) bool {
	for i := range theClaim {
		o := &s.objects[i]
		if !o.live || !o.restored || o.deleting || o.controller == 0 {
			continue
		}
		if by := &s.objects[o.controller.instance()]; by.live && by.life == o.controller.life() && !by.refs.has(i) {
			return true
		}
	}

	return false
}

// hasOrphans reports whether an MR manages an external resource of the backup and no XR lists the
// MR.
func (w *world) hasOrphans(s *state) bool {
	for i := range theClaim {
		o := &s.objects[i]
		if w.isXR(i) || w.isTenants(i) || !o.live || o.deleting || w.parent[nodeOf(i)] < 0 {
			continue
		}
		listed, above := false, false
		for x := range maxXRs {
			if xr := &s.objects[x]; w.isXR(x) && xr.live && nodeOf(x) == w.parent[nodeOf(i)] {
				listed, above = listed || xr.refs.has(i), true
			}
		}
		if above && !listed {
			return true
		}
	}

	return false
}

// isSound reports whether all is as before the backup, except what a user has removed from a
// Composition that the XR follows, and what belongs to a tenant who attacks.
func (w *world) isSound(s *state) bool {
	for n := range w.parent {
		i := original(n)
		o := &s.objects[i]
		if w.isTenants(i) {
			continue
		}
		if s.objects[recreated(n)].live {
			return false
		}
		if w.isRemoved(s, n) {
			if o.live || n >= w.xrs && s.cloud.has(n) {
				return false
			}

			continue
		}
		if !o.live || o.deleting || o.mark != 0 || o.paused != w.paused.has(n) || n >= w.xrs && !s.cloud.has(n) {
			return false
		}
		if n < w.xrs && !w.isSoundXR(s, i) {
			return false
		}
	}
	claim := &s.objects[theClaim]

	return !w.claimed || w.isTenants(theClaim) || claim.live && claim.mark == 0 && !claim.paused && claim.policy == unset
}

func (w *world) isSoundXR(s *state, i instance) bool {
	o := &s.objects[i]
	own := unset
	switch {
	case w.manual.has(nodeOf(i)):
		own = manual
	case w.selecting.has(nodeOf(i)):
		own = automatic
	}
	if o.policy != own || own == manual && o.revision != 1 {
		return false
	}
	var refs set
	for _, c := range w.children(nodeOf(i)) {
		if w.isRemoved(s, c) {
			continue
		}
		refs |= with(original(c))
		if !o.paused && s.objects[original(c)].controller != ownedBy(i, o.life) {
			return false
		}
	}

	return o.refs == refs
}
