package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A killedComponent is the component that is killed.
type killedComponent string

// pluginProcess is the plugin's process alone. Each other killedComponent is a component of the cluster.
const pluginProcess killedComponent = "plugin"

func killedComponents() []killedComponent {
	return []killedComponent{pluginProcess, stack.Velero, stack.Crossplane, stack.CloudProvider, stack.APIServer, stack.Etcd}
}

// A killPoint is a moment between the admission and the storage of a change to a restored object.
type killPoint struct {
	name, reason string
	// is reports whether this is the point, from the earlier changes and the current one.
	is func(w *killWatch, a stack.Admission) bool
	// busy is true if the plugin's process is killed in the middle of a call, not between two.
	busy bool
	// polled is true if nothing can be adopted before Velero has stored that it waits for the
	// operations. A Velero that is killed earlier fails the restore.
	polled bool
	// unsent is true if Velero's change is not stored when Velero is killed: the change waits until
	// the API server gives it up.
	unsent bool
}

func killPoints() []killPoint {
	return []killPoint{
		{
			name: "just created", is: isJustCreated, unsent: true,
			reason: "Velero has created an object that is held, and still manages all of it: it has not written the backup's managedFields back.",
		},
		{name: "10 % restored", reason: "Some trees exist and others do not.", is: restored(10)},
		{name: "50 % restored", reason: "Half of the trees exist.", is: restored(50), busy: true},
		{name: "90 % restored", reason: "A few objects are missing.", is: restored(90), busy: true},
		{name: "before the first poll", reason: "All objects exist and are held.", is: isRestored},
		{name: "unpaused", reason: "Crossplane reconciles an XR that is not verified yet.", is: isUnverified},
		{name: "verified", reason: "The hold is about to be taken off for the first time.", is: isVerified},
		{name: "half released", reason: "Some XRs are released and others are held.", is: isHalfReleased},
		{name: "unpaused in a later poll", reason: "Velero continues to poll the operations that it has stored.", is: isUnverified, polled: true},
	}
}

// isJustCreated reports whether Velero writes the first managedFields back, on v1 of a claim.
func isJustCreated(_ *killWatch, a stack.Admission) bool {
	return a.New.GetNamespace() != "" && !isManaged(a.New) && a.Old != nil && managedBy(a.Old, velero) && !managedBy(a.New, velero)
}

// velero is the name under which Velero manages fields.
const velero = "velero-server"

func managedBy(u *unstructured.Unstructured, manager string) bool {
	return slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
}

// restored returns a function that reports whether the given percentage of the objects exists.
func restored(percent int) func(w *killWatch, a stack.Admission) bool {
	return func(w *killWatch, a stack.Admission) bool {
		return a.Old == nil && len(w.created) == (w.total*percent+99)/100
	}
}

// isRestored reports whether all objects exist and the last one gets its first write: by Velero,
// which puts its managedFields back before it polls, or by an earlier writer.
func isRestored(w *killWatch, a stack.Admission) bool {
	return len(w.created) == w.total && (w.last == keyOf(a.New) || isUnpaused(a, w.composite) || isHoldTakenOff(a))
}

// isUnverified reports whether Crossplane has reconciled an XR, and the plugin has released none.
func isUnverified(w *killWatch, a stack.Admission) bool {
	return isReconciled(a, w.composite) && w.unpaused[keyOf(a.New)] && w.verified == 0
}

// isVerified reports whether the first unpaused XR, or claim on v1, gets its own settings back. One
// that a user paused is not verified.
func isVerified(_ *killWatch, a stack.Admission) bool {
	return isHoldTakenOff(a) && !isManaged(a.New) && !paused(a.New)
}

func isHalfReleased(w *killWatch, a stack.Admission) bool {
	return isReleased(a, w.composite) && len(w.released) == w.size/2
}

// A killWatch observes each change to restored objects, and kills at the point.
type killWatch struct {
	point     killPoint
	composite string
	// size is the number of instances. total is the number of objects to be created.
	size, total int
	// prefix is the common prefix of the names of the tenant's objects.
	prefix string
	// kill kills, or begins to and returns a function that finishes after the change has passed.
	kill func() (rest func() error, err error)
	// unsent makes the change wait after the kill, as if its client were gone.
	unsent bool

	// killed is closed when the victim is dead. Then err and seen are set.
	killed chan struct{}
	err    error
	seen   string

	mu                sync.Mutex
	fired             bool
	created           map[string]bool
	last              string
	unpaused          map[string]bool
	released          map[string]bool
	verified, managed int
}

func keyOf(u *unstructured.Unstructured) string {
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}

// newKillWatch returns a watch of a tenant's restore.
func newKillWatch(n *tenant, p killPoint, kill func() (func() error, error)) *killWatch {
	return &killWatch{
		point: p, composite: n.CompositeKind(), prefix: n.Namespace + "-", size: n.size, total: len(n.wishes) + len(n.before.Slots), kill: kill,
		killed: make(chan struct{}), created: map[string]bool{}, unpaused: map[string]bool{}, released: map[string]bool{},
	}
}

// visit lets a change pass. At the point, it kills first.
func (w *killWatch) visit(ctx context.Context, a stack.Admission) {
	if !strings.HasPrefix(a.New.GetName(), w.prefix) {
		return
	}
	w.mu.Lock()
	fire := !w.fired && w.point.is(w, a)
	if fire {
		w.fired = true
		w.seen = fmt.Sprintf("%d of %d objects were restored, %d MRs released, %d XRs unpaused, %d released of %d",
			len(w.created), w.total, w.managed, len(w.unpaused), len(w.released), w.size)
	}
	w.note(a)
	w.mu.Unlock()
	if !fire {
		return
	}
	rest, err := w.kill()
	if rest == nil {
		rest = func() error { return nil }
	}
	go func() {
		w.err = errors.Join(err, rest())
		close(w.killed)
	}()
	if w.unsent {
		<-ctx.Done()
	}
}

func (w *killWatch) hasFired() bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.fired
}

// note remembers a change that is about to be stored.
func (w *killWatch) note(a stack.Admission) {
	key := keyOf(a.New)
	switch {
	case a.Old == nil && a.New.GetLabels()["velero.io/restore-name"] != "":
		w.created[key], w.last = true, key
	case isUnpaused(a, w.composite):
		w.unpaused[key] = true
	case isLetGo(a, w.composite):
		w.managed++
	case isHoldTakenOff(a):
		if !paused(a.New) {
			w.verified++
		}
		if isReleased(a, w.composite) {
			w.released[key] = true
		}
	}
}
