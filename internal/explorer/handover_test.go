package explorer

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Instances of labels of steps in the source cluster.
const (
	inSource = 32
	ofSource = 100
)

// safeguards are those of a handover, or the rules of docs/handover.md that an operator follows.
type safeguards uint16

const (
	// hold: the source is backed up without it, and goes on.
	safeHold safeguards = 1 << iota
	// quiet: the target restores what is not quiet.
	safeQuiet
	// receipt: an abort is not refused.
	safeReceipt
	// record: an abort leaves no record.
	safeRecord
	// order: an abort looks for receipts before it leaves its record.
	safeOrder
	// look: a restore does not look for an abort after it has left its receipt.
	safeLook
	// report: retire deletes what is not adopted.
	safeReport
	// stale: hold counts a report of an earlier pause.
	safeStale
	// loss: an operator promotes the standby while the source lives.
	safeLoss
	// status: a refresh with the same content writes only the mark, though the status is missing.
	safeStatus
	// backedUp: a restore into a standby removes what the backup has.
	safeBackedUp
	// outdated: a refresh writes what has left the quarantine.
	safeOutdated
	// job: an operator restores into a standby that is being promoted.
	safeJob
)

// A handover is a source cluster that hands its tree over to the one of the world.
type handover struct {
	// later are the nodes that the source has not composed yet.
	later set
	// again lets an operator hold the source again after an abort.
	again bool
	// standby makes the target a standby cluster of a source that is lost at some time. droppable are
	// the nodes that a user of the source can take out of the spec of their XR.
	standby   bool
	droppable set

	sources   []source
	sourceIDs map[source]uint32
	backups   []sourceBackup
	backupIDs map[sourceBackup]uint16
	items     map[backedUp]*unstructured.Unstructured
}

// A source is the state of the source cluster.
type source struct {
	objects [2*maxNodes + 1]object
	// working are the MRs with a reconcile under way.
	working set
	command command
	// recorded is true while a handover is recorded, aborted once one was aborted.
	recorded, aborted bool
	// backup is the number of the latest backup that an operator may restore; 0 is none. begun is
	// true once a restore has begun.
	backup uint16
	begun  bool
	// receipt is true once the target has left a receipt. withdrawn is true once an abort is recorded
	// that is later than the backup.
	receipt, withdrawn bool
	// adopted are the nodes that the report of the target has as adopted. reported is true if there
	// is one.
	adopted  set
	reported bool
	// refreshed is the last backup that a standby has all of, and from the one from which its promotion
	// began; 0 is none. lost is true once the source
	// of a standby is lost, promoted once the promotion has begun, promoting while release runs.
	refreshed, from           uint16
	lost, promoted, promoting bool
}

// A sourceBackup is a backup of the source.
type sourceBackup struct {
	objects  [2*maxNodes + 1]object
	recorded bool
}

type backedUp struct {
	backup uint16
	item   instance
}

func (h *handover) fresh() *handover {
	return &handover{
		later: h.later, again: h.again, standby: h.standby, droppable: h.droppable, sources: []source{{}}, sourceIDs: map[source]uint32{}, backups: []sourceBackup{{}}, backupIDs: map[sourceBackup]uint16{},
		items: map[backedUp]*unstructured.Unstructured{},
	}
}

func (h *handover) number(src *source) uint32 {
	return numbered(*src, &h.sources, h.sourceIDs)
}

// startHandover returns the state before a handover: the source runs, and has not composed
// everything yet. The target has nothing.
func (w *world) startHandover() state {
	var s state
	var src source
	for n := range w.parent {
		if w.handover.later.has(n) {
			continue
		}
		o := object{live: true, life: 1, synced: syncedTrue, current: true, ready: true, finalizer: true}
		if p := w.parent[n]; p >= 0 {
			o.controller = ownedBy(original(p), 1)
		}
		if n >= w.xrs {
			o.external = uint8(n + 1)
			s.cloud |= with(n)
		} else {
			o.revision, o.status = 1, w.gates[n] == gatedByStatus
			o.refs = w.backedUpRefs(original(n))
			for later := range w.parent {
				if w.handover.later.has(later) {
					o.refs &^= with(original(later))
				}
			}
		}
		src.objects[original(n)] = o
	}
	s.source = w.handover.number(&src)

	return s
}

func (w *world) sourceOf(s *state) source { return w.handover.sources[s.source] }

// canRestore reports whether an operator begins a restore: in a handover of a backup of the source.
func (w *world) canRestore(s *state) bool {
	if w.handover == nil {
		return true
	}
	src := w.sourceOf(s)

	return src.backup != 0 && (!src.promoted || w.without&safeJob != 0)
}

// backupOf returns the number of the backup that is restored.
func (w *world) backupOf(s *state) uint16 {
	if w.handover == nil {
		return 0
	}

	return w.sourceOf(s).backup
}

// noteRestore notes in the source that its operator has begun a restore in the target.
func (w *world) noteRestore(s *state) {
	if w.handover == nil {
		return
	}
	src := w.sourceOf(s)
	src.begun = true
	s.source = w.handover.number(&src)
}

func (w *world) isBackedUp(s *state, i instance) bool {
	return w.handover == nil || i < 0 || w.item(s.velero.backup, i) != nil
}

// item returns an item of a backup, nil if it has none, with the notes that the plugin makes
// (backupitem/source.go, noteSource).
func (w *world) item(backup uint16, i instance) *unstructured.Unstructured {
	if w.handover == nil {
		return w.backup[i]
	}
	b := &w.handover.backups[backup]
	if !b.objects[i].live {
		return nil
	}
	at := backedUp{backup, i}
	if u := w.handover.items[at]; u != nil {
		return u
	}
	u := w.build(i, &b.objects[i])
	note := xp.Source{Cluster: "source"}
	if b.recorded {
		note.Handover = "noon"
		note.Busy = string(w.key.WhyNotQuiet(u).Code)
	}
	if w.isXR(i) {
		var composed []*unstructured.Unstructured
		for _, c := range w.children(nodeOf(i)) {
			if o := &b.objects[original(c)]; o.live {
				composed = append(composed, w.build(original(c), o))
			}
		}
		xp.SetSavedConditions(u, composed)
	}
	xp.SetSource(u, note)
	w.handover.items[at] = u

	return u
}

// inherit gives a restored object what its item has.
func (h *handover) inherit(o *object, look actionInput) {
	was := &h.backups[look.backup].objects[look.item]
	o.external, o.refs, o.revision, o.dropped = was.external, was.refs, was.revision, was.dropped
}

// handoverSteps are the steps in the source cluster: those of its controllers, and of the commands
// of the handover. Each can be killed between any two of its writes, and run again.
func (w *world) handoverSteps(s *state, emit func(step)) {
	if w.handover == nil {
		return
	}
	src := w.sourceOf(s)
	to := func(by actor, verb string, i int, next source, cloud set, harm damage) {
		t := *s
		t.cloud, t.source = cloud, w.handover.number(&next)
		emit(step{label: label{by, verb, int8(i)}, next: t, damage: harm})
	}
	if w.handover.standby {
		w.standbySteps(s, src, to)
		w.consentSteps(s, src, emit)

		return
	}
	for i := range theClaim {
		o := &src.objects[i]
		switch {
		case !o.live:
		case w.isXR(i):
			w.sourceXR(s, src, i, to)
		default:
			w.sourceMR(s, src, i, to)
		}
		if by := o.controller; o.live && !o.deleting && by != 0 && !src.objects[by.instance()].live {
			next := src
			deleteObject(&next.objects[i])
			to(kubernetes, "garbage-collects", inSource+i, next, s.cloud, 0)
		}
	}
	w.commandSteps(s, src, to)
	w.forceSteps(s, emit)
}

// forceSteps are the steps of an operator who releases an MR in the target that the source has
// paused before its creation. The plugin asks for that (IdentityMissing).
func (w *world) forceSteps(s *state, emit func(step)) {
	for n := w.xrs; n < len(w.parent); n++ {
		i := original(n)
		o := &s.objects[i]
		if !o.live || o.mark == 0 || o.external != 0 || s.cloud.has(n) || !s.velero.polled {
			continue
		}
		snapshot, _, _ := w.observed(&view{objects: s.objects, revisions: s.revisions})
		u := w.encode(i, *o)
		if c := adoption.AssessForce(snapshot, xp.RefTo(u)).Change; c.Patch != nil {
			next := *s
			next.objects[i] = w.decode(xptest.Merge(u, c.Patch), *o)
			emit(step{label: label{operator, "releases with force", int8(i)}, next: next})
		}
	}
}

// An emitter emits a step in the source.
type emitter func(by actor, verb string, i int, next source, cloud set, harm damage)

// sourceXR are the steps of the reconciler of an XR in the source. A reconcile that has begun before
// a pause composes what is missing after it.
func (w *world) sourceXR(s *state, src source, i instance, to emitter) {
	o := &src.objects[i]
	if !o.paused || o.synced != syncedPaused {
		for _, c := range w.children(nodeOf(i)) {
			if next := src; !src.objects[original(c)].live {
				next.objects[i].refs |= with(original(c))
				next.objects[original(c)] = object{live: true, life: 1, controller: ownedBy(i, o.life)}
				to(crossplane, "composes", inSource+original(c), next, s.cloud, 0)
			}
		}
	}
	next := src
	n := &next.objects[i]
	if n.synced, n.current = syncedTrue, true; o.paused {
		n.synced = syncedPaused
	}
	if next != src {
		to(crossplane, "reports the state of", inSource+i, next, s.cloud, 0)
	}
}

// sourceMR are the steps of the provider in the source. It notes that it begins a creation before
// it creates. A reconcile that has begun before a pause can write after it.
func (w *world) sourceMR(s *state, src source, i instance, to emitter) {
	o, n, next := &src.objects[i], nodeOf(i), src
	now := &next.objects[i]
	switch {
	case o.creating:
		harm := damage(0)
		if s.cloud.has(n) {
			harm = created
		}
		now.creating, now.external, now.synced, now.current, now.finalizer, now.ready = false, uint8(n+1), syncedTrue, true, true, true
		next.working &^= with(i)
		to(provider, "creates the external resource of", inSource+i, next, s.cloud|with(n), harm)
	case src.working.has(i):
		next.working &^= with(i)
		now.synced, now.current = syncedTrue, true
		to(provider, "ends a reconcile of", inSource+i, next, s.cloud, 0)
	case o.paused:
		if now.synced, now.current = syncedPaused, true; next != src {
			to(provider, "notices the pause of", inSource+i, next, s.cloud, 0)
		}
	case o.deleting:
		*now = object{life: o.life}
		harm := damage(0)
		if o.external != 0 && s.cloud.has(n) {
			harm = deleted
		}
		to(provider, "deletes the external resource of", inSource+i, next, s.cloud&^with(n), harm)
	case o.external == 0:
		now.creating = true
		to(provider, "begins to create", inSource+i, next, s.cloud, 0)
	default:
		verb := verbIdles
		if o.synced != syncedTrue {
			verb = "begins a reconcile of"
		}
		next.working |= with(i)
		to(provider, verb, inSource+i, next, s.cloud, 0)
	}
}
