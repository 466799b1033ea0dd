package explorer

// kubernetesSteps are the steps of the garbage collector. It deletes an object whose owners are all
// gone or have other UIDs (kubernetes pkg/controller/garbagecollector/garbagecollector.go,
// attemptToDeleteItem).
func (w *world) kubernetesSteps(s *state, emit func(step)) {
	for i := range theClaim {
		o := &s.objects[i]
		if !o.live || o.deleting || o.controller == 0 {
			continue
		}
		if by := &s.objects[o.controller.instance()]; by.live && by.life == o.controller.life() {
			continue
		}
		next := *s
		deleteObject(&next.objects[i])
		emit(step{label: label{kubernetes, "garbage-collects", int8(i)}, next: next})
	}
}

// providerSteps are the steps of the reconciler of MRs (crossplane-runtime
// pkg/reconciler/managed/reconciler.go, Reconcile). If the MR is paused it writes the condition
// only. Otherwise it observes the resource of the external-name, creates it if it is missing, and
// deletes it before it removes its finalizer.
func (w *world) providerSteps(s *state, emit func(step)) {
	for i := range theClaim {
		if w.isXR(i) || !s.objects[i].live {
			continue
		}
		next := *s
		o := &next.objects[i]
		verb, harm := "observes", damage(0)
		switch {
		case o.paused:
			verb, o.synced, o.current = "notices the pause of", syncedPaused, true
		case o.deleting:
			verb, harm = "deletes the external resource of", w.deletion(&next, o)
			*o = object{life: o.life}
		case o.external != 0 && s.cloud.has(int(o.external)-1):
			o.synced, o.current, o.ready, o.finalizer = syncedTrue, true, true, true
		default:
			verb, harm = "creates an external resource for", created
			if o.external == 0 {
				o.external = uint8(maxNodes + i + 1)
			}
			next.cloud |= with(int(o.external) - 1)
		}
		if next != *s {
			emit(step{label: label{provider, verb, int8(i)}, next: next, damage: harm})
		}
	}
}

// deletion deletes the external resource of an MR, and returns whether that is damage. It is none
// if a user has removed the MR from the Composition.
func (w *world) deletion(s *state, o *object) damage {
	if o.external == 0 || !s.cloud.has(int(o.external)-1) {
		return 0
	}
	s.cloud &^= with(int(o.external) - 1)
	if int(o.external) <= maxNodes && !w.isRemoved(s, int(o.external)-1) {
		return deleted
	}

	return 0
}

// userSteps are the steps of a user who removes a node from a Composition, once, at any time. Its
// revision is the newest then: none is restored with a higher number (restoreitem, numberRevision).
func (w *world) userSteps(s *state, emit func(step)) {
	if s.revised != 0 {
		return
	}
	for n := range w.parent {
		if w.removable.has(n) {
			next := *s
			next.revised = uint8(n + 1)
			emit(step{label: label{user, "takes out of its Composition", int8(original(n))}, next: next})
		}
	}
}
