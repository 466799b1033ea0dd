package explorer

// kubernetesSteps are those of the garbage collector: it deletes an object of which all owners are
// gone or have another UID (kubernetes pkg/controller/garbagecollector/garbagecollector.go,
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

// providerSteps are those of the reconciler of MRs (crossplane-runtime
// pkg/reconciler/managed/reconciler.go, Reconcile): nothing but the condition if it is paused; else
// it observes what the external-name names, creates that if there is none, and deletes it before it
// takes its finalizer off.
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
			verb, o.said, o.current = "notices the pause of", saysPaused, true
		case o.deleting:
			verb, harm = "deletes the external resource of", w.deletion(&next, o)
			*o = object{life: o.life}
		case o.external != 0 && s.cloud.has(int(o.external)-1):
			o.said, o.current, o.ready, o.finalizer = saysSynced, true, true, true
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

// deletion deletes what an MR names, and reports whether that is damage: a person can have taken it
// out of the Composition.
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

// personSteps are those of whoever maintains the Composition: once, at any time, a node is taken
// out of it. Its revision is the newest from then on: one that Velero restores beside it does not
// outrank it (restoreitem, Cluster.RaiseRevision).
func (w *world) personSteps(s *state, emit func(step)) {
	if s.revised != 0 {
		return
	}
	for n := range w.parent {
		if w.removable.has(n) {
			next := *s
			next.revised = uint8(n + 1)
			emit(step{label: label{person, "takes out of its Composition", int8(original(n))}, next: next})
		}
	}
}
