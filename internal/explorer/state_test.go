package explorer

// A node is a position in a tree. An instance is one object at a node: the one from the backup, or
// a recreated one.
type (
	node     = int
	instance = int
)

const (
	maxNodes = 5
	// maxXRs is the number of instances that can be XRs: those of nodes 0 and 1.
	maxXRs = 4
	// theClaim is the instance of the claim.
	theClaim = 2 * maxNodes
)

func original(n node) instance { return 2 * n }

func recreated(n node) instance { return 2*n + 1 }

func nodeOf(i instance) node { return i / 2 }

func isOriginal(i instance) bool { return i%2 == 0 }

// A set is a set of nodes or instances.
type set uint16

func (s set) has(i int) bool { return s&(1<<i) != 0 }

func with(i int) set { return 1 << i }

// An owner is an instance with its life; 0 is none. The first life is the one of the backup, which
// has ended.
type owner uint16

const oldLife = 0

func ownedBy(i instance, life uint8) owner { return owner((i+1)<<8) | owner(life) }

func (o owner) instance() instance { return int(o>>8) - 1 }

func (o owner) life() uint8 { return uint8(o) }

type syncedCondition uint8

// The condition Synced of an object.
const (
	syncedUnset syncedCondition = iota
	syncedPaused
	syncedTrue
)

type policy uint8

const (
	unset policy = iota
	automatic
	manual
)

// An object is the part of an object that matters. If it is not live, only life is set, so that the
// next one has another life.
type object struct {
	live bool
	// restored is true if Velero created it. life stands for its UID.
	restored bool
	life     uint8
	// controller is the controller of its owner references.
	controller owner
	// mark is the number of the mark; 0 is none.
	mark   uint16
	paused bool
	policy policy
	// revision is the revision of its Composition that an XR uses: 1 from the backup, 2 the changed
	// one.
	revision uint8
	refs     set
	synced   syncedCondition
	// current is true if synced is about the present generation. ready is the condition Ready.
	// status is true if it has what functions have written.
	current, ready, status bool
	deleting, finalizer    bool
	// external is the external-name of an MR; 0 is none.
	external uint8
}

// A reconcile is a reconcile in progress of an XR; phase 0 is none.
type reconcile struct {
	phase uint8
	// observed are the instances that it has found, desired the nodes that the functions want.
	observed, desired set
	ready             bool
}

// A restore is the progress of Velero's restores.
type restore struct {
	// at is the number of the item, from 1 on; 0 is none. phase is the phase of the item, result
	// the number of the plugin's result for it.
	at, phase uint8
	result    uint16
	// refused are the nodes that the plugin has left out.
	refused set
	// clean is true if it was not killed and the API server refused nothing. polled is true if
	// Velero polls the operations of some restore. whole is true if some restore has restored all
	// its items.
	clean, polled, whole bool
}

// A state is the state of a whole world.
type state struct {
	objects  [2*maxNodes + 1]object
	inflight [maxXRs]reconcile
	// plan is the number of the plan that the plugin is about to write, pending the parts that it
	// has not written and still can.
	plan    uint32
	pending set
	velero  restore
	// revised is 1 + the node that a user has removed from its Composition; 0 is none. revisions
	// are the nodes of XRs whose revision from the backup is live, taken those whose Composition
	// controls it.
	revised          uint8
	revisions, taken set
	// cloud are the external resources: those of the backup by their node, others by 5 + the
	// instance that created it.
	cloud set
	// seenMarks are the numbers of the plugin's marks that the tenant has seen. done are the steps
	// on the tenant's objects that the plugin's process has taken.
	seenMarks, done set
	// holdRemoved is true if another writer has removed a hold. reported is true if an item has
	// failed because of that.
	holdRemoved, reported bool
	// applied is true if another writer has created an object before the restore. ownerReported is
	// true if the plugin reports an item without its owner.
	applied, ownerReported bool
}

// An actor takes steps.
type actor string

const (
	velero     actor = "velero"
	plugin     actor = "plugin"
	crossplane actor = "crossplane"
	kubernetes actor = "kubernetes"
	provider   actor = "provider"
	user       actor = "person"
	tenant     actor = "tenant"
	applier    actor = "applier"
)

// A label describes a step.
type label struct {
	actor actor
	verb  string
	// object is an instance, or -1.
	object int8
}

// A damage is a violation of a promise.
type damage uint16

const (
	created damage = 1 << iota
	deleted
	early
	stale
	unproven
	orphaned
	unsettled
	trustedForgery
	changedOthers
	influenced
	endless
	falseAlarm
	wrongOwner
)

var damages = map[damage]string{
	created:        "an external resource is created for one that there is (P1)",
	deleted:        "an external resource is deleted (P1)",
	early:          "a change of a Composition acts on what is not adopted (P4)",
	stale:          "an owner reference has a UID that is not alive (P3)",
	unproven:       "an XR is released that does not control what it composed (P2)",
	orphaned:       "an external resource is there and no XR has it (P2)",
	unsettled:      "nothing moves any more, and it is not as it was (P5, P6)",
	trustedForgery: "an object is changed because of a mark that a tenant has forged",
	changedOthers:  "a plan for a tenant's tree changes what is not the tenant's",
	influenced:     "the plan for another user's tree depends on the objects of a tenant",
	falseAlarm:     "the plugin reports a loss for an XR whose hold no other writer has removed",
	wrongOwner:     "a restored object is owned by a live XR that does not list it",
	endless:        "one process of the plugin and a tenant undo each other's steps without end",
}

// A step is a possible step and its result.
type step struct {
	label
	next   state
	damage damage
}
