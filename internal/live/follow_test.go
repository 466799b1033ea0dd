package live

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A poll acts on changes that happen meanwhile, without another list.
func TestPollsActOnEvents(t *testing.T) {
	x := xptest.XR("x")
	ready := restored(xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled()))
	late := xptest.With(ready, xptest.Without("status"))
	other := restored(xptest.MR("c", xptest.ControlledBy(x), xptest.Reconciled()))
	xr := restored(xptest.XR("x", xptest.Refs(ready, other)))
	cases := map[string]struct {
		reason string
		// refuse are watches that are forbidden, empty those that end at once, unanswered those
		// without an answer, and expired those whose version has expired.
		refuse, empty, unanswered, expired string
		// short ends watches after their first events, and ending ends them after a while.
		short, ending bool
		// happens changes the cluster meanwhile.
		happens func(s *apiServer)
		// lists is how often XRs are listed at most, and done is set if the XR is adopted in the
		// first poll.
		lists int
		done  bool
		want  string
		// events is how many Events report that something was left behind.
		events int
	}{
		"Changed": {
			reason: "The provider has observed the last MR.", lists: 1, done: true,
			happens: func(s *apiServer) { s.put(t, ready) },
		},
		"Deleted": {
			reason: "Crossplane must not reconcile an XR without its composed resources.", lists: 1, want: "Bucket c: it is not in the cluster",
			happens: func(s *apiServer) { s.remove(other); s.put(t, ready) },
		},
		"DeletedObserving": {
			reason: "Its external resource is left behind, and the XR would compose another.", lists: 1, want: "[DeletedWhileObserved]", events: 1,
			happens: func(s *apiServer) {
				gone := xptest.With(heldMR(other, adoption.Hold{Observes: true}), xptest.Without("metadata", "annotations", xp.AnnotationPaused), xptest.Deleting())
				s.put(t, gone)
				s.remove(gone)
				s.put(t, ready)
			},
		},
		"TakenAway": {
			reason: "The composed resource has another controller now.", lists: 1, want: "Bucket c: its controller is XOrder y",
			happens: func(s *apiServer) {
				s.put(t, xptest.With(other, xptest.Without("metadata", "ownerReferences"), xptest.ControlledBy(xptest.XR("y"))))
				s.put(t, ready)
			},
		},
		"Unlabelled": {
			reason: "A composed resource that has lost the restore's label still exists.", lists: 1, done: true,
			happens: func(s *apiServer) {
				s.put(t, ready)
				s.put(t, xptest.With(other, xptest.Without("metadata", "labels", "velero.io/restore-name")))
			},
		},
		"Refused": {
			reason: "Without the right to watch XRs the poll lists them again.", refuse: "xorders", lists: 100, done: true, happens: func(s *apiServer) { s.put(t, ready) },
		},
		"RefusedBelow": {
			reason: "A change of a composed resource that can't be watched shows at the next poll.", refuse: "buckets", lists: 1, want: "Bucket b: its provider has not observed it yet [AwaitingProvider]",
			happens: func(s *apiServer) { s.put(t, ready) },
		},
		"Broken": {
			reason: "A list must find the changes that a broken watch missed.", empty: "xorders", lists: 100, done: true, happens: func(s *apiServer) { s.put(t, ready) },
		},
		"ShortWatches": {
			reason: "A watch that ends after each event must lose nothing.", short: true, lists: 1, done: true,
			happens: func(s *apiServer) { s.put(t, ready) },
		},
		"Ending": {
			reason: "Watches end after a while, with or without events.", ending: true, lists: 1, done: true,
			happens: func(s *apiServer) { time.AfterFunc(2*shortWatch, func() { s.put(t, ready) }) },
		},
		"BrokenBelow": {
			reason: "The server of a kind that a tenant's ref names may be broken.", empty: "buckets", lists: 1, want: "Bucket b: its provider has not observed it yet [AwaitingProvider]",
			happens: func(s *apiServer) { s.put(t, ready) },
		},
		"Expired": {
			reason: "After an expired watch the poll lists XRs again.", expired: "xorders", lists: 100, done: true, happens: func(s *apiServer) { s.put(t, ready) },
		},
		"ExpiredBelow": {
			reason: "After an expired watch the poll lists composed resources and watches them again.", expired: "buckets", lists: 1, done: true,
			happens: func(s *apiServer) { s.put(t, ready) },
		},
		"SilentBelow": {
			reason: "A watch may stay silent for half a minute.", unanswered: "buckets", lists: 1, want: "Bucket b: its provider has not observed it yet [AwaitingProvider]",
			happens: func(s *apiServer) { s.put(t, ready) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t)
			s.controllers = reconcileAtOnce
			s.unanswered, s.waited, s.shortWatches, s.endingWatches = tc.unanswered, make(chan struct{}), tc.short, tc.ending
			s.put(t, append(platformOf(xr), xr, late, other)...)
			s.refused["watch "+tc.refuse], s.emptyWatches[tc.empty] = true, true
			s.expired[tc.expired] = true
			var once sync.Once
			s.watched = func(resource string) {
				if resource == "xorders" {
					once.Do(func() { tc.happens(s) })
				}
			}
			if tc.refuse == "xorders" {
				s.watched = nil
				defer time.AfterFunc(50*time.Millisecond, func() { tc.happens(s) }).Stop()
			}
			a := newShortAdopter(t, s)
			a.firstWait, a.patience = time.Second, time.Second
			if tc.ending {
				a.firstWait = time.Minute // The poll ends when it has nothing to wait for.
			}
			plans, err := a.Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
			if err != nil {
				t.Fatal(err)
			}
			if isClosed(s.waited) {
				t.Errorf("%s\nthe whole poll waited for one watch", tc.reason)
			}
			p := plans[xp.RefTo(xr).ID()]
			if p.Done != tc.done || !strings.Contains(strings.Join(reason.Strings(p.Waiting), "\n"), tc.want) {
				t.Errorf("%s\ngot %+v", tc.reason, p)
			}
			told := 0
			for _, e := range s.all(events) {
				about, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
				if message, _ := e.Object["message"].(string); strings.HasSuffix(message, "[DeletedWhileObserved]") && about == other.GetName() {
					told++
				}
			}
			if told != tc.events {
				t.Errorf("%s\n%d Events", tc.reason, told)
			}
			if n := s.takeRequests()["list xorders"]; n > tc.lists || tc.lists > 1 && n < 2 {
				t.Errorf("%s\nXRs were listed %d times", tc.reason, n)
			}
			if h, err := adoption.HoldOf(s.all(xorders)[0]); err != nil || (h == nil) != tc.done {
				t.Errorf("%s\nhold %+v, error %v", tc.reason, h, err)
			}
		})
	}
}

// A watched kind whose version has expired is listed again, unless a list might be incomplete.
func TestExpiredWatches(t *testing.T) {
	cases := map[string]struct {
		reason string
		of     schema.GroupVersionKind
		vital  bool
		lists  int
		lost   bool
	}{
		"Composed": {reason: "Some composed resources may be gone.", of: xptest.MR("b").GroupVersionKind(), lists: relistFactor},
		"Secrets":  {reason: "A Secret that one list lacks can be in another.", of: kindSecret},
		"Vital":    {reason: "The loss of XRs makes the poll list everything again.", of: xptest.XR("x").GroupVersionKind(), vital: true, lost: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
					return true, nil, apierrors.NewResourceExpired("that was long ago")
				})
				o := newObserver(s.cluster(), adoption.Unverified, selector, nil)
				o.watch(t.Context(), &listing{collection: collection{GroupVersionKind: tc.of}}, tc.vital)
				synctest.Wait()
				_, _, known := o.events.drain()
				if lists := len(s.requests("list")); lists != tc.lists || known == tc.lost {
					t.Errorf("%s\n%d lists, not %d; lost: %t, not %t", tc.reason, lists, tc.lists, !known, tc.lost)
				}
			})
		})
	}
}

// Events during a long list of thousands of objects would be expired after it.
func TestLongListsAreFollowedAtOnce(t *testing.T) {
	mine := restored(xptest.MR("b", xptest.ControlledBy(xptest.XR("x")), xptest.Reconciled()))
	x := restored(xptest.XR("x", xptest.Refs(mine)))
	s := newAPIServer(t)
	s.controllers = reconcileAtOnce
	s.put(t, append(platformOf(x), x, mine)...)
	begun := make(chan struct{})
	var once sync.Once
	s.watched = func(resource string) {
		if resource == "xorders" {
			once.Do(func() { close(begun) })
		}
	}
	late := false
	s.listed = func(resource string) {
		switch resource {
		case "xorders":
			<-time.After(shortWatch + shortWatch/10) // It makes the list count as long.
		case "buckets":
			select {
			case <-begun:
			case <-time.After(10 * shortWatch):
				late = true
			}
		}
	}
	plans, err := newShortAdopter(t, s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(x))
	if err != nil || !plans[xp.RefTo(x).ID()].Done {
		t.Errorf("got %+v, %v", plans, err)
	}
	if late {
		t.Error("the watch of XRs must start before all other lists end")
	}
}

// The version of the first page of thousands of MRs is expired when the last page arrives.
func TestLongListsAreFollowedFromTheirFirstPage(t *testing.T) {
	s := newAPIServer(t)
	s.controllers = reconcileAtOnce
	first := s.putHeldXRs(t, 2*pageSize/composedEach+1, time.Now())
	begun := make(chan struct{})
	var once sync.Once
	s.watched = func(resource string) {
		if resource == "buckets" {
			once.Do(func() { close(begun) })
		}
	}
	pages, late := 0, false
	s.listed = func(resource string) {
		if resource != "buckets" {
			return
		}
		pages++
		switch pages {
		case 1:
			<-time.After(shortWatch + shortWatch/10) // It makes the list count as long.
		case 2:
		default:
			select {
			case <-begun:
			case <-time.After(10 * shortWatch):
				late = true
			}
		}
	}
	plans, err := newShortAdopter(t, s).Adopt(context.Background(), adoption.Unverified, monday, selector, first)
	if err != nil || !plans[first.ID()].Done {
		t.Errorf("got %+v, %v", plans[first.ID()], err)
	}
	if late || pages != 3 {
		t.Errorf("the watch of MRs must start before the last list of %d pages ends: %t", pages, late)
	}
}

// Crossplane v1 copies a claim's labels to its XR, which removes the label of a second restore. A
// watch of that label then sends DELETED. The object must not count as deleted: an operation that
// fails for that reason has failed for good.
func TestLostLabels(t *testing.T) {
	x := xptest.XR("x")
	y := xptest.With(x, xptest.Field("y", "metadata", "name"))
	connection := restored(xptest.Secret("s", xptest.ControlledBy(y)))
	cases := map[string]struct {
		reason string
		// whole is set if another object of the kind lacks the label.
		whole bool
		lost  *unstructured.Unstructured
		// there is set if the object stays in the Snapshot, and ok if no events are missing.
		there, ok bool
	}{
		"Labelled":   {reason: "A list of the whole kind must look for the object.", lost: restored(y), ok: true},
		"Whole":      {reason: "The watch of the whole kind reports the deletion.", whole: true, lost: restored(y), there: true, ok: true},
		"Connection": {reason: "The list of Secrets may have found the object without the label.", whole: true, lost: connection},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t)
			all := []*unstructured.Unstructured{restored(x), restored(y), connection}
			if tc.whole {
				all = []*unstructured.Unstructured{x, restored(y), connection}
			}
			s.put(t, append(platformOf(x), all...)...)
			o := newObserver(s.connect(t), adoption.Unverified, selector, []xp.Ref{xp.RefTo(x)})
			if err := o.listNeeded(context.Background()); err != nil {
				t.Fatal(err)
			}
			o.put(tc.lost)
			in := &listing{collection: collection{GroupVersionKind: tc.lost.GroupVersionKind()}, options: metav1.ListOptions{LabelSelector: selector}}
			o.events.add(watch.Deleted, tc.lost, in)
			ok := o.isCurrent()
			if there := o.snapshot.Get(xp.RefTo(tc.lost)) != nil; there != tc.there || ok != tc.ok {
				t.Errorf("%s\nthere: %t, want %t; all known: %t, want %t", tc.reason, there, tc.there, ok, tc.ok)
			}
		})
	}
}

// A poll reads what XRs of several kinds share once, although Velero polls one operation after the
// other.
func TestPollsReadWhatIsSharedOnce(t *testing.T) {
	s := newAPIServer(t)
	s.controllers = reconcileAtOnce
	mine := restored(xptest.MR("b", xptest.ControlledBy(xptest.XR("x")), xptest.Reconciled()))
	x := restored(xptest.XR("x", xptest.Refs(mine)))
	theirs := restored(xptest.NamespacedMR("n", xptest.ControlledBy(xptest.XRV2("y")), xptest.Reconciled()))
	y := restored(xptest.XRV2("y", xptest.Refs(theirs)))
	s.put(t, append(platformOf(x), x, y, mine, theirs)...)
	a := newShortAdopter(t, s)
	for _, u := range []*unstructured.Unstructured{x, y} {
		for range 2 {
			plans, err := a.Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(u))
			if err != nil {
				t.Fatal(err)
			}
			if p := plans[xp.RefTo(u).ID()]; !p.Failed.IsZero() || len(plans) == 0 {
				t.Errorf("got %+v", p)
			}
		}
	}
	for what, n := range s.takeRequests() {
		if strings.HasPrefix(what, "list ") && n > 2 {
			t.Errorf("%s: %d times", what, n)
		}
	}
}
