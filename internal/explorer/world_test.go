package explorer

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

type rules uint8

// The versions of Crossplane whose rules differ.
const (
	v120 rules = iota
	v23
	// after7627 is v2.3 with crossplane PR #7627, whose first tag is v2.4.0.
	after7627
)

func (r rules) String() string { return [...]string{"v1.20", "v2.3", "after-7627"}[r] }

// A gate makes a function compose a node only under a condition.
type gate uint8

const (
	_ gate = iota
	// gatedByReady waits until the first node that the XR composes is Ready, as function-sequencer
	// does.
	gatedByReady
	// gatedByStatus needs what functions have written on the XR's status before.
	gatedByStatus
)

// A mutation is what is removed from the plugin, to cause damage.
type mutation struct {
	name string
	// noHold restores without holds, noOwners without owners, oldUIDs with the owners of the
	// backup.
	noHold, noOwners, oldUIDs bool
	// reversed makes Velero restore items in the opposite order.
	reversed bool
	// forced lifts holds before adoption, the root's first.
	forced bool
	// noStatus restores no status and does not wait for it. noConditions does not wait for the
	// conditions of composed resources.
	noStatus, noConditions bool
	// unverified accepts any mark. acceptAny accepts any resource without a controller as an XR's
	// own.
	unverified, acceptAny bool
	// copied makes Crossplane copy a claim's mark to its XR. noOnce makes a process repeat a step
	// as often as another writer undoes it.
	copied, noOnce bool
	// noTakeOver does not take over what another writer has created.
	noTakeOver bool
}

// A world is what is explored: a tree, as it was backed up, and the rules.
type world struct {
	mutation

	name  string
	rules rules
	// parent has the parent of each node, -1 for none. Nodes 0 and 1 can be XRs, the others are
	// MRs.
	parent []node
	xrs    int
	// claimed is true if the root has a claim.
	claimed bool
	// gates are the gates of the last node that each XR composes.
	gates [2]gate
	// publishes are the nodes that publish connection details, removable those that a user can
	// remove from a Composition.
	publishes, removable set
	// manual are the XRs that a user has pinned, paused those that a user has paused.
	manual, paused set
	// selecting are the XRs that follow a channel of revisions, which has none but that of the backup.
	selecting set
	// idle includes reconciles that change nothing.
	idle bool
	// fine separates the steps of Velero that are moments apart.
	fine bool
	// tenants are the nodes of the tree of a tenant who attacks with annotations. A claim is this
	// tenant's.
	tenants set
	// labels lets the tenant change the label of the restore.
	labels bool
	// open lets Velero restore what Crossplane is deleting at that moment.
	open bool
	// judged judges what is not held, even if the plugin has released it. applied lets another
	// writer remove holds.
	judged, applied bool
	// often lets it do so any number of times.
	often bool
	// git lets another writer apply the manifest of a missing XR or claim.
	git bool

	backup    [theClaim + 1]*unstructured.Unstructured
	order     []instance // The items in the order in which Velero restores them. -1 - node is the revision of an XR's Composition.
	marks     []string
	markIDs   map[string]uint16
	results   []actionResult
	resultIDs map[actionResult]uint16
	plans     []plan
	planIDs   map[view]uint32
	// planDamage is the damage in plans, including those that change nothing. stepIDs numbers the
	// steps on the tenant's objects.
	planDamage map[view]damage
	// losses are the views in which the plugin reports a loss.
	losses  map[view]bool
	stepIDs map[string]int
	// forgery is the number of the tenant's mark.
	forgery uint16
	key     hold.Key
	encoded map[identified]*unstructured.Unstructured
	seen    map[actionInput]actionResult
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

// isBelow reports whether a node is top or below it.
func (w *world) isBelow(n, top node) bool {
	for ; n >= 0; n = w.parent[n] {
		if n == top {
			return true
		}
	}

	return false
}

// root returns the root of a node's tree.
func (w *world) root(n node) node {
	for w.parent[n] >= 0 {
		n = w.parent[n]
	}

	return n
}

// isRemoved reports whether a user has removed a node, or one above it, from a Composition that its
// XR follows.
func (w *world) isRemoved(s *state, n node) bool {
	if s.revised == 0 {
		return false
	}
	top := int(s.revised) - 1

	return w.isBelow(n, top) && !w.manual.has(w.parent[top]) && !w.paused.has(w.parent[top]) && !w.selecting.has(w.parent[top])
}

func (w *world) nameOf(i int) string {
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
	return fmt.Sprintf("%-10s %s %s", l.actor, l.verb, w.nameOf(int(l.object)))
}

// init prepares the caches of a world.
func (w *world) init() error {
	w.marks, w.markIDs = []string{""}, map[string]uint16{"": 0}
	w.results, w.resultIDs = []actionResult{{}}, map[actionResult]uint16{{}: 0}
	w.plans, w.planIDs, w.planDamage, w.stepIDs = []plan{{}}, map[view]uint32{}, map[view]damage{}, map[string]int{}
	w.losses = map[view]bool{}
	w.encoded, w.seen = map[identified]*unstructured.Unstructured{}, map[actionInput]actionResult{}
	if w.tenants != 0 {
		w.forgery = w.mark(w.forge())
		if !w.unverified {
			w.key = hold.Key(strings.Repeat("k", hold.KeySize))
		}
	}
	w.backUp()

	return w.orderItems()
}

// start returns the state before the first restore: the control plane and the external resources
// are live.
func (w *world) start() state {
	var s state
	for n := range w.parent {
		if n >= w.xrs {
			s.cloud |= with(n)
		}
	}

	return s
}

// mark returns the number of a mark. Without its XR an MR has the same one before and after the first poll: no time passes in a
// world, so nothing depends on when that was.
func (w *world) mark(text string) uint16 {
	if unpolled := notedPoll.ReplaceAllString(text, ""); unpolled != text && strings.Contains(text, string(reason.XRNotRestored)) {
		for n, earlier := range w.marks {
			if notedPoll.ReplaceAllString(earlier, "") == unpolled {
				return uint16(n)
			}
		}
	}

	return numbered(text, &w.marks, w.markIDs)
}

// notedPoll finds the time of the first poll in a mark, and its signature.
var notedPoll = regexp.MustCompile(`,"(polled|mac)":"[^"]*"`)

// numbered returns the number of a value, which is its place in all. It adds the value if it is new.
func numbered[V comparable](v V, all *[]V, numbers map[V]uint16) uint16 {
	n, ok := numbers[v]
	if !ok {
		n = uint16(len(*all))
		*all, numbers[v] = append(*all, v), n
	}

	return n
}
