package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// ServeHTTP answers as an API server does.
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
	verb := map[string]string{http.MethodGet: "list", http.MethodPatch: "patch", http.MethodPost: "create", http.MethodDelete: "delete"}[r.Method]
	switch {
	case r.URL.Query().Has("watch"):
		verb = "watch"
	case verb == "list" && len(rest) > 0:
		verb = "get"
	}
	_, isNamed := named(r)
	switch {
	case isNamed:
		s.count("list one of", gvr.Resource)
	case !r.URL.Query().Has("continue"):
		s.count(verb, gvr.Resource) // All pages of a list count once.
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
		watched, deaf, silent, forgetful := s.watched, s.emptyWatches[gvr.Resource], s.unanswered == gvr.Resource, s.expired[gvr.Resource]
		delete(s.expired, gvr.Resource)
		s.mu.Unlock()
		if silent {
			<-r.Context().Done()
			s.mu.Lock()
			if !isClosed(s.waited) { // Others may watch the resource too.
				close(s.waited)
			}
			s.mu.Unlock()

			return
		}
		if watched != nil {
			watched(gvr.Resource)
		}
		switch {
		case forgetful:
			expired, _ := json.Marshal(failure(http.StatusGone, metav1.StatusReasonExpired))
			fmt.Fprintf(w, "{\"type\":%q,\"object\":%s}\n", watch.Error, expired)
		case !deaf:
			s.serveWatch(w, r, st)
		}
	case "list":
		if s.listed != nil {
			s.listed(gvr.Resource)
		}
		s.serveList(w, r, st, namespace)
	case "patch":
		s.servePatch(w, r, st, namespace+"/"+rest[0])
	case "delete":
		s.serveDelete(w, r, st, namespace+"/"+rest[0])
	default:
		s.serveObject(w, r, st, namespace+"/"+strings.Join(rest, "/"))
	}
}

func (s *apiServer) count(verb, resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[verb+" "+resource]++
}

func (s *apiServer) serveList(w http.ResponseWriter, r *http.Request, st *store, namespace string) {
	query := r.URL.Query()
	selector, _ := labels.Parse(query.Get("labelSelector"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	class, _ := strings.CutPrefix(query.Get("fieldSelector"), "type=")
	one, isNamed := named(r)
	if isNamed {
		class = ""
	}
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
		if isNamed && !strings.HasSuffix(name, "/"+one) {
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

// named returns the name that a list's field selector selects, if there is one.
func named(r *http.Request) (name string, ok bool) {
	return strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
}

// serveWatch sends the events of a resource after the requested version until the client closes the
// connection.
func (s *apiServer) serveWatch(w http.ResponseWriter, r *http.Request, st *store) {
	selector, _ := labels.Parse(r.URL.Query().Get("labelSelector"))
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	flusher, _ := w.(http.Flusher)
	flusher.Flush()
	ctx := r.Context()
	if s.endingWatches {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, shortWatch+shortWatch/5)
		defer cancel()
	}
	go func() {
		<-ctx.Done()
		s.changed.Broadcast()
	}()
	for {
		s.mu.Lock()
		var notices []stored
		for {
			at, _ := slices.BinarySearchFunc(st.history, from+1, func(e stored, version int) int { return e.version - version })
			if notices = slices.Clone(st.history[at:]); len(notices) > 0 || ctx.Err() != nil || s.closed {
				break
			}
			s.changed.Wait()
		}
		over := s.closed || ctx.Err() != nil
		s.mu.Unlock()
		if over {
			return
		}
		for _, e := range notices {
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
			if s.shortWatches {
				return
			}
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

// serveDelete deletes an object if the preconditions are met. One with finalizers stays.
func (s *apiServer) serveDelete(w http.ResponseWriter, r *http.Request, st *store, key string) {
	var options metav1.DeleteOptions
	if err := json.NewDecoder(r.Body).Decode(&options); err != nil {
		answer(w, http.StatusBadRequest, failure(http.StatusBadRequest, metav1.StatusReasonBadRequest))

		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, ok := st.objects[key]
	if !ok {
		answer(w, http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound))

		return
	}
	u := decoded(entry.encoded)
	if p := options.Preconditions; p == nil || *p.UID != u.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != u.GetResourceVersion() {
		answer(w, http.StatusConflict, failure(http.StatusConflict, metav1.StatusReasonConflict))

		return
	}
	s.deletions = append(s.deletions, fmt.Sprintf("%s %s %s", st.kind, key, *options.PropagationPolicy))
	if len(u.GetFinalizers()) > 0 {
		s.store(st, xptest.With(u, xptest.Deleting()))
	} else {
		delete(st.objects, key)
		st.names = nil
	}
	answer(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
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
	_ = json.NewEncoder(w).Encode(object) // The client has closed the connection.
}
