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

// An eventQueue is what has become of what was listed, as the API server tells it. It has the last of each object, since a thousand can be changed again and again
// before anybody looks.
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
	// packer packs the news, since nobody takes them while a poll says on thousands of objects where they are; nil if there were none.
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
func (f *eventQueue) add(event watch.EventType, u *unstructured.Unstructured, in *listing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.packer == nil {
		f.packer = pack.New()
	}
	h := watchEvent{event: event, id: xp.RefTo(u).ID(), packed: f.packer.Pack(u.Object), in: in, versions: []string{u.GetResourceVersion()}}
	at := place{in: in, id: h.id}
	if n, ok := f.places[at]; ok {
		h.versions, h.packed = append(f.events[n].versions, h.versions...), h.packed.Clone()
		f.events[n] = h
	} else {
		f.places[at] = len(f.events)
		f.events = append(f.events, h)
	}
	f.notify()
}

// relisted says what is there, after the news that were told of it.
func (f *eventQueue) relisted(l *listing, there map[xp.ID]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.there[l] = there
	f.events = slices.DeleteFunc(f.events, func(h watchEvent) bool { return h.in == l && !there[h.id] })
	clear(f.places)
	for n, h := range f.events {
		f.places[place{in: h.in, id: h.id}] = n
	}
	f.notify()
}

// markIncomplete says that there may be more than what is told.
func (f *eventQueue) markIncomplete() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = true
	f.notify()
}

func (f *eventQueue) notify() {
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

// take returns the news since it was last called, and what there was before them of what was listed again; ok is false if they are not all.
func (f *eventQueue) take() (news []watchEvent, there map[*listing]map[xp.ID]bool, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	news, f.events = f.events, nil
	clear(f.places)
	there, f.there = f.there, map[*listing]map[xp.ID]bool{}

	return news, there, !f.lost
}

// object returns the object of a happening. Others add to what it is packed with.
func (f *eventQueue) object(h watchEvent) *unstructured.Unstructured {
	f.mu.Lock()
	defer f.mu.Unlock()

	return &unstructured.Unstructured{Object: h.packed.Unpack(nil)}
}

// wait waits for news: not for less than given, so that there are some at a time, and not for more.
func (f *eventQueue) wait(ctx context.Context, least, most time.Duration) error {
	if err := sleep(ctx, least); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.woken:
	case <-time.After(most - least):
	}

	return nil
}
