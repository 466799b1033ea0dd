package live

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// An apiServer answers the requests of clients in its bubble, so that requests are counted. It has
// what this package uses: lists in pages, watches, merge patches and Events.
type apiServer struct {
	mu      sync.Mutex
	changed *sync.Cond
	version int
	stores  map[schema.GroupVersionResource]*store
	// counts are the numbers of requests, by verb and resource.
	counts map[string]int
	// listed is called with the resource before a list is answered.
	listed func(resource string)
	// watched is called when a resource is watched, and broken are those whose watches are not as
	// usual.
	watched func(resource string)
	broken  map[string]watching
	// patched is called before a patch is applied.
	patched func()
	// controllers is called with each changed object. It returns the object to store, or nil.
	controllers func(u *unstructured.Unstructured) *unstructured.Unstructured
}

// watching is how the watches of a resource are not as usual.
type watching int

const (
	// empty watches end at once, short ones after their first events, and ending ones after a while.
	empty watching = iota + 1
	short
	ending
	// The next watch of an expired resource fails with an expired version.
	expired
	// unanswered watches have no answer, and refused ones are forbidden.
	unanswered
	refused
)

// A store has the objects and the events of a resource.
type store struct {
	kind       string
	namespaced bool
	objects    map[string]stored
	// names are the sorted keys; nil if they must be sorted again.
	names   []string
	history []stored
}

type stored struct {
	event   watch.EventType
	version int
	labels  labels.Set
	// before are the labels before the event.
	before  labels.Set
	class   string
	encoded []byte
}

func newAPIServer() *apiServer {
	s := &apiServer{version: 1, stores: map[schema.GroupVersionResource]*store{}, counts: map[string]int{}}
	s.changed = sync.NewCond(&s.mu)
	for gvr, kind := range map[schema.GroupVersionResource]store{
		xorders: {kind: xptest.LegacyKind}, orderclaims: {kind: xptest.ClaimKind, namespaced: true}, buckets: {kind: xptest.ManagedKind},
		orders: {kind: xptest.ModernKind, namespaced: true}, queues: {kind: "Queue"},
		revisions: {kind: "CompositionRevision"}, secrets: {kind: "Secret", namespaced: true}, events: {kind: "Event", namespaced: true},
		deployments: {kind: "Deployment", namespaced: true}, xrds: {kind: "CompositeResourceDefinition"}, functions: {kind: "Function"},
		packages: {kind: "FunctionRevision"}, namespacedUsages: {kind: "Usage", namespaced: true},
		{Group: xp.GroupAPIExtensions, Version: "v1beta1", Resource: "environmentconfigs"}: {kind: "EnvironmentConfig"},
		{Group: xp.GroupProtection, Version: "v1beta1", Resource: "clusterusages"}:         {kind: "ClusterUsage"},
	} {
		kind.objects = map[string]stored{}
		s.stores[gvr] = &kind
	}

	return s
}

// connect returns a Cluster with its own caches, as a new process has.
func (s *apiServer) connect(tb testing.TB) *Cluster {
	tb.Helper()
	c, err := connectTo(&rest.Config{Host: "http://api.example.org", Transport: s})
	if err != nil {
		tb.Fatal(err)
	}
	kinds := &server{kinds: map[string][]metav1.APIResource{}}
	for gvr, st := range s.stores {
		kinds.serve(gvr.GroupVersion().String(), metav1.APIResource{Name: gvr.Resource, Kind: st.kind, Namespaced: st.namespaced})
	}
	c.discovery = kinds

	return c
}

// newAdopter returns an Adopter of a new process, whose watches end with the test.
func newAdopter(tb testing.TB, s *apiServer) *Adopter {
	tb.Helper()
	a := NewAdopter(s.connect(tb), discardLog())
	tb.Cleanup(a.forget)

	return a
}

// put creates or replaces objects.
func (s *apiServer) put(objects ...*unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range objects {
		s.store(s.storeOf(u), u)
	}
}

// remove deletes an object.
func (s *apiServer) remove(u *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.storeOf(u)
	key := u.GetNamespace() + "/" + u.GetName()
	entry := st.objects[key]
	delete(st.objects, key)
	st.names = nil
	s.version++
	entry.event, entry.version = watch.Deleted, s.version
	st.history = append(st.history, entry)
	s.changed.Broadcast()
}

// takeRequests returns the counts since its last call, by verb and resource.
func (s *apiServer) takeRequests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.counts
	s.counts = map[string]int{}

	return asked
}

func (s *apiServer) storeOf(u *unstructured.Unstructured) *store {
	for gvr, st := range s.stores {
		if st.kind == u.GetKind() && gvr.Group == u.GroupVersionKind().Group {
			return st
		}
	}

	return nil
}

func (s *apiServer) store(st *store, u *unstructured.Unstructured) []byte {
	key := u.GetNamespace() + "/" + u.GetName()
	last, there := st.objects[key]
	s.version++
	u = xptest.With(u, xptest.Version(strconv.Itoa(s.version)))
	b, err := json.Marshal(u.Object)
	if err != nil {
		panic(err) // The test is wrong.
	}
	class, _, _ := unstructured.NestedString(u.Object, "type")
	entry := stored{event: watch.Modified, version: s.version, labels: u.GetLabels(), before: last.labels, class: class, encoded: b}
	if !there {
		entry.event, st.names = watch.Added, nil
	}
	st.objects[key] = entry
	st.history = append(st.history, entry)
	s.changed.Broadcast()
	if s.controllers != nil {
		if next := s.controllers(u); next != nil {
			s.store(st, next)
		}
	}

	return b
}

func decoded(b []byte) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(b); err != nil {
		panic(err) // The test is wrong.
	}

	return u
}

// all returns the objects of a resource.
func (s *apiServer) all(gvr schema.GroupVersionResource) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*unstructured.Unstructured
	for _, entry := range s.stores[gvr].objects {
		all = append(all, decoded(entry.encoded))
	}

	return all
}

// composedEach is how many MRs each XR composes.
const composedEach = 10

// platformOf returns the XRD and the revision of an XR.
func platformOf(xr *unstructured.Unstructured) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		xptest.XRD("xorders.example.org", xptest.Field("example.org", "spec", "group"), xptest.Field(map[string]any{"kind": xptest.LegacyKind}, "spec", "names"),
			xptest.Field([]any{map[string]any{"type": xp.ConditionEstablished, "status": "True"}}, "status", "conditions")),
		restored(xptest.Revision(xptest.RevisionName, xr)),
	}
}

// putHeldXRs puts held XRs with composed resources into a server, and returns the first. since is
// when they were held.
func (s *apiServer) putHeldXRs(xrs int, since time.Time) *unstructured.Unstructured {
	s.put(platformOf(xptest.XR("x"))...)
	for n := range xrs {
		x := xptest.XR(fmt.Sprintf("x%05d", n))
		composed := make([]*unstructured.Unstructured, 0, composedEach)
		for m := range composedEach {
			composed = append(composed, xptest.MR(fmt.Sprintf("%s-%d", x.GetName(), m), xptest.ControlledBy(x), xptest.Reconciled()))
		}
		at := since.UTC().Format(time.RFC3339)
		s.put(xptest.With(held(xptest.With(x, xptest.Refs(composed...)), hold.Hold{Since: at}), created(at)))
		for _, u := range composed {
			s.put(restored(u))
		}
	}

	return xptest.XR("x00000")
}

// countRequests returns the lists of the resource that was listed most, and all writes.
func countRequests(asked map[string]int) (most, writes int) {
	for what, n := range asked {
		verb, _, _ := strings.Cut(what, " ")
		switch verb {
		case "list":
			most = max(most, n)
		case "patch", "create":
			writes += n
		}
	}

	return most, writes
}
