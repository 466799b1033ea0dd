package explorer

import "github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"

type commandKind uint8

const (
	noCommand commandKind = iota
	holds
	aborts
	retires
)

// A command is the progress of the command that runs in the source.
type command struct {
	kind commandKind
	// xrs and mrs are true once the current look of hold has read them: seen, and all quiet if calm.
	xrs, mrs, calm bool
	seen           set
	// settled are what the last look has seen, if it was all quiet.
	settled set
	// looked is true once the current abort has found no receipt.
	looked bool
}

// commandSteps are the steps of the operator and of the commands hold, release --handover and
// retire (package hooks).
func (w *world) commandSteps(s *state, src source, to emitter) {
	run := func(verb string, change func(next *source)) {
		next := src
		change(&next)
		to(operator, verb, ofSource, next, s.cloud, 0)
	}
	if src.command.kind != noCommand {
		run("kills the command", func(next *source) { next.command = command{} })
	}
	if (src.recorded || w.without&safeHold != 0) && s.velero.at == 0 && src.command.kind != aborts {
		run("backs up", func(next *source) { next.backup, next.withdrawn = w.backUpSource(&src), false })
	}
	switch src.command.kind {
	case holds:
		w.holdSteps(s, src, to)
	case aborts:
		w.abortSteps(s, src, to)
	case retires:
		w.retireSteps(s, src, to)
	case noCommand:
		w.beginSteps(s, src, run)
	}
}

// beginSteps are the commands that the operator can run.
func (w *world) beginSteps(s *state, src source, run func(verb string, change func(next *source))) {
	if w.handover.again || !src.aborted || src.receipt && w.isHeldInSource(&src) {
		run("runs hold", func(next *source) {
			next.command.kind, next.recorded, next.reported, next.adopted = holds, true, false, 0
		})
	}
	if src.recorded || w.isHeldInSource(&src) {
		run("runs release --handover", func(next *source) {
			next.command.kind, next.recorded = aborts, false
			if w.without&safeOrder == 0 {
				next.withdrawn = w.recordsAbort(&src)
			}
		})
	}
	if src.recorded && src.begun && s.velero.polled && s.velero.at == 0 {
		if adopted := w.adoptedIn(s); !src.reported || adopted != src.adopted {
			run("makes a report of the target", func(next *source) { next.adopted, next.reported = adopted, true })
		}
	}
	if src.recorded && src.reported {
		run("runs retire", func(next *source) { next.command.kind = retires })
	}
}

// recordsAbort reports whether a backup is there whose abort is recorded.
func (w *world) recordsAbort(src *source) bool {
	return src.withdrawn || src.backup != 0 && w.without&safeRecord == 0
}

func (w *world) backUpSource(src *source) uint16 {
	return numbered(sourceBackup{src.objects, src.recorded}, &w.handover.backups, w.handover.backupIDs)
}

func (w *world) isHeldInSource(src *source) bool {
	for i := range src.objects {
		if src.objects[i].live && src.objects[i].mark != 0 {
			return true
		}
	}

	return false
}

// adoptedIn returns the nodes that validate shows as adopted.
func (w *world) adoptedIn(s *state) set {
	var all set
	for n := range w.parent {
		if o := &s.objects[original(n)]; o.live && o.mark == 0 && !o.deleting {
			all |= with(n)
		}
	}

	return all
}

// holdSteps are the steps of the command hold (hooks/hold.go): a look reads the XRs and the MRs at
// different times, then pauses what is not paused. The command ends when two looks in succession
// have seen the same, and all of it quiet.
func (w *world) holdSteps(s *state, src source, to emitter) {
	c := src.command
	read := func(isXR bool) {
		next := src
		n := &next.command
		if !c.xrs && !c.mrs {
			n.calm = true
		}
		if isXR {
			n.xrs = true
		} else {
			n.mrs = true
		}
		for i := range theClaim {
			if o := src.objects[i]; o.live && w.isXR(i) == isXR {
				n.seen |= with(i)
				n.calm = n.calm && w.isQuiet(o, i)
			}
		}
		to(plugin, "hold reads", ofSource, next, s.cloud, 0)
	}
	if !c.xrs {
		read(true)
	}
	if !c.mrs {
		read(false)
	}
	if !c.xrs || !c.mrs {
		return
	}
	for i := range theClaim {
		if after, ok := w.handOver(&src.objects[i], i); ok && c.seen.has(i) {
			next := src
			next.objects[i] = after
			to(plugin, "hold pauses", inSource+i, next, s.cloud, 0)
		}
	}
	next := src
	switch {
	case c.calm && c.settled == c.seen:
		next.command = command{}
		to(plugin, "hold ends", ofSource, next, s.cloud, 0)
	case c.calm:
		next.command = command{kind: holds, settled: c.seen}
		to(plugin, "hold looks again", ofSource, next, s.cloud, 0)
	default:
		next.command = command{kind: holds}
		to(plugin, "hold looks again", ofSource, next, s.cloud, 0)
	}
}

func (w *world) isQuiet(o object, i instance) bool {
	return w.key.WhyNotQuiet(w.encode(i, o)).IsZero()
}

// handOver returns an object as the command hold leaves it; false if it does not change it.
func (w *world) handOver(o *object, i instance) (object, bool) {
	if !o.live {
		return object{}, false
	}
	as := *o
	if w.without&safeStale != 0 && !as.paused {
		as.synced = syncedTrue
	}
	u := w.encode(i, as)
	change, why := w.key.HandOver(u, noon)
	if !why.IsZero() || change.Patch == nil {
		return object{}, false
	}
	after := w.decode(xptest.Merge(u, change.Patch), *o)

	return after, after != *o
}

// abortSteps are the steps of the command release --handover (hooks/release_handover.go): it leaves a
// record of the abort, looks for receipts, notes the consent of the user in each mark, and releases
// as any release does. If there is a receipt, it ends, and the handover goes on.
func (w *world) abortSteps(s *state, src source, to emitter) {
	c, next := src.command, src
	switch {
	case !c.looked && src.receipt && w.without&safeReceipt == 0:
		next.command, next.recorded = command{}, true
		to(plugin, "release finds a receipt", ofSource, next, s.cloud, 0)

		return
	case !c.looked:
		next.command.looked, next.aborted = true, true
		to(plugin, "release finds no receipt", ofSource, next, s.cloud, 0)

		return
	case w.without&safeOrder != 0 && w.recordsAbort(&src) != src.withdrawn:
		next.withdrawn = true
		to(plugin, "release records the abort", ofSource, next, s.cloud, 0)

		return
	}
	for i := range theClaim {
		o := &src.objects[i]
		if !o.live || o.mark == 0 {
			continue
		}
		u := w.encode(i, *o)
		if p, ok := w.key.Consent(u); ok {
			next := src
			next.objects[i] = w.decode(xptest.Merge(u, p), *o)
			to(plugin, "release notes the consent to", inSource+i, next, s.cloud, 0)
		}
	}
	id, _ := w.planFor(&state{objects: src.objects, revisions: with(0)})
	for _, change := range w.plans[id] {
		next := src
		next.objects[change.instance] = change.after
		to(plugin, "release changes", inSource+change.instance, next, s.cloud, 0)
	}
	if !w.isHeldInSource(&src) {
		next.command = command{}
		to(plugin, "release ends", ofSource, next, s.cloud, 0)
	}
}

// retireSteps are the steps of the command retire (hooks/retire.go): for each object that is quiet
// and adopted in the target it takes the finalizers off, then deletes it. An XR stays while
// something stays that it composes.
func (w *world) retireSteps(s *state, src source, to emitter) {
	left := false
	for i := range theClaim {
		o := &src.objects[i]
		if !o.live {
			continue
		}
		left = true
		h, err := w.key.HoldOf(w.encode(i, *o))
		isAdopted := src.adopted.has(nodeOf(i)) || w.without&safeReport != 0
		if err != nil || h == nil || !h.IsHandover() || !w.isQuiet(*o, i) || !isAdopted || w.hasComposed(&src, i) || w.isBusyAbove(&src, i) {
			continue
		}
		next := src
		if o.finalizer {
			next.objects[i].finalizer = false
			to(plugin, "retire takes the finalizers off", inSource+i, next, s.cloud, 0)

			continue
		}
		next.objects[i] = object{life: o.life}
		to(plugin, "retire deletes", inSource+i, next, s.cloud, 0)
	}
	next := src
	next.command, next.recorded = command{}, left
	to(plugin, "retire ends", ofSource, next, s.cloud, 0)
}

// isBusyAbove reports whether the XR of an MR is not quiet, and would compose it again.
func (w *world) isBusyAbove(src *source, i instance) bool {
	by := w.parent[nodeOf(i)]
	if by < 0 {
		return false
	}
	o := src.objects[original(by)]

	return o.live && !w.isQuiet(o, original(by))
}

func (w *world) hasComposed(src *source, i instance) bool {
	if !w.isXR(i) {
		return false
	}
	for _, c := range w.children(nodeOf(i)) {
		if src.objects[original(c)].live {
			return true
		}
	}

	return false
}
