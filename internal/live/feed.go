package live

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

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
	// woken has something in it if there are news.
	woken chan struct{}
}

// A happening is what has become of an object, of which it has what planning reads.
type happening struct {
	event  watch.EventType
	object *unstructured.Unstructured
	in     *listing
	// versions are all that the object has had.
	versions []string
}

type place struct {
	in *listing
	id xp.ID
}

func newFeed() *feed {
	return &feed{places: map[place]int{}, there: map[*listing]map[xp.ID]bool{}, woken: make(chan struct{}, 1)}
}

func (f *feed) add(h happening) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := place{in: h.in, id: xp.RefTo(h.object).ID()}
	h.versions = []string{h.object.GetResourceVersion()}
	if n, ok := f.places[at]; ok {
		h.versions = append(f.news[n].versions, h.versions...)
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
	f.news = slices.DeleteFunc(f.news, func(h happening) bool { return h.in == l && !there[xp.RefTo(h.object).ID()] })
	clear(f.places)
	for n, h := range f.news {
		f.places[place{in: h.in, id: xp.RefTo(h.object).ID()}] = n
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
