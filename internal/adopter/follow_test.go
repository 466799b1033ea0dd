package adopter

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

// A poll acts on changes that happen meanwhile, without another list.
func TestPollsActOnEvents(t *testing.T) {
	x := xptest.XR("x")
	ready := apiserver.Restored(xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled()))
	late := xptest.With(ready, xptest.Without("status"))
	other := apiserver.Restored(xptest.MR("c", xptest.ControlledBy(x), xptest.Reconciled()))
	xr := apiserver.Restored(xptest.XR("x", xptest.Refs(ready, other)))
	observed := func(s *apiserver.Transport) { s.Put(ready) }
	type args struct {
		reason string
		// broken are the resources whose watches are not as usual, and how they are.
		broken map[string]apiserver.Watching
		// happens changes the cluster meanwhile.
		happens func(s *apiserver.Transport)
		// lists is how often XRs are listed at most, and done is set if the XR is adopted in the
		// first poll.
		lists int
		done  bool
		want  string
	}
	xptest.Each(t, map[string]args{
		"Changed": {reason: "The provider has observed the last MR.", lists: 1, done: true, happens: observed},
		"Deleted": {
			reason: "Crossplane must not reconcile an XR without its composed resources.", lists: 1, want: "Bucket c: it is not in the cluster",
			happens: func(s *apiserver.Transport) { s.Remove(other); s.Put(ready) },
		},
		"DeletedObserving": {
			reason: "Its external resource is left behind, and the XR would compose another.", lists: 1, want: "[DeletedWhileObserved]",
			happens: func(s *apiserver.Transport) {
				gone := xptest.With(apiserver.Held(other, hold.Hold{Observes: true}), xptest.Without("metadata", "annotations", xp.AnnotationPaused), xptest.Deleting())
				s.Put(gone)
				s.Remove(gone)
				s.Put(ready)
			},
		},
		"TakenAway": {
			reason: "The composed resource has another controller now.", lists: 1, want: "Bucket c: its controller is XOrder y",
			happens: func(s *apiserver.Transport) {
				s.Put(xptest.With(other, xptest.Without("metadata", "ownerReferences"), xptest.ControlledBy(xptest.XR("y"))), ready)
			},
		},
		"Unlabelled": {
			reason: "A composed resource that has lost the restore's label still exists.", lists: 1, done: true,
			happens: func(s *apiserver.Transport) {
				s.Put(ready, xptest.With(other, xptest.Without("metadata", "labels", "velero.io/restore-name")))
			},
		},
		"Refused":      {reason: "Without the right to watch XRs the poll lists them again.", broken: map[string]apiserver.Watching{"xorders": apiserver.RefusedWatch}, lists: 100, done: true, happens: observed},
		"RefusedBelow": {reason: "What can't be watched shows at the next poll.", broken: map[string]apiserver.Watching{"buckets": apiserver.RefusedWatch}, lists: 1, want: "[AwaitingProvider]", happens: observed},
		"Broken":       {reason: "A list must find the changes that a broken watch missed.", broken: map[string]apiserver.Watching{"xorders": apiserver.EmptyWatch}, lists: 100, done: true, happens: observed},
		"BrokenBelow":  {reason: "The server of a kind that a tenant's ref names may be broken.", broken: map[string]apiserver.Watching{"buckets": apiserver.EmptyWatch}, lists: 1, want: "[AwaitingProvider]", happens: observed},
		"Short":        {reason: "A watch that ends after each event must lose nothing.", broken: map[string]apiserver.Watching{"xorders": apiserver.ShortWatch, "buckets": apiserver.ShortWatch}, lists: 1, done: true, happens: observed},
		"Ending": {
			reason: "Watches end after a while, with or without events.", broken: map[string]apiserver.Watching{"xorders": apiserver.EndingWatch, "buckets": apiserver.EndingWatch}, lists: 1, done: true,
			happens: func(s *apiserver.Transport) { time.AfterFunc(2*shortWatch, func() { s.Put(ready) }) },
		},
		"Expired":      {reason: "After an expired watch the poll lists XRs again.", broken: map[string]apiserver.Watching{"xorders": apiserver.ExpiredWatch}, lists: 100, done: true, happens: observed},
		"ExpiredBelow": {reason: "After an expired watch the poll lists and watches composed resources again.", broken: map[string]apiserver.Watching{"buckets": apiserver.ExpiredWatch}, lists: 1, done: true, happens: observed},
		"SilentBelow":  {reason: "A watch may stay silent for half a minute.", broken: map[string]apiserver.Watching{"buckets": apiserver.UnansweredWatch}, lists: 1, want: "[AwaitingProvider]", happens: observed},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewTransport()
		s.Controllers, s.Broken = reconcileAtOnce, maps.Clone(tc.broken)
		s.Put(append(apiserver.PlatformOf(xr), xr, late, other)...)
		happens := sync.OnceFunc(func() { tc.happens(s) })
		s.Watched = func(resource string) {
			if resource == "xorders" {
				happens()
			}
		}
		a := newAdopter(t, s)
		a.firstWait, a.patience = time.Second, time.Second
		if tc.broken["xorders"] == apiserver.EndingWatch {
			a.firstWait = time.Minute // The poll ends when it has nothing to wait for.
		}
		began := time.Now()
		p := adoptWith(t, a, hold.Unverified, xr)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s\nthe whole poll waited for one watch, for %s", tc.reason, took)
		}
		if p.Done != tc.done || !strings.Contains(waiting(p), tc.want) {
			t.Errorf("%s\ngot %+v", tc.reason, p)
		}
		told := slices.ContainsFunc(s.All(apiserver.Events), func(e *unstructured.Unstructured) bool {
			return strings.HasSuffix(text(e, "message"), "[DeletedWhileObserved]") && text(e, "involvedObject", "name") == other.GetName()
		})
		if told != (tc.want == "[DeletedWhileObserved]") {
			t.Errorf("%s\nan Event reports that something was left behind: %t", tc.reason, told)
		}
		if n := s.TakeRequests()["list xorders"]; n > tc.lists || tc.lists > 1 && n < 2 {
			t.Errorf("%s\nXRs were listed %d times", tc.reason, n)
		}
		if h, err := hold.Of(s.All(apiserver.XOrders)[0]); err != nil || (h == nil) != tc.done {
			t.Errorf("%s\nhold %+v, error %v", tc.reason, h, err)
		}
	})
}

// A watched kind whose version has expired is listed again, unless a list might be incomplete.
func TestExpiredWatches(t *testing.T) {
	type args struct {
		reason string
		of     schema.GroupVersionKind
		vital  bool
		lists  int
		lost   bool
	}
	xptest.Each(t, map[string]args{
		"Composed": {reason: "Some composed resources may be gone.", of: xptest.MR("b").GroupVersionKind(), lists: relistFactor},
		"Secrets":  {reason: "A Secret that one list lacks can be in another.", of: cluster.KindSecret},
		"Vital":    {reason: "The loss of XRs makes the poll list everything again.", of: xptest.XR("x").GroupVersionKind(), vital: true, lost: true},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewServer()
		s.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, nil, apierrors.NewResourceExpired("that was long ago")
		})
		o := newObserver(clusterOf(s), hold.Unverified, selector, nil)
		o.watch(t.Context(), &listing{Collection: cluster.Collection{GroupVersionKind: tc.of}}, tc.vital)
		synctest.Wait()
		_, _, known := o.events.drain()
		if lists := len(s.Requests("list")); lists != tc.lists || known == tc.lost {
			t.Errorf("%s\n%d lists, not %d; lost: %t, not %t", tc.reason, lists, tc.lists, !known, tc.lost)
		}
	})
}

// Events during a long list of thousands of objects would be expired after it, and the version of
// its first page when the last page arrives.
func TestLongListsAreFollowedAtOnce(t *testing.T) {
	const pageSize = 250 // As in package cluster.
	type args struct {
		reason string
		// long is the resource whose first page takes long, and next is the one that must not be
		// answered before the watch of the first begins.
		long, next string
		xrs        int
		pages      int64
	}
	xptest.Each(t, map[string]args{
		"List":  {reason: "The watch of XRs must start before all other lists end.", long: "xorders", next: "buckets", xrs: 1, pages: 1},
		"Pages": {reason: "The watch of MRs must start before the last page.", long: "buckets", next: "buckets", xrs: 2*pageSize/apiserver.ComposedEach + 1, pages: 3},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewTransport()
		s.Controllers = reconcileAtOnce
		first := s.PutHeldXRs(tc.xrs, time.Now())
		begun := make(chan struct{})
		begin := sync.OnceFunc(func() { close(begun) })
		s.Watched = func(resource string) {
			if resource == tc.long {
				begin()
			}
		}
		var pages atomic.Int64
		var late atomic.Bool
		s.Listed = func(resource string) {
			if resource == tc.long && pages.Load() == 0 {
				time.Sleep(shortWatch + shortWatch/10) // It makes the list count as long.
			}
			if resource == tc.next && pages.Add(1) == tc.pages {
				select {
				case <-begun:
				case <-time.After(10 * shortWatch):
					late.Store(true)
				}
			}
		}
		done(t, adoptWith(t, newAdopter(t, s), hold.Unverified, first))
		if late.Load() || pages.Load() != tc.pages {
			t.Errorf("%s\nlate: %t, after %d pages", tc.reason, late.Load(), pages.Load())
		}
	})
}

// Crossplane v1 copies a claim's labels to its XR, which removes the label of a second restore. A
// watch of that label then sends DELETED. The object must not count as deleted: an operation that
// fails for that reason has failed for good.
func TestLostLabels(t *testing.T) {
	x := xptest.XR("x")
	y := xptest.With(x, xptest.Field("y", "metadata", "name"))
	connection := apiserver.Restored(xptest.Secret("s", xptest.ControlledBy(y)))
	type args struct {
		reason string
		// whole is set if another object of the kind lacks the label.
		whole bool
		lost  *unstructured.Unstructured
		// there is set if the object stays in the Snapshot, and ok if no events are missing.
		there, ok bool
	}
	xptest.Each(t, map[string]args{
		"Labelled":   {reason: "A list of the whole kind must look for the object.", lost: apiserver.Restored(y), ok: true},
		"Whole":      {reason: "The watch of the whole kind reports the deletion.", whole: true, lost: apiserver.Restored(y), there: true, ok: true},
		"Connection": {reason: "The list of Secrets may have found the object without the label.", whole: true, lost: connection},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewTransport()
		all := []*unstructured.Unstructured{apiserver.Restored(x), apiserver.Restored(y), connection}
		if tc.whole {
			all[0] = x
		}
		s.Put(append(apiserver.PlatformOf(x), all...)...)
		o := newObserver(connect(t, s), hold.Unverified, selector, []xp.Ref{xp.RefTo(x)})
		xptest.Must(t, o.listNeeded(t.Context()))
		o.put(tc.lost)
		in := &listing{Collection: cluster.Collection{GroupVersionKind: tc.lost.GroupVersionKind()}, options: metav1.ListOptions{LabelSelector: selector}}
		o.events.add(watch.Deleted, tc.lost, in)
		ok := o.isCurrent()
		if there := o.snapshot.Get(xp.RefTo(tc.lost)) != nil; there != tc.there || ok != tc.ok {
			t.Errorf("%s\nthere: %t, want %t; all known: %t, want %t", tc.reason, there, tc.there, ok, tc.ok)
		}
	})
}

// A poll reads what XRs of several kinds share once, although Velero polls one operation after the
// other.
func TestPollsReadWhatIsSharedOnce(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		s := apiserver.NewTransport()
		s.Controllers = reconcileAtOnce
		mine := apiserver.Restored(xptest.MR("b", xptest.ControlledBy(xptest.XR("x")), xptest.Reconciled()))
		x := apiserver.Restored(xptest.XR("x", xptest.Refs(mine)))
		theirs := apiserver.Restored(xptest.NamespacedMR("n", xptest.ControlledBy(xptest.XRV2("y")), xptest.Reconciled()))
		y := apiserver.Restored(xptest.XRV2("y", xptest.Refs(theirs)))
		s.Put(append(apiserver.PlatformOf(x), x, y, mine, theirs)...)
		a := newAdopter(t, s)
		for _, u := range []*unstructured.Unstructured{x, x, y, y} {
			if p := adoptWith(t, a, hold.Unverified, u); !p.Failed.IsZero() {
				t.Errorf("got %+v", p)
			}
		}
		for what, n := range s.TakeRequests() {
			if strings.HasPrefix(what, "list ") && n > 2 {
				t.Errorf("%s: %d times", what, n)
			}
		}
	})
}

// The kinds that an XR composes are listed in parallel, each once: the server answers none before
// all are requested. They are watched like any other as long as an XR waits for them.
func TestKindsAreListedInParallel(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		s := apiserver.NewTransport()
		s.Controllers = reconcileAtOnce
		x := xptest.XR("x")
		bucket := apiserver.Restored(xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled()))
		queue := xptest.With(apiserver.Restored(xptest.MR("q", xptest.ControlledBy(x), xptest.Reconciled())), xptest.Field("Queue", "kind"))
		xr := apiserver.Restored(xptest.XR("x", xptest.Refs(bucket, queue)))
		s.Put(append(apiserver.PlatformOf(xr), xr, bucket, xptest.With(queue, xptest.Without("status")))...)
		var both sync.WaitGroup
		both.Add(2)
		s.Listed = func(resource string) {
			if resource == "buckets" || resource == "queues" {
				both.Done()
				both.Wait() // If not all are requested, the bubble ends the test.
			}
		}
		observe := sync.OnceFunc(func() { s.Put(queue) })
		s.Watched = func(resource string) {
			if resource == "queues" {
				observe()
			}
		}
		a := newAdopter(t, s)
		a.firstWait = time.Minute // The poll ends when it has nothing to wait for.
		done(t, adoptWith(t, a, hold.Unverified, xr))
		if got := s.TakeRequests(); got["list buckets"] != 1 || got["list queues"] != 1 {
			t.Errorf("each kind must be listed once: %v", got)
		}
	})
}
