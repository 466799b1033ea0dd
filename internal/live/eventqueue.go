package live

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An eventQueue is what has become of what was listed, as the API server tells it. It has the last
// of each object, since a thousand can be changed again and again before anybody looks.
type eventQueue struct {
	cancel context.CancelFunc

	mu     sync.Mutex
	events []watchEvent
	// places say where in the news something is.
	places map[place]int
	// there is all that there was of what was listed again when it was.
	there map[*listing]map[xp.ID]bool
	// lost says that there may be more of it than what was told.
	lost bool
	// packer packs the news, since nobody takes them while a poll says on thousands of objects
	// where they are; nil if there were none.
	packer *pack.Packer
	// woken has something in it if there are news.
	woken chan struct{}
}

// A watchEvent is what has become of an object, of which it has what planning reads.
type watchEvent struct {
	event  watch.EventType
	id     xp.ID
	packed pack.Object
	in     *listing
	// versions are all that the object has had.
	versions []string
}

// version is that of the object as it is.
func (h watchEvent) version() string { return h.versions[len(h.versions)-1] }

type place struct {
	in *listing
	id xp.ID
}

func newEventQueue() *eventQueue {
	return &eventQueue{places: map[place]int{}, there: map[*listing]map[xp.ID]bool{}, woken: make(chan struct{}, 1)}
}

// add says what has become of an object that was listed.
func (q *eventQueue) add(event watch.EventType, u *unstructured.Unstructured, in *listing) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.packer == nil {
		q.packer = pack.New()
	}
	h := watchEvent{event: event, id: xp.RefTo(u).ID(), packed: q.packer.Pack(u.Object), in: in, versions: []string{u.GetResourceVersion()}}
	at := place{in: in, id: h.id}
	if n, ok := q.places[at]; ok {
		h.versions, h.packed = append(q.events[n].versions, h.versions...), h.packed.Clone()
		q.events[n] = h
	} else {
		q.places[at] = len(q.events)
		q.events = append(q.events, h)
	}
	q.notify()
}

// relisted says what is there, after the news that were told of it.
func (q *eventQueue) relisted(l *listing, there map[xp.ID]bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.there[l] = there
	q.events = slices.DeleteFunc(q.events, func(h watchEvent) bool { return h.in == l && !there[h.id] })
	clear(q.places)
	for n, h := range q.events {
		q.places[place{in: h.in, id: h.id}] = n
	}
	q.notify()
}

// markIncomplete says that there may be more than what is told.
func (q *eventQueue) markIncomplete() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lost = true
	q.notify()
}

func (q *eventQueue) notify() {
	select {
	case q.woken <- struct{}{}:
	default:
	}
}

// take returns the news since it was last called, and what there was before them of what was listed
// again; ok is false if they are not all.
func (q *eventQueue) take() (notices []watchEvent, there map[*listing]map[xp.ID]bool, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	notices, q.events = q.events, nil
	clear(q.places)
	there, q.there = q.there, map[*listing]map[xp.ID]bool{}

	return notices, there, !q.lost
}

// object returns the object of a happening. Others add to what it is packed with.
func (q *eventQueue) object(h watchEvent) *unstructured.Unstructured {
	q.mu.Lock()
	defer q.mu.Unlock()

	return &unstructured.Unstructured{Object: h.packed.Unpack(nil)}
}

// wait waits for news: not for less than given, so that there are some at a time, and not for more.
func (q *eventQueue) wait(ctx context.Context, least, most time.Duration) error {
	if err := sleep(ctx, least); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-q.woken:
	case <-time.After(most - least):
	}

	return nil
}
