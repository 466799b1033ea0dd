package live

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// The kinds that an XR composes are listed in parallel, each once: the server answers none before
// all are requested.
func TestKindsAreListedInParallel(t *testing.T) {
	s := newAPIServer(t)
	composed := []*unstructured.Unstructured{xptest.MR("b"), xptest.XRV2("o", xptest.In("shop"))}
	xr := xptest.With(xptest.XR("x"), xptest.Refs(composed...), xptest.Labelled("velero.io/restore-name", "monday"))
	if _, err := adoption.Put(xr, adoption.Hold{Restore: "velero/monday", Since: time.Now().UTC().Format(time.RFC3339)}); err != nil {
		t.Fatal(err)
	}
	s.put(t, platformOf(xr)...)
	s.put(t, xr)
	for _, u := range composed {
		s.put(t, restored(u))
	}
	var both sync.WaitGroup
	both.Add(2)
	asked := make(chan struct{})
	go func() { both.Wait(); close(asked) }()
	s.listed = func(resource string) {
		if resource != "buckets" && resource != "orders" {
			return
		}
		both.Done()
		select {
		case <-asked:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: its list did not run with the others", resource)
		}
	}
	w, err := s.connect(t).Observe(context.Background(), adoption.Unverified, selector, []xp.Ref{xp.RefTo(xr)})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range composed {
		if !w.Has(xp.RefTo(u)) {
			t.Errorf("%s was not observed", xp.String(u))
		}
	}
	got := s.takeRequests()
	if diff := cmp.Diff(map[string]int{"buckets": 1, "orders": 1}, map[string]int{"buckets": got["list buckets"], "orders": got["list orders"]}); diff != "" {
		t.Errorf("lists, -want, +got:\n%s", diff)
	}
}

// Kinds that are listed in parallel are watched like any other as long as an XR waits for them.
func TestKindsListedInParallelAreFollowed(t *testing.T) {
	s := newAPIServer(t)
	s.controllers = reconcileAtOnce
	x := xptest.XR("x")
	bucket := restored(xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled()))
	queue := xptest.With(restored(xptest.MR("q", xptest.ControlledBy(x), xptest.Reconciled())), xptest.Field("Queue", "kind"))
	xr := restored(xptest.XR("x", xptest.Refs(bucket, queue)))
	s.put(t, append(platformOf(xr), xr, bucket, xptest.With(queue, xptest.Without("status")))...)
	var once sync.Once
	s.watched = func(resource string) {
		if resource == "queues" {
			once.Do(func() { s.put(t, queue) })
		}
	}
	a := newShortAdopter(t, s)
	a.firstWait = time.Minute // The poll ends when it has nothing to wait for.
	plans, err := a.Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
	if err != nil {
		t.Fatal(err)
	}
	if p := plans[xp.RefTo(xr).ID()]; !p.Done {
		t.Errorf("the watch of Queues must report that the provider has observed the Queue: %+v", p)
	}
	got := s.takeRequests()
	if diff := cmp.Diff(map[string]int{"buckets": 1, "queues": 1}, map[string]int{"buckets": got["list buckets"], "queues": got["list queues"]}); diff != "" {
		t.Errorf("lists, -want, +got:\n%s", diff)
	}
}
