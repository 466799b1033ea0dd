package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// RoundTrip answers a request as an API server does, without a network, for which a bubble would not
// wait.
func (s *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	if document, ok := s.discovery(r.URL.Path); ok {
		_ = json.NewEncoder(w).Encode(document) // A recorder takes all.

		return w.Result(), nil
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	gv, path := schema.GroupVersion{Version: path[1]}, path[2:]
	if strings.HasPrefix(r.URL.Path, "/apis/") {
		gv, path = schema.GroupVersion{Group: gv.Version, Version: path[0]}, path[1:]
	}
	namespace := ""
	if path[0] == "namespaces" && len(path) > 2 {
		namespace, path = path[1], path[2:]
	}
	gvr, key := gv.WithResource(path[0]), namespace+"/"+strings.Join(path[1:], "/")
	verb := map[string]string{http.MethodGet: "list", http.MethodPatch: "patch", http.MethodPost: "create"}[r.Method]
	_, isNamed := named(r)
	switch {
	case r.URL.Query().Has("watch"):
		verb = "watch"
	case verb == "list" && len(path) > 1:
		verb = "get"
	case isNamed:
		verb = "list one of"
	case isMetadata(r):
		verb = "list metadata of"
	}
	if !r.URL.Query().Has("continue") {
		s.count(verb, gvr.Resource) // All pages of a list count once.
	}
	st, ok := s.stores[gvr]
	switch {
	case !ok:
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case verb == "watch":
		return s.watch(w, r, gvr.Resource)
	case verb == "patch":
		s.servePatch(w, r, st, key)
	case strings.HasPrefix(verb, "list"):
		if s.Listed != nil {
			s.Listed(gvr.Resource)
		}
		s.serveList(w, r, st, namespace)
	default:
		s.serveObject(w, r, st, key)
	}

	return w.Result(), nil
}

// discovery returns what the server answers about its groups and kinds; ok is false for other paths.
// Such requests are not counted.
func (s *Transport) discovery(path string) (document any, ok bool) {
	kinds := map[string][]metav1.APIResource{}
	for gvr, st := range s.stores {
		gv := gvr.GroupVersion().String()
		kinds[gv] = append(kinds[gv], metav1.APIResource{Name: gvr.Resource, Kind: st.kind, Namespaced: st.namespaced, Categories: []string{st.category}, Verbs: metav1.Verbs{"list"}})
	}
	gv, isAPI := strings.CutPrefix(path, "/apis/")
	if !isAPI {
		gv, isAPI = strings.CutPrefix(path, "/api/")
	}
	of, isVersion := kinds[gv]
	switch {
	case path == "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}, true
	case path == "/apis":
		delete(kinds, "v1")
		groups, _ := groupsOf(kinds) // The groups and versions are well-formed.

		return groups, true
	case isAPI && isVersion:
		return metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv, APIResources: of}, true
	default:
		return nil, false
	}
}

func (s *Transport) count(verb, resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[verb+" "+resource]++
}

// endingAfter is how long ending watches last: longer than a watch that proves nothing.
const endingAfter = 1200 * time.Millisecond

// A watchBody ends the request when the client closes it.
type watchBody struct {
	*io.PipeReader

	cancel context.CancelFunc
}

func (b watchBody) Close() error {
	b.cancel()

	return b.PipeReader.Close()
}

func (s *Transport) watch(w *httptest.ResponseRecorder, r *http.Request, resource string) (*http.Response, error) {
	if s.Watched != nil {
		s.Watched(resource)
	}
	s.mu.Lock()
	how := s.Broken[resource]
	if how == ExpiredWatch {
		delete(s.Broken, resource)
	}
	s.mu.Unlock()
	switch how { //nolint:exhaustive // The others answer as always.
	case RefusedWatch:
		fail(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	case ExpiredWatch:
		gone, _ := json.Marshal(failure(http.StatusGone, metav1.StatusReasonExpired))
		fmt.Fprintf(w, "{\"type\":%q,\"object\":%s}\n", watch.Error, gone)
	case EmptyWatch:
	case UnansweredWatch:
		<-r.Context().Done()

		return nil, r.Context().Err()
	default:
		ctx, cancel := context.WithCancel(r.Context())
		if how == EndingWatch {
			ctx, cancel = context.WithTimeout(r.Context(), endingAfter)
		}
		reader, writer := io.Pipe()
		answer := w.Result()
		answer.Body = watchBody{reader, cancel}
		go func() {
			defer writer.Close()
			s.serveWatch(ctx, writer, r, resource, how)
		}()

		return answer, nil
	}

	return w.Result(), nil
}

// serveWatch sends the events of a resource after the requested version until the context ends.
func (s *Transport) serveWatch(ctx context.Context, w io.Writer, r *http.Request, resource string, how Watching) {
	selector, _ := labels.Parse(r.URL.Query().Get("labelSelector"))
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	for {
		s.mu.Lock()
		var events []stored
		for ctx.Err() == nil && len(events) == 0 {
			for gvr, st := range s.stores {
				if at, _ := slices.BinarySearchFunc(st.history, from+1, func(e stored, version int) int { return e.version - version }); gvr.Resource == resource {
					events = slices.Clone(st.history[at:])
				}
			}
			if len(events) == 0 {
				s.changed.Wait()
			}
		}
		s.mu.Unlock()
		for _, e := range events {
			from = e.version
			event := e.event
			if !selector.Matches(e.labels) {
				// A watch with a label selector sends DELETED for an object that loses the label.
				if event != watch.Modified || !selector.Matches(e.before) {
					continue
				}
				event = watch.Deleted
			}
			fmt.Fprintf(w, "{\"type\":%q,\"object\":%s}\n", event, e.encoded)
			if how == ShortWatch {
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func (s *Transport) serveList(w http.ResponseWriter, r *http.Request, st *store, namespace string) {
	query := r.URL.Query()
	selector, _ := labels.Parse(query.Get("labelSelector"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	class, isClass := strings.CutPrefix(query.Get("fieldSelector"), "type=")
	one, isNamed := named(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.names == nil {
		st.names = slices.Sorted(maps.Keys(st.objects))
	}
	var items []string
	next := ""
	at, _ := slices.BinarySearch(st.names, query.Get("continue"))
	for _, name := range st.names[at:] {
		entry := st.objects[name]
		if !selector.Matches(entry.labels) || isClass && class != entry.class || namespace != "" && !strings.HasPrefix(name, namespace+"/") ||
			isNamed && !strings.HasSuffix(name, "/"+one) {
			continue
		}
		if limit > 0 && len(items) == limit {
			next = name

			break
		}
		encoded := entry.encoded
		if isMetadata(r) {
			u := decoded(encoded)
			encoded, _ = json.Marshal(map[string]any{"metadata": u.Object["metadata"]}) // It was decoded.
		}
		items = append(items, string(encoded))
	}
	fmt.Fprintf(w, `{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"%d","continue":%q},"items":[%s]}`, st.kind, "v1", s.version, next, strings.Join(items, ","))
}

// isMetadata reports whether a list asks for metadata only.
func isMetadata(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList")
}

// named returns the name that a list's field selector selects, if there is one.
func named(r *http.Request) (name string, ok bool) {
	return strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
}

func (s *Transport) servePatch(w http.ResponseWriter, r *http.Request, st *store, key string) {
	if s.Patched != nil {
		s.Patched()
	}
	var document map[string]any
	err := json.NewDecoder(r.Body).Decode(&document)
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, ok := st.objects[key]
	v, _, _ := unstructured.NestedString(document, "metadata", "resourceVersion")
	switch {
	case err != nil:
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	case !ok:
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case v != "" && v != strconv.Itoa(entry.version):
		fail(w, http.StatusConflict, metav1.StatusReasonConflict)
	default:
		_, _ = w.Write(s.store(st, xptest.Merge(decoded(entry.encoded), document)))
	}
}

func (s *Transport) serveObject(w http.ResponseWriter, r *http.Request, st *store, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, ok := st.objects[key]
	switch {
	case r.Method == http.MethodPost:
		b, _ := io.ReadAll(r.Body)
		u := decoded(b)
		u.SetName(u.GetGenerateName() + strconv.Itoa(s.version))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(s.store(st, u))
	case ok:
		_, _ = w.Write(entry.encoded)
	default:
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

func failure(code int32, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: string(reason)}
}

func fail(w http.ResponseWriter, code int32, reason metav1.StatusReason) {
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(failure(code, reason)) // A recorder takes all.
}
