package explorer

// Phases of an item in Velero.
const (
	considers = iota
	creates
	writesStatus
	awaitsPause
)

// veleroSteps are the steps of restores, one item at a time (velero pkg/restore/restore.go,
// restoreItem): Velero calls the actions, creates the item unless it exists, and writes its status
// if an action wants that. Velero can be killed at any time. When it starts again, it fails such a
// restore (pkg/cmd/server/server.go, markInProgressRestoresFailed) and never polls its operations.
// A user can restore again, any number of times.
func (w *world) veleroSteps(s *state, emit func(step)) {
	v := &s.velero
	if v.at == 0 {
		next := *s
		next.velero.clean = true
		w.nextItem(&next)
		emit(step{label: label{velero, "begins a restore", -1}, next: next})

		return
	}
	next := *s
	next.velero = restore{polled: v.polled, whole: v.whole}
	emit(step{label: label{velero, "is killed, and the restore fails", -1}, next: next})

	i := w.order[v.at-1]
	if i < 0 {
		w.restoreRevision(s, -1-i, emit)

		return
	}
	switch v.phase {
	case considers:
		w.consider(s, i, emit)
	case creates:
		w.create(s, i, emit)
	case awaitsPause:
		w.endTakeOver(s, w.ownerOf(i), emit)
	case writesStatus:
		next := *s
		if o := &next.objects[i]; o.live {
			// It writes all of it, whatever another writer has written meanwhile
			// (retry.RetryOnConflict). By chance the observedGeneration is the current one.
			o.synced, o.current, o.ready, o.status = syncedTrue, true, true, w.gates[nodeOf(i)] == gatedByStatus
		}
		w.nextItem(&next)
		emit(step{label: label{velero, "restores the status of", int8(i)}, next: next})
	}
}

// nextItem goes on with the next item. After the last, Velero polls the operations
// (pkg/controller/restore_controller.go).
func (w *world) nextItem(s *state) {
	v := &s.velero
	v.phase, v.result = considers, 0
	for v.at++; int(v.at) <= len(w.order); v.at++ {
		if i := w.order[v.at-1]; w.fine || !w.exists(s, i) || w.lacksStatus(s, i) {
			return
		}
	}
	s.velero = restore{polled: true, whole: v.whole || v.clean}
}

// exists reports whether Velero finds an item live.
func (w *world) exists(s *state, i instance) bool {
	if i < 0 {
		return s.revisions.has(-1 - i)
	}

	return s.objects[i].live
}

// lacksStatus reports whether an earlier restore has created a held XR and was killed before it
// wrote the status. The plugin writes it then (restoreitem, Adopt.returnStatus).
func (w *world) lacksStatus(s *state, i instance) bool {
	return w.isXR(i) && w.gates[nodeOf(i)] == gatedByStatus && !w.noStatus && s.objects[i].live && s.objects[i].mark != 0 && !s.objects[i].status
}

func (w *world) restoreRevision(s *state, n node, emit func(step)) {
	next := *s
	next.revisions |= with(n)
	if !w.fine {
		next.taken |= with(n)
	}
	w.nextItem(&next)
	emit(step{label: label{velero, "restores the revision of the Composition of", int8(original(n))}, next: next})
}

func (w *world) consider(s *state, i instance, emit func(step)) {
	next := *s
	if o := &next.objects[i]; w.lacksStatus(s, i) {
		o.status = true
		w.nextItem(&next)
		emit(step{label: label{plugin, "restores the status of", int8(i)}, next: next})

		return
	}
	if w.exists(s, i) {
		// It almost certainly still exists when Velero looks, moments later.
		w.nextItem(&next)
		emit(step{label: label{velero, "finds that there is", int8(i)}, next: next})

		return
	}
	if !w.open && w.isVanishing(s, i) {
		return
	}
	if w.takesOver(s, w.ownerOf(i)) {
		w.takeOver(s, w.ownerOf(i), emit)

		return
	}
	m := w.resultOf(s, i)
	if m.leftOut {
		next.velero.refused |= with(nodeOf(i))
		if m.failed {
			next.velero.clean, next.reported = false, true
		}
		w.nextItem(&next)
		emit(step{label: label{velero, "leaves out", int8(i)}, next: next})

		return
	}
	next.velero.phase, next.velero.result = creates, numbered(m, &w.results, w.resultIDs)
	harm := staleOwner(s, m.object.controller)
	if w.fine {
		emit(step{label: label{velero, "asks the plugin about", int8(i)}, next: next, damage: harm})

		return
	}
	w.create(&next, i, func(t step) {
		t.damage |= harm
		emit(t)
	})
}

// staleOwner returns the damage of an owner reference.
func staleOwner(s *state, c owner) damage {
	if c == 0 {
		return 0
	}
	if o := &s.objects[c.instance()]; !o.live || o.life != c.life() {
		return stale
	}

	return 0
}

// isVanishing reports whether Velero comes to an item while Crossplane deletes it, after a user has
// removed it from a Composition. Either it is gone and still listed, or its XR was live when this
// restore came to the XR, and is gone since. The restored object then has no owner and stays held.
// Only an open world has that, since it has no end in which all is as before.
func (w *world) isVanishing(s *state, i instance) bool {
	by := w.ownerOf(i)
	if i == theClaim || by < 0 || !w.isRemoved(s, nodeOf(i)) {
		return false
	}
	o := &s.objects[by]

	return o.live && o.mark == 0 && o.refs.has(i) || w.fine && !o.live && !s.velero.refused.has(nodeOf(by))
}

func (w *world) create(s *state, i instance, emit func(step)) {
	m := w.results[s.velero.result]
	next := *s
	if s.objects[i].live {
		w.nextItem(&next)
		emit(step{label: label{velero, "finds that there is", int8(i)}, next: next})

		return
	}
	if s.velero.clean { // Two refusals in one restore leave what one in each of two restores leaves.
		failed := next
		w.nextItem(&failed)
		failed.velero.clean = false
		if failed.velero.at == 0 {
			failed.velero.whole = s.velero.whole
		}
		emit(step{label: label{velero, "is refused by the API server, and can't create", int8(i)}, next: failed})
	}

	o := m.object
	o.life = s.objects[i].life + 1
	next.objects[i], next.ownerReported = o, s.ownerReported || w.git && m.reported
	if m.asks {
		next.velero.phase = writesStatus
	} else {
		w.nextItem(&next)
	}
	emit(step{label: label{velero, "creates", int8(i)}, next: next})
}
