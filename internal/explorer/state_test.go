package explorer

// A node is the place of an object in a tree, by its number; an instance is one object that fills
// it: the one from the backup, or one that was made anew.
type (
	node     = int
	instance = int
)

const (
	maxNodes = 5
	// maxXRs is how many instances can be XRs: those of the nodes 0 and 1.
	maxXRs = 4
	// theClaim is the instance that is the claim.
	theClaim = 2 * maxNodes
)

func original(n node) instance { return 2 * n }

func anew(n node) instance { return 2*n + 1 }

func nodeOf(i instance) node { return i / 2 }

func isOriginal(i instance) bool { return i%2 == 0 }

// A set of nodes or instances.
type set uint16

func (s set) has(i int) bool { return s&(1<<i) != 0 }

func with(i int) set { return 1 << i }

// An owner is an instance and which life of it; 0 is nobody. The first life is the one in the
// backup, and is over.
type owner uint16

const oldLife = 0

func ownedBy(i instance, life uint8) owner { return owner((i+1)<<8) | owner(life) }

func (o owner) instance() instance { return int(o>>8) - 1 }

func (o owner) life() uint8 { return uint8(o) }

type word uint8

// What a controller has said of an object, in its condition Synced.
const (
	silent word = iota
	saysPaused
	saysSynced
)

type policy uint8

const (
	unset policy = iota
	automatic
	manual
)

// An object is what matters of one. One that is not live has nothing but its life, so that the next
// one has another.
type object struct {
	live bool
	// restored says that Velero created it, and life is what its UID stands for.
	restored bool
	life     uint8
	// controller is what its ownerReference says.
	controller owner
	// mark is the plugin's annotation, by its number; 0 is none.
	mark   uint16
	paused bool
	policy policy
	// revision is that of its Composition which an XR runs on: 1 is that of the backup, 2 the
	// changed one.
	revision uint8
	refs     set
	said     word
	// current says that this was said of the object as it is, ready that its condition Ready is
	// True, and status that it has what functions have written.
	current, ready, status bool
	deleting, finalizer    bool
	// external is what the external-name of an MR names: 0 is nothing.
	external uint8
}

// A reconcile is one of an XR that Crossplane is in the middle of; phase 0 is none.
type reconcile struct {
	phase uint8
	// observed are the instances that it has found, and desired the nodes that its functions want.
	observed, desired set
	ready             bool
}

// A restore is what Velero is in the middle of.
type restore struct {
	// at is the item, from 1 on; 0 is none. Phase says what is done with it, and made is what the
	// plugin has made of it, by its number.
	at, phase uint8
	made      uint16
	// refused are the nodes that the plugin has left out.
	refused set
	// clean says that it was not killed and nothing was refused by the API server, polled that the
	// plugin's operations of some restore are polled, and whole that all items of one were
	// restored.
	clean, polled, whole bool
}

// A state is everything that there is.
type state struct {
	objects  [2*maxNodes + 1]object
	inflight [maxXRs]reconcile
	// plan is what the plugin is about to write, by its number, and left which parts of it were not
	// yet and can be.
	plan   uint32
	left   set
	velero restore
	// revised is 1 + the node that a person has taken out of its Composition; 0 is none. revisions
	// are the XRs' nodes of which the backup's revision is there, taken those of which its
	// Composition controls that.
	revised          uint8
	revisions, taken set
	// cloud are the external resources: those of the backup by their node, others by 5 + the
	// instance that made it.
	cloud set
	// kept are the marks of the plugin that the tenant has seen, by their number, and done the
	// steps on what is the tenant's that the plugin's process has taken.
	kept, done set
	// struck says that somebody has taken a hold off, and named that an item has failed because of
	// that.
	struck, named bool
	// applied says that somebody was first with what a restore was to bring back, and told that
	// something is said to have come back without its owner.
	applied, told bool
}

// An actor is who takes a step.
type actor string

const (
	velero     actor = "velero"
	plugin     actor = "plugin"
	crossplane actor = "crossplane"
	kubernetes actor = "kubernetes"
	provider   actor = "provider"
	person     actor = "person"
	tenant     actor = "tenant"
	applier    actor = "applier"
)

// A label says what a step is.
type label struct {
	actor actor
	verb  string
	// object is an instance, or -1.
	object int8
}

// A damage is what must never be.
type damage uint16

const (
	created damage = 1 << iota
	deleted
	early
	stale
	unproven
	orphaned
	unsettled
	believed
	seized
	swayed
	endless
	alarmed
	misowned
)

var damages = map[damage]string{
	created:   "an external resource is created for one that there is (P1)",
	deleted:   "an external resource is deleted (P1)",
	early:     "a change of a Composition acts on what is not adopted (P4)",
	stale:     "an owner reference has a UID that is not alive (P3)",
	unproven:  "an XR is released that does not control what it composed (P2)",
	orphaned:  "an external resource is there and no XR has it (P2)",
	unsettled: "nothing moves any more, and it is not as it was (P5, P6)",
	believed:  "something is changed on the word of a mark that a tenant has forged",
	seized:    "a plan for a tenant's tree changes what is not the tenant's",
	swayed:    "the plan for somebody else's tree is another because of what a tenant has written",
	alarmed:   "an XR is said to have lost something, of which nobody has taken the hold off",
	misowned:  "what is restored is owned by a live XR that does not list it",
	endless:   "one process of the plugin and a tenant undo each other's steps without end",
}

// A step is one that can be taken, and what comes of it.
type step struct {
	label
	next   state
	damage damage
}
