package explorer

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// gitSteps are the steps of a tool that applies an XR or claim from Git if it is missing, once, at
// any time. It does not change what is held.
func (w *world) gitSteps(s *state, emit func(step)) {
	top := original(0)
	if w.claimed {
		top = theClaim
	}
	if !w.git || s.applied || s.objects[top].live {
		return
	}
	next := *s
	next.applied = true
	next.objects[top] = object{live: true, life: s.objects[top].life + 1}
	emit(step{label: label{applier, "applies the manifest of", int8(top)}, next: next})
}

// restoreLabels are the labels that Velero writes on what a restore creates.
func restoreLabels() map[string]string { return map[string]string{xp.LabelRestore: theRestore.Name} }

// takesOver reports whether the plugin gives an XR that another writer created its composed
// resources, before the first of these is restored.
func (w *world) takesOver(s *state, by instance) bool {
	if !w.git || !w.isXR(by) || w.noTakeOver {
		return false
	}
	o := s.objects[by]

	if !o.live || w.claimed {
		return false
	}
	being, whole := w.key.IsBeingTakenOver(w.encode(by, o), w.backup[by])

	return hold.CanTakeOver(w.encode(by, o)) || being && (!whole || o.synced != syncedPaused || !o.current)
}

// takeOver is what the plugin writes then (internal/adopter/takeover.go, TakeOver).
func (w *world) takeOver(s *state, by instance, emit func(step)) {
	next := *s
	o := &next.objects[by]
	live := w.encode(by, *o)
	if being, _ := w.key.IsBeingTakenOver(live, w.backup[by]); being {
		next.velero.phase = awaitsPause
		emit(step{label: label{plugin, "goes on taking over", int8(by)}, next: next})

		return
	}
	change, err := w.key.TakeOver(live, w.backup[by], hold.Hold{Restore: "velero/monday", Since: noon.Format(time.RFC3339)}, restoreLabels())
	must(err)
	w.update(o, xptest.Merge(live, change.Patch))
	o.refs, o.revision, o.finalizer, o.restored = w.backedUpRefs(by), 1, true, true
	w.newGeneration(o)
	next.velero.phase = awaitsPause
	emit(step{label: label{plugin, "takes over", int8(by)}, next: next})
}

// endTakeOver goes on when Crossplane has observed the pause. Crossplane does not finish the
// reconcile then that it had begun before.
func (w *world) endTakeOver(s *state, by instance, emit func(step)) {
	next := *s
	next.velero.phase = considers
	o := &next.objects[by]
	switch {
	case !o.live:
		emit(step{label: label{plugin, "finds nothing left of", int8(by)}, next: next})
	case o.paused && (o.synced != syncedPaused || !o.current):
	case o.refs == w.backedUpRefs(by):
		emit(step{label: label{plugin, "has taken over", int8(by)}, next: next})
	default:
		live := w.encode(by, *o)
		if change := w.key.GiveUp(live); change.Patch != nil {
			w.update(o, xptest.Merge(live, change.Patch))
			o.restored = false
		}
		emit(step{label: label{plugin, "gives up", int8(by)}, next: next})
	}
}

// isGivenUp reports whether an XR that another writer created has composed new resources.
func (w *world) isGivenUp(s *state, i instance) bool {
	return s.applied && s.objects[i].refs&w.backedUpRefs(i) == 0
}

func (w *world) update(o *object, u *unstructured.Unstructured) { *o = w.decode(u, *o) }

// backedUpRefs returns what an XR composes in the backup.
func (w *world) backedUpRefs(i instance) set {
	var refs set
	for _, c := range w.children(nodeOf(i)) {
		refs |= with(original(c))
	}

	return refs
}

// If another writer creates an XR first, and the plugin takes it over, a restore can end as without
// that writer.
func TestExplorerFindsWhatIsTakenOver(t *testing.T) {
	t.Parallel()
	for _, without := range []bool{false, true} {
		for _, r := range []rules{v120, v23, after7627} {
			w := flat(r).vary(gitFirst, variant{"or not taken over", func(w *world) { w.noTakeOver = without }})
			x, err := explore(w, 0)
			if err != nil {
				t.Fatal(err)
			}
			sound := false
			for _, at := range x.ends {
				s := &x.states[at]
				sound = sound || s.applied && s.cloud == w.start().cloud && w.isSound(s) && !w.isReported(s)
			}
			if sound == without {
				t.Errorf("%s: a sound end exists although Git is first: %t", w, sound)
			}
		}
	}
}
