package adopter

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An eventQueue has the last watch event of each object of a listing, of which there may be
// thousands.
type eventQueue struct {
	cancel context.CancelFunc

	mu     sync.Mutex
	events map[eventKey]watchEvent
	// existing are the objects that each listing had when it was listed again.
	existing map[*listing]map[xp.ID]bool
	// incomplete is set if events may be missing.
	incomplete bool
	// packer compresses the events: a poll that writes notices does not read the queue. It is nil
	// before the first event.
	packer *pack.Packer
	// ready has an element if the queue is not empty.
	ready chan struct{}
}

// A watchEvent is a change of an object, with what planning reads of the object.
type watchEvent struct {
	event  watch.EventType
	packed pack.Object
	// versions are the resourceVersions of all events of the object in the queue.
	versions []string
}

type eventKey struct {
	in *listing
	id xp.ID
}

func newEventQueue() *eventQueue {
	return &eventQueue{events: map[eventKey]watchEvent{}, existing: map[*listing]map[xp.ID]bool{}, ready: make(chan struct{}, 1)}
}

// add puts a change of an object of a listing into the queue.
func (q *eventQueue) add(event watch.EventType, u *unstructured.Unstructured, in *listing) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.packer == nil {
		q.packer = pack.New()
	}
	at, packed := eventKey{in: in, id: xp.RefTo(u).ID()}, q.packer.Pack(u.Object)
	before, queued := q.events[at]
	if queued {
		packed = packed.Clone()
	}
	q.events[at] = watchEvent{event: event, packed: packed, versions: append(before.versions, u.GetResourceVersion())}
	q.notify()
}

// relisted records which objects a listing still has, and drops events of all others.
func (q *eventQueue) relisted(l *listing, there map[xp.ID]bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.existing[l] = there
	maps.DeleteFunc(q.events, func(at eventKey, _ watchEvent) bool { return at.in == l && !there[at.id] })
	q.notify()
}

// markIncomplete records that events may be missing.
func (q *eventQueue) markIncomplete() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.incomplete = true
	q.notify()
}

func (q *eventQueue) notify() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// drain empties the queue. It returns the events, and the objects of the listings that were listed
// again before them. ok is false if events may be missing.
func (q *eventQueue) drain() (events map[eventKey]watchEvent, there map[*listing]map[xp.ID]bool, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	events, q.events = q.events, map[eventKey]watchEvent{}
	there, q.existing = q.existing, map[*listing]map[xp.ID]bool{}

	return events, there, !q.incomplete
}

// object returns the object of an event. It takes the lock, since add writes to the packer.
func (q *eventQueue) object(h watchEvent) *unstructured.Unstructured {
	q.mu.Lock()
	defer q.mu.Unlock()

	return &unstructured.Unstructured{Object: h.packed.Unpack(nil)}
}

// wait waits for an event, but at least for least, so that several come together, and at most for
// most.
func (q *eventQueue) wait(ctx context.Context, least, most time.Duration) error {
	if err := sleep(ctx, least); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-q.ready:
	case <-time.After(most - least):
	}

	return nil
}
