package apiserver

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A Transport answers the requests of clients in its bubble, so that requests are counted. It has
// what a Cluster uses: discovery, lists in pages, watches, merge patches and Events.
type Transport struct {
	mu      sync.Mutex
	changed *sync.Cond
	version int
	stores  map[schema.GroupVersionResource]*store
	// counts are the numbers of requests, by verb and resource.
	counts map[string]int
	// Listed is called with the resource before a list is answered.
	Listed func(resource string)
	// Watched is called when a resource is watched, and Broken are those whose watches are not as
	// usual.
	Watched func(resource string)
	Broken  map[string]Watching
	// Patched is called before a patch is applied.
	Patched func()
	// Controllers is called with each changed object. It returns the object to store, or nil.
	Controllers func(u *unstructured.Unstructured) *unstructured.Unstructured
}

// Watching is how the watches of a resource are not as usual.
type Watching int

const (
	// EmptyWatch watches end at once.
	EmptyWatch Watching = iota + 1
	// ShortWatch watches end after their first events.
	ShortWatch
	// EndingWatch watches end after a while.
	EndingWatch
	// ExpiredWatch makes the next watch fail with an expired version.
	ExpiredWatch
	// UnansweredWatch watches have no answer.
	UnansweredWatch
	// RefusedWatch watches are forbidden.
	RefusedWatch
)

// A store has the objects and the events of a resource.
type store struct {
	kind       string
	namespaced bool
	// category is that of Crossplane, if it has one.
	category string
	objects  map[string]stored
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

// NewTransport returns a Transport without objects.
func NewTransport() *Transport {
	s := &Transport{version: 1, stores: map[schema.GroupVersionResource]*store{}, counts: map[string]int{}}
	s.changed = sync.NewCond(&s.mu)
	for gvr, kind := range map[schema.GroupVersionResource]store{
		XOrders:     {kind: xptest.LegacyKind, category: xp.CategoryComposite},
		OrderClaims: {kind: xptest.ClaimKind, namespaced: true, category: xp.CategoryClaim},
		Buckets:     {kind: xptest.ManagedKind, category: xp.CategoryManaged},
		orders:      {kind: xptest.ModernKind, namespaced: true}, queues: {kind: "Queue"},
		revisions: {kind: "CompositionRevision"}, Secrets: {kind: "Secret", namespaced: true}, Events: {kind: "Event", namespaced: true},
		Deployments: {kind: "Deployment", namespaced: true}, XRDs: {kind: "CompositeResourceDefinition"}, Functions: {kind: "Function"},
		packages: {kind: "FunctionRevision"}, namespacedUsages: {kind: "Usage", namespaced: true},
		{Group: xp.GroupAPIExtensions, Version: "v1beta1", Resource: "environmentconfigs"}: {kind: "EnvironmentConfig"},
		{Group: xp.GroupProtection, Version: "v1beta1", Resource: "clusterusages"}:         {kind: "ClusterUsage"},
	} {
		kind.objects = map[string]stored{}
		s.stores[gvr] = &kind
	}

	return s
}

// Config returns the configuration of clients of the server.
func (s *Transport) Config() *rest.Config {
	return &rest.Config{Host: "http://api.example.org", Transport: s}
}

// Put creates or replaces objects.
func (s *Transport) Put(objects ...*unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range objects {
		s.store(s.storeOf(u), u)
	}
}

// Remove deletes an object.
func (s *Transport) Remove(u *unstructured.Unstructured) {
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

// TakeRequests returns the counts since its last call, by verb and resource.
func (s *Transport) TakeRequests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.counts
	s.counts = map[string]int{}

	return asked
}

func (s *Transport) storeOf(u *unstructured.Unstructured) *store {
	for gvr, st := range s.stores {
		if st.kind == u.GetKind() && gvr.Group == u.GroupVersionKind().Group {
			return st
		}
	}

	return nil
}

func (s *Transport) store(st *store, u *unstructured.Unstructured) []byte {
	key := u.GetNamespace() + "/" + u.GetName()
	last, there := st.objects[key]
	s.version++
	u = xptest.With(u, xptest.Version(strconv.Itoa(s.version)))
	b := xptest.Value(json.Marshal(u.Object))
	class, _, _ := unstructured.NestedString(u.Object, "type")
	entry := stored{event: watch.Modified, version: s.version, labels: u.GetLabels(), before: last.labels, class: class, encoded: b}
	if !there {
		entry.event, st.names = watch.Added, nil
	}
	st.objects[key] = entry
	st.history = append(st.history, entry)
	s.changed.Broadcast()
	if s.Controllers != nil {
		if next := s.Controllers(u); next != nil {
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

// All returns the objects of a resource.
func (s *Transport) All(gvr schema.GroupVersionResource) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*unstructured.Unstructured
	for _, entry := range s.stores[gvr].objects {
		all = append(all, decoded(entry.encoded))
	}

	return all
}

// ComposedEach is how many MRs each XR composes.
const ComposedEach = 10

// PlatformOf returns the XRD and the revision of an XR.
func PlatformOf(xr *unstructured.Unstructured) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		xptest.XRD("xorders.example.org", xptest.Field("example.org", "spec", "group"), xptest.Field(map[string]any{"kind": xptest.LegacyKind}, "spec", "names"),
			xptest.Field([]any{map[string]any{"type": xp.ConditionEstablished, "status": "True"}}, "status", "conditions")),
		Restored(xptest.Revision(xptest.RevisionName, xr)),
	}
}

// PutHeldXRs puts held XRs with composed resources into a server, and returns the first. since is
// when they were held.
func (s *Transport) PutHeldXRs(xrs int, since time.Time) *unstructured.Unstructured {
	s.Put(PlatformOf(xptest.XR("x"))...)
	for n := range xrs {
		x := xptest.XR(fmt.Sprintf("x%05d", n))
		composed := make([]*unstructured.Unstructured, 0, ComposedEach)
		for m := range ComposedEach {
			composed = append(composed, xptest.MR(fmt.Sprintf("%s-%d", x.GetName(), m), xptest.ControlledBy(x), xptest.Reconciled()))
		}
		at := since.UTC().Format(time.RFC3339)
		s.Put(xptest.With(Held(xptest.With(x, xptest.Refs(composed...)), hold.Hold{Since: at}), xptest.Created(at)))
		for _, u := range composed {
			s.Put(Restored(u))
		}
	}

	return xptest.XR("x00000")
}

// CountRequests returns the lists of the resource that was listed most, and all writes.
func CountRequests(asked map[string]int) (most, writes int) {
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
