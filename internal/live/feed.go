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

// A feed is what has become of what was listed, as the API server tells it. It has the last of each object, since a thousand can be changed again and again
// before anybody looks.
type feed struct {
	cancel context.CancelFunc

	mu   sync.Mutex
	news []happening
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

// A happening is what has become of an object, of which it has what planning reads.
type happening struct {
	event  watch.EventType
	id     xp.ID
	packed pack.Object
	in     *listing
	// versions are all that the object has had.
	versions []string
}

// version is that of the object as it is.
func (h happening) version() string { return h.versions[len(h.versions)-1] }

type place struct {
	in *listing
	id xp.ID
}

func newFeed() *feed {
	return &feed{places: map[place]int{}, there: map[*listing]map[xp.ID]bool{}, woken: make(chan struct{}, 1)}
}

// add says what has become of an object that was listed.
func (f *feed) add(event watch.EventType, u *unstructured.Unstructured, in *listing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.packer == nil {
		f.packer = pack.New()
	}
	h := happening{event: event, id: xp.RefTo(u).ID(), packed: f.packer.Pack(u.Object), in: in, versions: []string{u.GetResourceVersion()}}
	at := place{in: in, id: h.id}
	if n, ok := f.places[at]; ok {
		h.versions, h.packed = append(f.news[n].versions, h.versions...), h.packed.Clone()
		f.news[n] = h
	} else {
		f.places[at] = len(f.news)
		f.news = append(f.news, h)
	}
	f.wake()
}

// relisted says what is there, after the news that were told of it.
func (f *feed) relisted(l *listing, there map[xp.ID]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.there[l] = there
	f.news = slices.DeleteFunc(f.news, func(h happening) bool { return h.in == l && !there[h.id] })
	clear(f.places)
	for n, h := range f.news {
		f.places[place{in: h.in, id: h.id}] = n
	}
	f.wake()
}

// lose says that there may be more than what is told.
func (f *feed) lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = true
	f.wake()
}

func (f *feed) wake() {
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

// take returns the news since it was last called, and what there was before them of what was listed again; ok is false if they are not all.
func (f *feed) take() (news []happening, there map[*listing]map[xp.ID]bool, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	news, f.news = f.news, nil
	clear(f.places)
	there, f.there = f.there, map[*listing]map[xp.ID]bool{}

	return news, there, !f.lost
}

// object returns the object of a happening. Others add to what it is packed with.
func (f *feed) object(h happening) *unstructured.Unstructured {
	f.mu.Lock()
	defer f.mu.Unlock()

	return &unstructured.Unstructured{Object: h.packed.Unpack(nil)}
}

// wait waits for news: not for less than given, so that there are some at a time, and not for more.
func (f *feed) wait(ctx context.Context, least, most time.Duration) error {
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
