package live

import (
	"encoding/json"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var (
	orders = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "orders"}
	queues = schema.GroupVersionResource{Group: "cloud.example.org", Version: "v1alpha1", Resource: "queues"}
)

// An apiServer answers over HTTP, so that requests are counted and have their real cost. It has
// what this package uses: discovery, lists in pages, watches, merge patches and Events.
type apiServer struct {
	*httptest.Server

	mu      sync.Mutex
	changed *sync.Cond
	version int
	stores  map[schema.GroupVersionResource]*store
	closed  bool
	// counts are the numbers of requests, by verb and resource.
	counts map[string]int
	// refused are verbs and resources that are forbidden.
	refused map[string]bool
	// listed is called with the resource before a list is answered.
	listed func(resource string)
	// watched is called when a resource is watched. emptyWatches are resources whose watches end at
	// once.
	watched      func(resource string)
	emptyWatches map[string]bool
	// expired are resources whose next watch fails with an expired version.
	expired map[string]bool
	// shortWatches ends watches after their first events, and endingWatches ends them after a
	// while.
	shortWatches, endingWatches bool
	// unanswered is the resource whose watches are not answered. waited is closed when the client
	// has stopped waiting.
	unanswered string
	waited     chan struct{}
	// patched is called before a patch is applied.
	patched func()
	// deletions are the kinds and names that were deleted, with the propagation policy.
	deletions []string
	// controllers is called with each changed object. It returns the object to store, or nil.
	controllers func(u *unstructured.Unstructured) *unstructured.Unstructured
}

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

func newAPIServer(tb testing.TB) *apiServer {
	tb.Helper()
	s := &apiServer{
		version: 1, stores: map[schema.GroupVersionResource]*store{}, counts: map[string]int{}, refused: map[string]bool{}, emptyWatches: map[string]bool{},
		expired: map[string]bool{},
	}
	s.changed = sync.NewCond(&s.mu)
	for gvr, kind := range map[schema.GroupVersionResource]store{
		xorders: {kind: xptest.LegacyKind}, orderclaims: {kind: xptest.ClaimKind, namespaced: true}, buckets: {kind: xptest.ManagedKind},
		orders: {kind: xptest.ModernKind, namespaced: true}, queues: {kind: "Queue"},
		revisions: {kind: "CompositionRevision"}, secrets: {kind: "Secret", namespaced: true}, events: {kind: "Event", namespaced: true},
		deployments: {kind: "Deployment", namespaced: true},
		{Group: xp.GroupAPIExtensions, Version: "v1", Resource: "compositeresourcedefinitions"}: {kind: "CompositeResourceDefinition"},
		{Group: xp.GroupPackage, Version: "v1", Resource: "functions"}:                          {kind: "Function"},
		{Group: xp.GroupPackage, Version: "v1", Resource: "functionrevisions"}:                  {kind: "FunctionRevision"},
		{Group: xp.GroupAPIExtensions, Version: "v1beta1", Resource: "environmentconfigs"}:      {kind: "EnvironmentConfig"},
		{Group: xp.GroupProtection, Version: "v1beta1", Resource: "usages"}:                     {kind: "Usage", namespaced: true},
		{Group: xp.GroupProtection, Version: "v1beta1", Resource: "clusterusages"}:              {kind: "ClusterUsage"},
	} {
		kind.objects = map[string]stored{}
		s.stores[gvr] = &kind
	}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.StartTLS()
	tb.Cleanup(s.stop)

	return s
}

// stop stops the server and all watches.
func (s *apiServer) stop() {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	s.CloseClientConnections()
	s.Close()
}

// connect returns a Cluster with its own caches, as a new process has.
func (s *apiServer) connect(tb testing.TB) *Cluster {
	tb.Helper()
	c, err := connectTo(&rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		tb.Fatal(err)
	}

	return c
}

// put creates or replaces objects.
func (s *apiServer) put(tb testing.TB, objects ...*unstructured.Unstructured) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range objects {
		st := s.storeOf(u)
		if st == nil {
			tb.Fatalf("the test server has no kind for %s", xp.String(u))
		}
		s.store(st, u)
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
