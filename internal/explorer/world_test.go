package explorer

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
)

type rules uint8

// The versions of Crossplane of which the rules differ.
const (
	v120 rules = iota
	v23
	// after7627 is v2.3 with crossplane PR #7627, of which the tag v2.4.0 is the first.
	after7627
)

func (r rules) String() string { return [...]string{"v1.20", "v2.3", "after-7627"}[r] }

// A gate has a function compose a node only under a condition.
type gate uint8

const (
	_ gate = iota
	// gatedByReady waits until the first node that the XR composes is Ready, as function-sequencer
	// does.
	gatedByReady
	// gatedByStatus looks for what functions have written on the XR's status before.
	gatedByStatus
)

// A mutation is what is taken out of the plugin, so that there is damage to be found.
type mutation struct {
	name string
	// noHold has everything come back without its hold, noOwners without owners, and oldUIDs with
	// the owners of the backup.
	noHold, noOwners, oldUIDs bool
	// reversed has Velero restore items in the opposite order.
	reversed bool
	// forced lifts holds before anything is adopted, that of a tree's root first.
	forced bool
	// noStatus has no status come back and nobody wait for it, and noWell has nobody wait for what
	// is composed to be as well as it was.
	noStatus, noWell bool
	// unverified has any mark count, and gullible anything be an XR's own that nothing controls.
	unverified, gullible bool
	// copied has Crossplane copy a claim's mark to its XR, and noOnce has a process take a step as
	// often as somebody undoes it.
	copied, noOnce bool
	// noTakeOver leaves what somebody has made before a restore as it is.
	noTakeOver bool
}

// A world is what is explored: a tree, as it was backed up, and the rules.
type world struct {
	mutation

	name  string
	rules rules
	// parent of each node; -1 is none. The nodes 0 and 1 can be XRs, and the others are MRs.
	parent []node
	xrs    int
	// claimed says that the root is that of a claim.
	claimed bool
	// gates are those of the last node that each XR composes.
	gates [2]gate
	// publishes are the nodes that publish connection details, and removable those that a person
	// can take out of a Composition.
	publishes, removable set
	// manual are the XRs that a person has pinned, and paused those that a person has paused.
	manual, paused set
	// idle has Crossplane reconcile also what it finds as it should be.
	idle bool
	// fine takes the steps of Velero apart that are moments from each other.
	fine bool
	// tenants are the nodes of the tree of a tenant who does what can be done with annotations. If
	// there is a claim it is that tenant's.
	tenants set
	// labels has the tenant also change the label that says which restore an object is from.
	labels bool
	// open has Velero restore what Crossplane is deleting at that moment.
	open bool
	// judged has what is not held be judged, also what the plugin has released itself, and applied
	// has somebody take holds off.
	judged, applied bool
	// often has somebody take holds off any number of times, and not once.
	often bool
	// git has somebody apply the manifest of an XR, or of a claim, that is not there.
	git bool

	backup  [theClaim + 1]*unstructured.Unstructured
	order   []instance // What Velero restores, in its order; -1 - node is the revision of an XR's Composition.
	marks   []string
	markIDs map[string]uint16
	made    []made
	madeIDs map[made]uint16
	plans   []plan
	planIDs map[view]uint32
	// harms is the damage in plans, also in those that change nothing, and stepIDs numbers the
	// steps on what is the tenant's.
	harms map[view]damage
	// losses are the views in which the plugin names a loss.
	losses  map[view]bool
	stepIDs map[string]int
	// forgery is the mark that the tenant has made, by its number.
	forgery uint16
	key     adoption.Key
	encoded map[identified]*unstructured.Unstructured
	seen    map[sight]made
}

func (w *world) String() string { return w.name + " " + w.rules.String() }

func (w *world) isXR(i instance) bool { return i >= 0 && i < theClaim && nodeOf(i) < w.xrs }

func (w *world) children(n node) []node {
	var c []node
	for child, parent := range w.parent {
		if parent == n {
			c = append(c, child)
		}
	}

	return c
}

// has reports whether the node is in the tree below another, or is it.
func (w *world) isBelow(n, top node) bool {
	for ; n >= 0; n = w.parent[n] {
		if n == top {
			return true
		}
	}

	return false
}

// root returns the node at the top of the tree that a node is in.
func (w *world) root(n node) node {
	for w.parent[n] >= 0 {
		n = w.parent[n]
	}

	return n
}

// isRemoved reports whether a node is not to be any more, because a person has taken it, or
// something above it, out of a Composition that its XR follows.
func (w *world) isRemoved(s *state, n node) bool {
	if s.revised == 0 {
		return false
	}
	top := int(s.revised) - 1

	return w.isBelow(n, top) && !w.manual.has(w.parent[top]) && !w.paused.has(w.parent[top])
}

func (w *world) call(i int) string {
	switch {
	case i == theClaim:
		return "claim"
	case i < 0:
		return ""
	}
	name := string("xyz"[max(0, nodeOf(i)-w.xrs)])
	if w.isXR(i) {
		name = string("ab"[nodeOf(i)])
	}
	if !isOriginal(i) {
		name += "-new"
	}

	return name
}

func (l label) text(w *world) string {
	return fmt.Sprintf("%-10s %s %s", l.actor, l.verb, w.call(int(l.object)))
}

// init prepares what is remembered of a world.
func (w *world) init() error {
	w.marks, w.markIDs = []string{""}, map[string]uint16{"": 0}
	w.made, w.madeIDs = []made{{}}, map[made]uint16{{}: 0}
	w.plans, w.planIDs, w.harms, w.stepIDs = []plan{{}}, map[view]uint32{}, map[view]damage{}, map[string]int{}
	w.losses = map[view]bool{}
	w.encoded, w.seen = map[identified]*unstructured.Unstructured{}, map[sight]made{}
	if w.tenants != 0 {
		w.forgery = w.mark(w.forge())
		if !w.unverified {
			w.key = adoption.Key(strings.Repeat("k", adoption.KeySize))
		}
	}
	w.backUp()

	return w.arrange()
}

// start is the world before the first restore: the control plane is there, and the external
// resources are.
func (w *world) start() state {
	var s state
	for n := range w.parent {
		if n >= w.xrs {
			s.cloud |= with(n)
		}
	}

	return s
}

func (w *world) mark(text string) uint16 {
	id, ok := w.markIDs[text]
	if !ok {
		id = uint16(len(w.marks))
		w.marks, w.markIDs[text] = append(w.marks, text), id
	}

	return id
}
