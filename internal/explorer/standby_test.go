package explorer

import (
	"context"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/restoreitem"
)

// theSchedule is the schedule of all backups in a world with a standby cluster.
const theSchedule = "platform"

// Phases of an item that refreshes a live object, after those of Velero.
const (
	refreshes = awaitsPause + 1 + iota
	recordsRefresh
)

// isStandbyWorld reports whether the target is a standby cluster, into which each backup of the
// source is restored until the source is lost.
func (w *world) isStandbyWorld() bool { return w.handover != nil && w.handover.standby }

// standbySteps are the steps of the source, of its loss and of the promotion of the target. A
// creation in the source is one step, and so is a deletion.
func (w *world) standbySteps(s *state, src source, to emitter) {
	if !src.lost {
		w.backedUpSteps(s, src, to)
	}
	if (src.lost || w.without&safeLoss != 0) && !src.promoting && !src.begun && src.refreshed != 0 && s.velero.at == 0 {
		next := src
		next.promoting, next.promoted = true, true
		if !src.promoted {
			next.from = src.refreshed
		}
		to(operator, "runs release --restore", -1, next, s.cloud, 0)
	}
	if !src.promoting {
		return
	}
	next := src
	next.promoting = false
	to(operator, "kills release", -1, next, s.cloud, 0)
}

// backedUpSteps are the steps of the source while it lives. A user takes an MR out of the spec of
// the XR once.
func (w *world) backedUpSteps(s *state, src source, to emitter) {
	xr := original(0)
	for _, n := range w.children(0) {
		i := original(n)
		o, next := &src.objects[i], src
		switch {
		case w.handover.later.has(n) && !o.live && !src.objects[xr].dropped.has(n):
			next.objects[xr].refs |= with(i)
			next.objects[i] = object{
				live: true, life: 1, controller: ownedBy(xr, 1), external: uint8(n + 1), synced: syncedTrue, current: true, ready: true, finalizer: true,
			}
			to(crossplane, "composes", inSource+i, next, s.cloud|with(n), 0)
		case o.live && src.objects[xr].dropped.has(n):
			next.objects[xr].refs &^= with(i)
			next.objects[i] = object{}
			to(crossplane, "deletes what is not wanted any more:", inSource+i, next, s.cloud&^with(n), 0)
		case o.live && w.handover.droppable.has(n):
			next.objects[xr].dropped |= with(n)
			to(user, "takes out of the spec of its XR", inSource+i, next, s.cloud, 0)
		}
	}
	if s.velero.at == 0 { // A restore has its backup; the next one takes the newest.
		next := src
		next.backup = w.backUpSource(&src)
		to(operator, "backs up", ofSource, next, s.cloud, 0)
	}
	if src.refreshed != 0 {
		next := src
		next.objects, next.lost = [2*maxNodes + 1]object{}, true
		to(operator, "loses everything", ofSource, next, s.cloud, 0)
	}
}

// consentSteps are the writes with which release notes the consent of the user in the mark of each
// object that the last restore holds (internal/live/release.go, ConsentAll). If restores go on
// during a promotion, the user releases what each of them holds.
func (w *world) consentSteps(s *state, src source, emit func(step)) {
	if !src.promoting {
		return
	}
	for i := range theClaim {
		o := &s.objects[i]
		if !o.live || o.mark == 0 {
			continue
		}
		u := w.encode(i, *o)
		h, err := w.key.HoldOf(u)
		must(err)
		if h == nil || h.Restore != nameOf(w.restoreOf(src.refreshed)) && w.without&safeJob == 0 {
			continue
		}
		if p, ok := w.key.Consent(u); ok {
			next := *s
			next.objects[i] = w.decode(xptest.Merge(u, p), *o)
			emit(step{label: label{plugin, "release notes the consent to", int8(i)}, next: next})
		}
	}
}

// restoreOf returns the Restore of a backup.
func (w *world) restoreOf(backup uint16) *velerov1.Restore {
	r := anotherRestore.DeepCopy()
	r.Name = fmt.Sprint("standby-", backup)
	r.Annotations = map[string]string{setting.Prefix + setting.NameStandby: "true"}

	return r
}

func nameOf(r *velerov1.Restore) string { return r.Namespace + "/" + r.Name }

// isStandby reports whether a live object of the target is one to refresh.
func (w *world) isStandby(s *state, i instance) bool {
	if !w.isStandbyWorld() || i < 0 || !s.objects[i].live {
		return false
	}
	_, ok := w.key.StandbyOf(w.encode(i, s.objects[i]))

	return ok
}

// considerRefresh is the plugin's action on an item whose live object is in quarantine
// (internal/live/standby.go, Refresh).
func (w *world) considerRefresh(s *state, i instance, emit func(step)) {
	next := *s
	m := w.resultOf(s, i)
	if !m.refreshes {
		next.velero.clean = false
		w.nextItem(&next)
		emit(step{label: label{plugin, "does not refresh", int8(i)}, next: next})

		return
	}
	next.velero.phase, next.velero.result = refreshes, w.numberResult(m)
	harm := staleOwner(s, m.object.controller)
	emit(step{label: label{plugin, "finds in quarantine", int8(i)}, next: next, damage: harm})
}

// refreshSteps are the writes of a refresh. Each fails if another writer has changed the object, and
// then the plugin leaves it alone if it is not in quarantine any more.
func (w *world) refreshSteps(s *state, i instance, emit func(step)) {
	m, next := w.results[s.velero.result], *s
	o := &next.objects[i]
	if !o.live || !w.isStandby(s, i) && w.without&safeOutdated == 0 {
		w.nextItem(&next)
		emit(step{label: label{plugin, "does not refresh what has left the quarantine:", int8(i)}, next: next})

		return
	}
	failed := *s
	w.nextItem(&failed)
	failed.velero.clean = false
	emit(step{label: label{plugin, "is refused by the API server, and can't refresh", int8(i)}, next: failed})
	switch {
	case s.velero.phase == recordsRefresh, m.same:
		o.mark = m.object.mark
		if s.velero.phase == recordsRefresh {
			o.status = o.status || w.isXR(i) && w.gates[nodeOf(i)] == gatedByStatus
		}
		w.nextItem(&next)
		emit(step{label: label{plugin, "records the refresh of", int8(i)}, next: next})
	default:
		before := *o
		*o = m.object
		o.mark, o.life = m.started, before.life
		o.synced, o.current, o.ready, o.status = before.synced, before.current, before.ready, before.status
		if o.refs != before.refs || o.dropped != before.dropped || o.policy != before.policy || o.revision != before.revision {
			w.newGeneration(o)
		}
		next.velero.phase = recordsRefresh
		emit(step{label: label{plugin, "refreshes", int8(i)}, next: next})
	}
}

// removalSteps remove what earlier restores brought and the backup does not have, composed
// resources first (internal/live/standbyremoval.go, RemoveStandbys). Then the restore ends.
func (w *world) removalSteps(s *state, emit func(step)) {
	next, this := *s, nameOf(w.restoreOf(s.velero.backup))
	isPromoted := func(i instance) bool {
		return s.objects[i].live && w.key.IsPromoted(w.encode(i, s.objects[i]), theSchedule)
	}
	isKept := false
	for i := range theClaim {
		isKept = isKept || isPromoted(i)
	}
	for i := theClaim - 1; i >= 0; i-- {
		if isKept || !w.isStandby(s, i) {
			continue
		}
		found, _ := w.key.StandbyOf(w.encode(i, s.objects[i]))
		if found.Schedule != theSchedule || found.Restore == this || w.isBackedUp(s, i) && w.without&safeBackedUp == 0 {
			continue
		}
		o := &next.objects[i]
		verb := "takes the finalizers off"
		if o.finalizer {
			o.finalizer = false
		} else {
			*o, verb = object{life: o.life}, "removes"
		}
		emit(step{label: label{plugin, verb, int8(i)}, next: next})

		return
	}
	w.endRefresh(&next)
	emit(step{label: label{velero, "ends the restore", -1}, next: next})
}

// endRefresh ends a restore, and notes in the source which backup the target has, if that is all of
// it.
func (w *world) endRefresh(s *state) {
	src := w.sourceOf(s)
	if s.velero.clean {
		src.refreshed, src.begun = s.velero.backup, false
	}
	s.source = w.handover.number(&src)
	s.velero = restore{whole: s.velero.whole || s.velero.clean}
}

// hasBackedUp reports whether a backup has a node.
func (w *world) hasBackedUp(backup uint16, n node) bool {
	return w.handover.backups[backup].objects[original(n)].live
}

// isExcused reports whether the source has created or deleted the external resource of a node since
// the last backup that was restored. That is lost with the source.
func (w *world) isExcused(s *state, n node) bool {
	if !w.isStandbyWorld() {
		return false
	}
	src := w.sourceOf(s)

	return !w.hasBackedUp(src.refreshed, n) || !w.hasBackedUp(src.from, n) || !s.cloud.has(n)
}

// isDropped reports whether a user has taken a node out of the spec of its XR.
func (w *world) isDropped(s *state, n node) bool {
	by := w.parent[n]

	return by >= 0 && s.objects[original(by)].dropped.has(n)
}

// isStandbySound reports whether the source is lost, and the target has everything that the XR
// wants, and nothing else.
func (w *world) isStandbySound(s *state) bool {
	src := w.sourceOf(s)
	if !src.promoted || s.velero.at != 0 {
		return false
	}
	xr := &s.objects[original(0)]
	for n := range w.parent {
		i := original(n)
		o := &s.objects[i]
		if s.objects[recreated(n)].live {
			return false
		}
		if xr.dropped.has(n) {
			if o.live || xr.refs.has(i) {
				return false
			}

			continue
		}
		if !o.live || o.deleting || o.mark != 0 || o.paused || o.policy != unset {
			return false
		}
		if n == 0 {
			continue
		}
		isNew := !w.hasBackedUp(src.refreshed, n) || !w.hasBackedUp(src.from, n)
		isKnown := int(o.external) == n+1 || isNew && o.external != 0
		if !xr.refs.has(i) || o.controller != ownedBy(original(0), xr.life) || !isKnown || !s.cloud.has(int(o.external)-1) {
			return false
		}
	}

	return true
}

// A standbyCluster is the target as the plugin's restore action sees it: the live object of one
// item.
type standbyCluster struct {
	*world

	live *unstructured.Unstructured
	// refresh is what the plugin refreshes it with, same is true if the content is the same.
	refresh *unstructured.Unstructured
	same    bool
}

func (c *standbyCluster) Standby(_ context.Context, key adoption.Key, _ xp.Ref) (*adoption.Standby, error) {
	if c.live == nil {
		return nil, nil //nolint:nilnil // There is none.
	}
	if s, ok := key.StandbyOf(c.live); ok {
		if c.without&safeStatus != 0 {
			h, err := key.HoldOf(c.live)
			must(err)
			s.Content = h.Content
		}

		return &s, nil
	}

	return nil, nil //nolint:nilnil // It is not in quarantine.
}

func (c *standbyCluster) Refresh(_ context.Context, _ adoption.Key, s adoption.Standby, of adoption.Refresh) (bool, error) {
	c.refresh, c.same = of.Object.DeepCopy(), s.Content == of.Content

	return true, nil
}

func (*standbyCluster) EndHandover(context.Context, string, *unstructured.Unstructured) error {
	return nil
}

func (*standbyCluster) Schedule(context.Context, string, string) (string, error) {
	return theSchedule, nil
}

// RemoveStandbys is not called: no operation is polled here (see removalSteps).
func (*standbyCluster) RemoveStandbys(context.Context, adoption.Key, string, string) ([]xp.Ref, []reason.Message, error) {
	return nil, nil, nil
}

// standbyOptions returns the options of the plugin's restore action for the item of a look.
func (w *world) standbyOptions(look actionInput) (*standbyCluster, []restoreitem.Option) {
	c := &standbyCluster{world: w}
	if !w.isStandbyWorld() {
		return c, nil
	}
	if look.live.live {
		c.live = w.encode(look.item, look.live)
	}

	return c, []restoreitem.Option{restoreitem.WithStandby(c)}
}

// refreshed returns the result of the plugin's action for an item that refreshes a live object.
func (w *world) refreshed(c *standbyCluster, look actionInput) actionResult {
	m := actionResult{refreshes: true, same: c.same}
	w.mutate(c.refresh, w.item(look.backup, look.item))
	blank := object{live: true, restored: true, finalizer: true}
	m.object = w.decode(c.refresh, blank)
	w.handover.inherit(&m.object, look)
	u, err := w.key.WithoutContent(c.refresh)
	must(err)
	m.started = w.decode(u, blank).mark

	return m
}
