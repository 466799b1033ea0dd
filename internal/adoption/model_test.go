package adoption

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const trees = 500

// Random trees are restored and adopted with a model of Crossplane that does what matters, and in
// which all damage shows.
func TestRandomTreesAreAdopted(t *testing.T) {
	n := uint64(trees)
	if testing.Short() {
		n /= 10
	}
	for seed := range n {
		m := newModel(seed)
		m.restore()
		m.release()
		m.run()
		if m.fault == "" {
			m.checkEnd()
			m.checkManagedEnd()
		}
		if m.fault != "" {
			t.Errorf("seed %d: %s", seed, m.fault)
		}
	}
}

// A model is a cluster after a restore: one tree of XRs with MRs, and perhaps a claim.
type model struct {
	random  *rand.Rand
	modern  bool
	objects map[xp.ID]*unstructured.Unstructured
	// order is the order of creation, so that a seed always does the same.
	order []xp.ID
	// own has each XR and claim with its user's settings.
	own map[xp.ID]*unstructured.Unstructured
	// managed has each restored MR with its user's settings.
	managed map[xp.ID]*unstructured.Unstructured
	// root is the top of the tree, xrs are all XRs.
	root xp.Ref
	xrs  []xp.Ref
	// stuck are the XRs that can't be adopted: a composed resource is missing or has another
	// controller.
	stuck map[xp.ID]bool
	// reconciled has the latest generation of each XR and claim that Crossplane has reconciled.
	reconciled map[xp.ID]int64
	// missed are the XRs and claims of which Crossplane has lost an event.
	missed map[xp.ID]bool
	// scenarios has the scenario of each MR, was the MRs of each XR in the backup, addressed the
	// XRs with a status that functions wrote.
	scenarios map[xp.ID]*scenario
	was       map[xp.ID][]*unstructured.Unstructured
	addressed map[xp.ID]bool
	// quarantine means that all is restored into quarantine.
	quarantine bool
	// byHand means that a user releases all of it.
	byHand bool
	// unsaved are the XRs whose backup does not show that a composed resource failed to reconcile.
	unsaved map[xp.ID]bool
	// pending are events that happen one after the other, such as the observe of an MR.
	pending []func()
	// polls is the number of polls, each of which takes a while.
	polls int
	fault string
}

func newModel(seed uint64) *model {
	m := &model{
		random: rand.New(rand.NewPCG(seed, seed)), objects: map[xp.ID]*unstructured.Unstructured{}, //nolint:gosec // It must be the same every time.
		own: map[xp.ID]*unstructured.Unstructured{}, managed: map[xp.ID]*unstructured.Unstructured{}, stuck: map[xp.ID]bool{}, reconciled: map[xp.ID]int64{},
		missed: map[xp.ID]bool{}, scenarios: map[xp.ID]*scenario{}, was: map[xp.ID][]*unstructured.Unstructured{}, addressed: map[xp.ID]bool{}, unsaved: map[xp.ID]bool{},
	}
	m.modern, m.quarantine = m.chance(2), m.chance(3)
	m.byHand = m.chance(3)

	return m
}

func (m *model) chance(oneIn int) bool { return m.random.IntN(oneIn) == 0 }

func (m *model) put(u *unstructured.Unstructured) {
	id := xp.RefTo(u).ID()
	if _, ok := m.objects[id]; !ok {
		m.order = append(m.order, id)
	}
	m.objects[id] = u
}

func (m *model) failf(format string, args ...any) {
	if m.fault == "" {
		m.fault = fmt.Sprintf(format, args...)
	}
}

// settings are those that a user can have set.
func (m *model) settings() []xptest.Option {
	var o []xptest.Option
	for _, option := range []xptest.Option{
		xptest.Annotated(xp.AnnotationPaused, []string{"true", "false"}[m.random.IntN(2)]),
		xptest.Policy([]string{"Manual", "Automatic"}[m.random.IntN(2)]),
		xptest.Annotated("theirs", "kept"),
		xptest.Annotated(xp.AnnotationReconcileRequested, "now"),
	} {
		if m.chance(3) {
			o = append(o, option)
		}
	}

	return o
}

// restore creates the tree as after the restore: held, without status, with new UIDs, controlled by
// live objects.
func (m *model) restore() {
	root := m.xr("x", nil, 2)
	m.root = xp.RefTo(root)
	m.put(xptest.Revision(xptest.RevisionName, root))
	if m.modern || m.chance(2) {
		return
	}
	claim := xptest.Claim("o", append(m.settings(), xptest.OfXR(root))...)
	root = m.own[m.root.ID()]
	if !xp.IsPaused(claim) {
		root = copySettings(claim, root) // As Crossplane did before the backup.
	}
	root = xptest.With(root, xptest.ClaimedBy(claim))
	m.own[m.root.ID()], m.own[xp.RefTo(claim).ID()] = root, claim
	m.hold(root)
	m.hold(claim)
}

// xr creates an XR with a tree below it, and returns it with its user's settings.
func (m *model) xr(name string, parent *unstructured.Unstructured, depth int) *unstructured.Unstructured {
	build, composed := xptest.XR, xptest.MR
	if m.modern {
		build, composed = xptest.XRV2, xptest.NamespacedMR
	}
	options := append(m.settings(), xptest.UID(types.UID("new "+name)))
	if parent != nil {
		options = append(options, xptest.ControlledBy(parent))
	}
	xr := build(name, options...)
	if m.chance(10) {
		xptest.NeverComposed()(xr)
		m.own[xp.RefTo(xr).ID()] = xr
		m.xrs = append(m.xrs, xp.RefTo(xr))
		m.hold(xr)

		return xr
	}
	var children []*unstructured.Unstructured
	for n := range m.random.IntN(4) {
		mr := m.draw(composed(fmt.Sprint(name, "-mr", n), append(m.settingsOfMR(), m.controlledBy(xr)...)...), xr)
		children = append(children, mr)
		switch {
		case m.chance(60):
			m.stuck[xp.RefTo(xr).ID()] = true // It was not restored.
		case m.chance(60): //nolint:gocritic // It is another draw.
			m.stuck[xp.RefTo(xr).ID()] = true
			m.restoreManaged(xptest.With(mr, xptest.Without("metadata", "ownerReferences"), xptest.ControlledBy(build("another"))))
		case m.chance(4):
			m.pending = append(m.pending, func() { m.restoreManaged(mr) }) // A second restore creates it.
		default:
			m.restoreManaged(mr)
		}
	}
	for n := range m.random.IntN(3) {
		if depth > 0 {
			children = append(children, m.xr(fmt.Sprint(name, "-", n), xr, depth-1))
		}
	}
	xptest.Refs(children...)(xr)
	m.own[xp.RefTo(xr).ID()] = xr
	m.xrs = append(m.xrs, xp.RefTo(xr))
	m.hold(xr)

	return xr
}

// controlledBy returns mostly the controller of the restore, and sometimes none: then Crossplane
// takes control.
func (m *model) controlledBy(xr *unstructured.Unstructured) []xptest.Option {
	o := []xptest.Option{xptest.ControlledBy(xr)}
	if m.chance(6) {
		o = append(o, xptest.Without("metadata", "ownerReferences"))
	}

	return o
}

// settingsOfMR are those that a user can have set on an MR.
func (m *model) settingsOfMR() []xptest.Option {
	var o []xptest.Option
	for _, option := range []xptest.Option{
		xptest.PublishesTo("infra", "s"), xptest.Annotated("theirs", "kept"), xptest.Annotated(xp.AnnotationPaused, []string{"true", "false"}[m.random.IntN(2)]),
	} {
		if m.chance(3) {
			o = append(o, option)
		}
	}

	return o
}

// restoreManaged restores an MR, which is held if it publishes.
func (m *model) restoreManaged(own *unstructured.Unstructured) {
	m.managed[xp.RefTo(own).ID()] = own
	m.put(m.restored(own))
}

func (m *model) hold(own *unstructured.Unstructured) {
	u, id := own.DeepCopy(), xp.RefTo(own).ID()
	of := Hold{Restore: restoreName, Since: restoredAt, Quarantine: m.quarantine, ByHand: m.byHand}
	if xp.IsComposite(u) && !m.addressed[id] {
		m.addressed[id] = m.chance(4)
	}
	if m.addressed[id] {
		of.Status = []string{"address"}
	}
	if !m.chance(4) {
		xp.SetSavedConditions(u, m.was[id])
	} else {
		m.forget(id)
	}
	if _, err := Put(u, of); err != nil {
		m.failf("cannot hold %s: %v", xp.String(u), err)
	}
	xp.StripBackupMetadata(u)
	if m.addressed[id] {
		xptest.Field("a", "status", "address")(u)
	}
	u.SetGeneration(1)
	m.put(u)
	m.missed[xp.RefTo(u).ID()] = m.chance(10)
}

// run polls and lets Crossplane react until nothing moves any more.
func (m *model) run() {
	// The chance that something still moves after this many rounds without a change is one in a
	// million.
	const rounds = 12
	for still := 0; still < rounds && m.fault == ""; {
		stepped, reacted := m.step(), m.react()
		still++
		if stepped || reacted || still > rounds/2 && m.requestReconciles() {
			still = 0
		}
		if len(m.pending) > 0 && still > 0 {
			m.pending[0]()
			m.pending, still = m.pending[1:], 0
		}
	}
}

// step makes one change for each held XR, as live.Adopter does.
func (m *model) step() bool {
	w := m.snapshot()
	subjects := append(w.Subjects(), m.root)
	// The Plan of an MR's XR releases it, or its own.
	m.random.Shuffle(len(subjects), func(i, j int) { subjects[i], subjects[j] = subjects[j], subjects[i] })
	stepped := false
	for _, r := range subjects {
		plan := Next(w, r)
		if !plan.Failed.IsZero() {
			m.failf("%s failed: %s", r, plan.Failed)
		}
		for _, change := range append(plan.Also, plan.Change) {
			if change.Patch == nil || change.Target.GetResourceVersion() != m.objects[xp.RefTo(change.Target).ID()].GetResourceVersion() {
				continue // There is no change, or the API server refuses it.
			}
			stepped = true
			after := xptest.Merge(change.Target, change.Patch)
			m.checkStep(change, after)
			m.change(after)
		}
	}

	return stepped
}

func (m *model) snapshot() *Snapshot {
	w := snapshot()
	m.polls++
	w.SetTime(noon.Add(time.Duration(m.polls) * settleTime / 2))
	if m.chance(2) {
		w.Pack() // The result must be the same.
	}
	for _, u := range m.objects {
		w.AddRestored(u)
	}

	return w
}

// requestReconciles requests a reconcile of pending objects, as live.Adopter does, and reports
// whether there were any. It can be interrupted before it clears a request.
func (m *model) requestReconciles() bool {
	w := m.snapshot()
	heard := false
	for _, r := range append(w.Subjects(), m.root) {
		for _, s := range Next(w, r).Pending {
			id := s.ID()
			if !m.missed[id] {
				continue
			}
			m.missed[id], heard = false, true
			m.change(xptest.Merge(m.objects[id], RequestReconcile(m.objects[id], noon)))
			if patch, left := ClearReconcileRequest(m.objects[id]); left && !m.chance(4) {
				m.change(xptest.Merge(m.objects[id], patch))
			}
		}
	}

	return heard
}

// change stores an object. Crossplane may lose the event.
func (m *model) change(u *unstructured.Unstructured) {
	id := xp.RefTo(u).ID()
	before := m.objects[id]
	u.SetResourceVersion(strconv.FormatUint(m.random.Uint64(), 10))
	if !reflect.DeepEqual(before.Object["spec"], u.Object["spec"]) {
		u.SetGeneration(before.GetGeneration() + 1)
	}
	m.put(u)
	if xp.IsManaged(u) && !xp.IsComposite(u) {
		return
	}
	if xp.IsPaused(before) && !xp.IsPaused(u) || u.GetGeneration() != before.GetGeneration() {
		m.missed[id] = m.chance(4)
	}
}
