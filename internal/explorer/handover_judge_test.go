package explorer

// sourceWrites reports whether the source can write to an external resource.
func (w *world) sourceWrites(src *source, i instance) bool {
	o := &src.objects[i]

	return o.live && (!o.paused || o.creating || src.working.has(i) || o.synced != syncedPaused)
}

// sharedDamage is the damage in a state of two clusters: both can write to an external resource, or
// neither has its MR.
func (w *world) sharedDamage(s *state) (harm damage) {
	if w.handover == nil {
		return 0
	}
	src := w.sourceOf(s)
	for n := w.xrs; n < len(w.parent); n++ {
		there, has := false, false
		for _, i := range []instance{original(n), recreated(n)} {
			o := &s.objects[i]
			has = has || o.live
			there = there || o.live && (!o.paused || o.synced == syncedTrue)
		}
		if there && w.sourceWrites(&src, original(n)) {
			harm |= bothWrite
		}
		isLoss := !w.handover.standby || src.lost && w.hasBackedUp(src.refreshed, n)
		if isLoss && s.cloud.has(n) && !has && !src.objects[original(n)].live {
			harm |= lost
		}
	}

	return harm
}

// judgeHandover returns the damage at rest: a hold that nothing names. Each command and validate
// name what has a mark.
func (w *world) judgeHandover(s *state) damage {
	src := w.sourceOf(s)
	if src.promoting && !src.begun && !w.isStandbySound(s) {
		return unsettled // After a restore that was stopped, the next one brings what is missing.
	}
	for _, objects := range [][2*maxNodes + 1]object{s.objects, src.objects} {
		for i, o := range objects {
			if !o.live || !o.paused {
				continue
			}
			if h, err := w.key.HoldOf(w.encode(i, o)); err != nil || h == nil {
				return unnamed
			}
		}
	}

	return 0
}

// isHandoverSound reports whether exactly one cluster has everything, as it was, and the other one
// nothing.
func (w *world) isHandoverSound(s *state) bool {
	src := w.sourceOf(s)
	if src.command.kind != noCommand || src.recorded {
		return false
	}
	here, there := w.isWhole(&s.objects), w.isWhole(&src.objects)
	empty := func(objects *[2*maxNodes + 1]object) bool {
		for i := range objects {
			if objects[i].live {
				return false
			}
		}

		return true
	}

	return here && empty(&src.objects) || there && empty(&s.objects)
}

func (w *world) isWhole(objects *[2*maxNodes + 1]object) bool {
	for n := range w.parent {
		i := original(n)
		o := &objects[i]
		if !o.live || o.deleting || o.mark != 0 || o.paused || o.policy != unset || objects[recreated(n)].live || n >= w.xrs && int(o.external) != n+1 {
			return false
		}
		if p := w.parent[n]; p >= 0 && o.controller != ownedBy(original(p), objects[original(p)].life) {
			return false
		}
		if n < w.xrs && o.refs != w.backedUpRefs(i) {
			return false
		}
	}

	return true
}
