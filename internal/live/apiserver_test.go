package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var orders = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "orders"}

// An apiServer answers over HTTP, so that requests are counted and cost what they cost. It has what a client of this package asks for: discovery, lists in
// pages, watches, merge patches and Events.
type apiServer struct {
	*httptest.Server

	mu      sync.Mutex
	changed *sync.Cond
	version int
	stores  map[schema.GroupVersionResource]*store
	closed  bool
	// asked counts requests as verb and resource.
	asked map[string]int
	// refused are verbs and resources that are forbidden.
	refused map[string]bool
	// watched is called when a resource is watched, and deaf are resources of which watches end at once.
	watched func(resource string)
	deaf    map[string]bool
	// patched is called before a patch is carried out.
	patched func()
	// controllers reacts to each change of an object: it returns what it is then, and nil if it stays as it is.
	controllers func(u *unstructured.Unstructured) *unstructured.Unstructured
}

// A store is what there is of a resource, and what has become of it.
type store struct {
	kind       string
	namespaced bool
	objects    map[string]stored
	// names are the keys in the order of lists; nil if they have to be sorted.
	names   []string
	history []stored
}

type stored struct {
	event   watch.EventType
	version int
	labels  labels.Set
	// before are the labels that it had until then.
	before  labels.Set
	class   string
	encoded []byte
}

func newAPIServer(tb testing.TB) *apiServer {
	tb.Helper()
	s := &apiServer{version: 1, stores: map[schema.GroupVersionResource]*store{}, asked: map[string]int{}, refused: map[string]bool{}, deaf: map[string]bool{}}
	s.changed = sync.NewCond(&s.mu)
	for gvr, kind := range map[schema.GroupVersionResource]store{
		xorders: {kind: xptest.LegacyKind}, orderclaims: {kind: xptest.ClaimKind, namespaced: true}, buckets: {kind: xptest.ManagedKind},
		orders:    {kind: xptest.ModernKind, namespaced: true},
		revisions: {kind: "CompositionRevision"}, secrets: {kind: "Secret", namespaced: true}, events: {kind: "Event", namespaced: true},
		deployments: {kind: "Deployment", namespaced: true},
		{Group: xp.GroupAPIExtensions, Version: "v1", Resource: "compositeresourcedefinitions"}: {kind: "CompositeResourceDefinition"},
		{Group: xp.GroupPackage, Version: "v1", Resource: "functions"}:                          {kind: "Function"},
		{Group: xp.GroupPackage, Version: "v1", Resource: "functionrevisions"}:                  {kind: "FunctionRevision"},
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

// stop ends the server, and all watches.
func (s *apiServer) stop() {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	s.CloseClientConnections()
	s.Close()
}

// connect returns a Cluster as each process makes one.
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
			tb.Fatalf("The server has no kind for %s.", xp.String(u))
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

// takeRequests returns what was asked since it was last called, as verb and resource.
func (s *apiServer) takeRequests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = map[string]int{}

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

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var gv schema.GroupVersion
	switch {
	case path[0] == "api" && len(path) > 1:
		gv, path = schema.GroupVersion{Version: path[1]}, path[2:]
	case path[0] == "apis" && len(path) > 2:
		gv, path = schema.GroupVersion{Group: path[1], Version: path[2]}, path[3:]
	default:
		s.serveGroups(w, path[0])

		return
	}
	if len(path) == 0 {
		s.serveResources(w, gv)

		return
	}
	namespace := ""
	if path[0] == "namespaces" && len(path) > 2 {
		namespace, path = path[1], path[2:]
	}
	s.serveResource(w, r, gv.WithResource(path[0]), namespace, path[1:])
}

func (s *apiServer) serveGroups(w http.ResponseWriter, root string) {
	s.count("get", root)
	if root == "api" {
		answer(w, http.StatusOK, metav1.APIVersions{Versions: []string{"v1"}})

		return
	}
	versions := map[string]map[string]bool{}
	for gvr := range s.stores {
		if versions[gvr.Group] == nil {
			versions[gvr.Group] = map[string]bool{}
		}
		versions[gvr.Group][gvr.Version] = true
	}
	delete(versions, "")
	list := metav1.APIGroupList{}
	for group, of := range versions {
		g := metav1.APIGroup{Name: group}
		for version := range of {
			g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + version, Version: version})
		}
		g.PreferredVersion = g.Versions[0]
		list.Groups = append(list.Groups, g)
	}
	answer(w, http.StatusOK, list)
}

func (s *apiServer) serveResources(w http.ResponseWriter, gv schema.GroupVersion) {
	s.count("get", gv.String())
	list := metav1.APIResourceList{GroupVersion: gv.String()}
	for gvr, st := range s.stores {
		if gvr.GroupVersion() == gv {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: gvr.Resource, Kind: st.kind, Namespaced: st.namespaced, Verbs: metav1.Verbs{"get", "list", "watch", "patch", "create"},
			})
		}
	}
	answer(w, http.StatusOK, list)
}

func (s *apiServer) serveResource(w http.ResponseWriter, r *http.Request, gvr schema.GroupVersionResource, namespace string, rest []string) {
	verb := map[string]string{http.MethodGet: "list", http.MethodPatch: "patch", http.MethodPost: "create"}[r.Method]
	switch {
	case r.URL.Query().Has("watch"):
		verb = "watch"
	case verb == "list" && len(rest) > 0:
		verb = "get"
	}
	// The pages of a list are one.
	if !r.URL.Query().Has("continue") {
		s.count(verb, gvr.Resource)
	}
	st, ok := s.stores[gvr]
	s.mu.Lock()
	refused := s.refused[verb+" "+gvr.Resource]
	s.mu.Unlock()
	if !ok || refused {
		status := failure(http.StatusNotFound, metav1.StatusReasonNotFound)
		if refused {
			status = failure(http.StatusForbidden, metav1.StatusReasonForbidden)
		}
		answer(w, int(status.Code), status)

		return
	}
	switch verb {
	case "watch":
		s.mu.Lock()
		watched, deaf := s.watched, s.deaf[gvr.Resource]
		s.mu.Unlock()
		if watched != nil {
			watched(gvr.Resource)
		}
		if !deaf {
			s.serveWatch(w, r, st)
		}
	case "list":
		s.serveList(w, r, st, namespace)
	case "patch":
		s.servePatch(w, r, st, namespace+"/"+rest[0])
	default:
		s.serveObject(w, r, st, namespace+"/"+strings.Join(rest, "/"))
	}
}

func (s *apiServer) count(verb, resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[verb+" "+resource]++
}

func (s *apiServer) serveList(w http.ResponseWriter, r *http.Request, st *store, namespace string) {
	query := r.URL.Query()
	selector, _ := labels.Parse(query.Get("labelSelector"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	class := strings.TrimPrefix(query.Get("fieldSelector"), "type=")
	s.mu.Lock()
	if st.names == nil {
		st.names = slices.Sorted(maps.Keys(st.objects))
	}
	var out bytes.Buffer
	sent, next, from := 0, "", query.Get("continue")
	at, _ := slices.BinarySearch(st.names, from)
	for _, name := range st.names[at:] {
		entry := st.objects[name]
		if !selector.Matches(entry.labels) || class != "" && class != entry.class || namespace != "" && !strings.HasPrefix(name, namespace+"/") {
			continue
		}
		if limit > 0 && sent == limit {
			next = name

			break
		}
		if sent > 0 {
			out.WriteByte(',')
		}
		out.Write(entry.encoded)
		sent++
	}
	version := s.version
	s.mu.Unlock()
	fmt.Fprintf(w, `{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"%d","continue":%q},"items":[%s]}`, st.kind, "v1", version, next, out.Bytes())
}

// serveWatch sends what has become of a resource since the version that is asked for, until the client has enough.
func (s *apiServer) serveWatch(w http.ResponseWriter, r *http.Request, st *store) {
	selector, _ := labels.Parse(r.URL.Query().Get("labelSelector"))
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	flusher, _ := w.(http.Flusher)
	flusher.Flush()
	ctx := r.Context()
	go func() {
		<-ctx.Done()
		s.changed.Broadcast()
	}()
	for {
		s.mu.Lock()
		var news []stored
		for {
			at, _ := slices.BinarySearchFunc(st.history, from+1, func(e stored, version int) int { return e.version - version })
			if news = slices.Clone(st.history[at:]); len(news) > 0 || ctx.Err() != nil || s.closed {
				break
			}
			s.changed.Wait()
		}
		over := s.closed || ctx.Err() != nil
		s.mu.Unlock()
		if over {
			return
		}
		for _, e := range news {
			from = e.version
			event := e.event
			if !selector.Matches(e.labels) {
				// To whoever watches a label, what loses it is deleted.
				if event != watch.Modified || !selector.Matches(e.before) {
					continue
				}
				event = watch.Deleted
			}
			fmt.Fprintf(w, "{\"type\":%q,\"object\":%s}\n", event, e.encoded)
		}
		flusher.Flush()
	}
}

func (s *apiServer) servePatch(w http.ResponseWriter, r *http.Request, st *store, key string) {
	var document map[string]any
	if err := json.NewDecoder(r.Body).Decode(&document); err != nil {
		answer(w, http.StatusBadRequest, failure(http.StatusBadRequest, metav1.StatusReasonBadRequest))

		return
	}
	if s.patched != nil {
		s.patched()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, ok := st.objects[key]
	if !ok {
		answer(w, http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound))

		return
	}
	if v, _, _ := unstructured.NestedString(document, "metadata", "resourceVersion"); v != "" && v != strconv.Itoa(entry.version) {
		answer(w, http.StatusConflict, failure(http.StatusConflict, metav1.StatusReasonConflict))

		return
	}
	_, _ = w.Write(s.store(st, xptest.Merge(decoded(entry.encoded), document)))
}

func (s *apiServer) serveObject(w http.ResponseWriter, r *http.Request, st *store, key string) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodPost {
		u := decoded(b)
		u.SetName(u.GetGenerateName() + strconv.Itoa(s.version))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(s.store(st, u))

		return
	}
	entry, ok := st.objects[key]
	if !ok {
		answer(w, http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound))

		return
	}
	_, _ = w.Write(entry.encoded)
}

func failure(code int32, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: string(reason),
	}
}

func answer(w http.ResponseWriter, code int, object any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object) // The client has gone.
}

// all returns what there is of a resource.
func (s *apiServer) all(gvr schema.GroupVersionResource) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*unstructured.Unstructured
	for _, entry := range s.stores[gvr].objects {
		all = append(all, decoded(entry.encoded))
	}

	return all
}
