package adoption

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const trees = 2000

// Random trees are restored and adopted against a Crossplane that does what matters of the real one, and whose every damage is seen.
func TestRandomTreesAreAdopted(t *testing.T) {
	n := uint64(trees)
	if testing.Short() {
		n /= 10
	}
	for seed := range n {
		m := newModel(seed)
		m.restore()
		m.run()
		if m.fault == "" {
			m.judge()
			m.judgeManaged()
		}
		if m.fault != "" {
			t.Errorf("seed %d: %s", seed, m.fault)
		}
	}
}

// A model is a cluster after a restore: one tree of XRs of one schema, with MRs and perhaps a claim.
type model struct {
	random  *rand.Rand
	modern  bool
	objects map[xp.ID]*unstructured.Unstructured
	// order is the one in which the objects were created, so that a seed always does the same.
	order []xp.ID
	// own is each XR and claim as its person had it.
	own map[xp.ID]*unstructured.Unstructured
	// managed is each MR that was restored as its person had it.
	managed map[xp.ID]*unstructured.Unstructured
	// root is the top of the tree, and xrs are all of it.
	root xp.Ref
	xrs  []xp.Ref
	// stuck are the XRs that can't be adopted, because something that they compose is missing or somebody else's.
	stuck map[xp.ID]bool
	// reconciled are the XRs and claims that Crossplane has reconciled.
	reconciled map[xp.ID]bool
	// behind is the number of things that come true one after the other, such as MRs being observed.
	behind []func()
	fault  string
}

func newModel(seed uint64) *model {
	m := &model{
		random: rand.New(rand.NewPCG(seed, seed)), objects: map[xp.ID]*unstructured.Unstructured{}, //nolint:gosec // It must be the same every time.
		own: map[xp.ID]*unstructured.Unstructured{}, managed: map[xp.ID]*unstructured.Unstructured{}, stuck: map[xp.ID]bool{}, reconciled: map[xp.ID]bool{},
	}
	m.modern = m.chance(2)

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

// settings are what a person can have set.
func (m *model) settings() []xptest.Option {
	var o []xptest.Option
	for _, option := range []xptest.Option{
		xptest.Annotated(xp.AnnotationPaused, []string{"true", "false"}[m.random.IntN(2)]),
		xptest.Policy([]string{"Manual", "Automatic"}[m.random.IntN(2)]),
		xptest.Annotated("theirs", "kept"),
	} {
		if m.chance(3) {
			o = append(o, option)
		}
	}

	return o
}

// restore makes the tree as it is when the restore is over: held, without status, in a new UID, controlled by what is live.
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
		root = copySettings(claim, root) // As Crossplane had done before the backup.
	}
	root = xptest.With(root, xptest.ClaimedBy(claim))
	m.own[m.root.ID()], m.own[xp.RefTo(claim).ID()] = root, claim
	m.hold(root)
	m.hold(claim)
}

// xr makes an XR with a tree below it, and returns it as its person had it.
func (m *model) xr(name string, parent *unstructured.Unstructured, depth int) *unstructured.Unstructured {
	build, composed := xptest.XR, xptest.MR
	if m.modern {
		build, composed = xptest.ModernXR, xptest.NamespacedMR
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
		mr := composed(fmt.Sprint(name, "-mr", n), append(m.settingsOfMR(), m.controlledBy(xr)...)...)
		children = append(children, mr)
		switch {
		case m.chance(60):
			m.stuck[xp.RefTo(xr).ID()] = true // It was not restored.
		case m.chance(60): //nolint:gocritic // The dice are thrown again.
			m.stuck[xp.RefTo(xr).ID()] = true
			m.bring(xptest.With(mr, xptest.Without("metadata", "ownerReferences"), xptest.ControlledBy(build("another"))))
		case m.chance(4):
			m.behind = append(m.behind, func() { m.bring(mr) }) // A second restore brings it.
		default:
			m.bring(mr)
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

// controlledBy is mostly what the restore has written, and sometimes nothing: then Crossplane takes the resource.
func (m *model) controlledBy(xr *unstructured.Unstructured) []xptest.Option {
	o := []xptest.Option{xptest.ControlledBy(xr)}
	if m.chance(6) {
		o = append(o, xptest.Without("metadata", "ownerReferences"))
	}

	return o
}

// settingsOfMR are what a person can have set on an MR.
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

// bring restores an MR, which is held if it publishes.
func (m *model) bring(own *unstructured.Unstructured) {
	m.managed[xp.RefTo(own).ID()] = own
	if xp.Publishes(own) {
		own = forSecret(own)
	}
	m.put(own)
}

func (m *model) hold(own *unstructured.Unstructured) {
	u := own.DeepCopy()
	if _, err := Put(u, Hold{Restore: restoreName, Since: restoredAt}); err != nil {
		m.failf("cannot hold %s: %v", xp.String(u), err)
	}
	m.put(u)
}

// run takes steps and lets Crossplane react until nothing moves any more.
func (m *model) run() {
	// The chance that something moves and nobody finds the time for it in this many rounds is one in a million.
	const rounds = 12
	for still := 0; still < rounds && m.fault == ""; {
		stepped, reacted := m.step(), m.react()
		still++
		if stepped || reacted {
			still = 0
		}
		if len(m.behind) > 0 && still > 0 {
			m.behind[0]()
			m.behind, still = m.behind[1:], 0
		}
	}
}

// step takes one step for each held XR, as live.Adopter does.
func (m *model) step() bool {
	w := world()
	for _, u := range m.objects {
		w.Add(u)
	}
	subjects := append(w.Subjects(), m.root)
	// An MR is let go by the plan of its XR, or by its own.
	m.random.Shuffle(len(subjects), func(i, j int) { subjects[i], subjects[j] = subjects[j], subjects[i] })
	stepped := false
	for _, r := range subjects {
		plan := Next(w, r)
		if plan.Failed != "" {
			m.failf("%s failed: %s", r, plan.Failed)
		}
		for _, change := range append(plan.Also, plan.Change) {
			if change.Patch == nil || change.Target.GetResourceVersion() != m.objects[xp.RefTo(change.Target).ID()].GetResourceVersion() {
				continue // There is nothing to do, or the API server refuses it.
			}
			stepped = true
			after := xptest.Merge(change.Target, change.Patch)
			m.checkStep(change, after)
			m.change(after)
		}
	}

	return stepped
}

func (m *model) change(u *unstructured.Unstructured) {
	u.SetResourceVersion(strconv.FormatUint(m.random.Uint64(), 10))
	m.put(u)
}

// checkStep looks at the world in which an XR is unpaused or loses its mark.
func (m *model) checkStep(change Change, after *unstructured.Unstructured) {
	if !xp.IsComposite(after) {
		return
	}
	if h, _ := HoldOf(after); h == nil {
		m.checkRelease(after)
	}
	if !xp.IsPaused(change.Target) || xp.IsPaused(after) {
		return
	}
	refs, _ := xp.CompositeFrom(after).ResourceRefs()
	for _, r := range refs {
		u := m.objects[r.ID()]
		if u == nil {
			m.failf("%s is unpaused though %s is missing", xp.String(after), r)

			return
		}
		if c, ok := xp.Controller(u); ok && c.UID != after.GetUID() {
			m.failf("%s is unpaused though %s is controlled by %s", xp.String(after), r, c.UID)
		}
		if h, _ := HoldOf(u); h != nil {
			m.failf("%s is unpaused before its child %s is adopted or let go", xp.String(after), r)
		}
	}
}

// checkRelease looks at the world in which an XR loses its mark.
func (m *model) checkRelease(xr *unstructured.Unstructured) {
	id := xp.RefTo(xr).ID()
	if !xp.IsPaused(m.own[id]) && !m.reconciled[id] {
		m.failf("%s is released before it was reconciled", xp.String(xr))
	}
	r, ok := xp.CompositeFrom(xr).ClaimRef()
	if !ok {
		return
	}
	if h, _ := HoldOf(m.objects[r.ID()]); h != nil || !xp.IsPaused(m.own[r.ID()]) && !m.reconciled[r.ID()] {
		m.failf("%s is released before its claim was released and reconciled", xp.String(xr))
	}
}

// judge looks at the end: what can be adopted is as its person had it, and what can't is still held, with all above it.
func (m *model) judge() {
	above := map[xp.ID]bool{}
	for _, r := range m.xrs { // Children come first.
		refs, _ := xp.CompositeFrom(m.own[r.ID()]).ResourceRefs()
		above[r.ID()] = m.stuck[r.ID()]
		for _, child := range refs {
			// An XR that its person had paused needs its children's presence only.
			above[r.ID()] = above[r.ID()] || above[child.ID()] && !xp.IsPaused(m.own[r.ID()])
		}
	}
	for id, own := range m.own {
		u := m.objects[id]
		h, err := HoldOf(u)
		if err != nil {
			m.failf("%v", err)
		}
		if above[id] || xp.IsClaim(own) && above[m.root.ID()] {
			if h == nil || !xp.IsPaused(u) {
				m.failf("%s can't be adopted and is not held", xp.String(u))
			}

			continue
		}
		if diff := cmp.Diff(asStored(own), asStored(xptest.With(u, xptest.Without("status")))); diff != "" {
			m.failf("%s is not as it was: -own, +now:\n%s", xp.String(u), diff)
		}
		if refs, _ := xp.CompositeFrom(u).ResourceRefs(); !xp.IsPaused(u) {
			for _, r := range refs {
				if !xp.Controls(u, m.objects[r.ID()]) {
					m.failf("%s does not control %s", xp.String(u), r)
				}
			}
		}
	}
}

// judgeManaged looks at the MRs at the end: each is let go, whether its XR is adopted or not, and as its person had it.
func (m *model) judgeManaged() {
	for id, own := range m.managed {
		var now []*unstructured.Unstructured
		for _, u := range []*unstructured.Unstructured{own, m.objects[id]} {
			now = append(now, asStored(xptest.With(u, xptest.Without("status"), xptest.Without("metadata", "ownerReferences"))))
		}
		if diff := cmp.Diff(now[0], now[1]); diff != "" {
			m.failf("%s is not as it was: -own, +now:\n%s", xp.String(own), diff)
		}
	}
}
