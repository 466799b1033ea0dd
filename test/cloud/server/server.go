// Package server is a small cloud for tests: resources, and a journal of every call that outlives
// the callers.
package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
)

// maxRequestBytes is far more than any request needs.
const maxRequestBytes = 1 << 20

// A Server is a cloud. New makes one.
type Server struct {
	mux           *http.ServeMux
	databaseDelay time.Duration

	mu      sync.Mutex
	store   *store
	faults  []*fault
	release chan struct{} // Closed to release the stalled calls.

	lingering map[key]api.Caller // The callers of the accepted deletes.
	told      map[key]bool       // The resources whose connection was read.
}

// New returns a cloud that stores everything in the directory, with the resources stored there
// before, and whose databases become available after a delay. Faults are not stored.
func New(dir string, databaseDelay time.Duration) (*Server, error) {
	st, err := openStore(dir)
	if err != nil {
		return nil, err
	}

	s := &Server{
		mux: http.NewServeMux(), databaseDelay: databaseDelay, store: st, release: make(chan struct{}), lingering: map[key]api.Caller{}, told: map[key]bool{},
	}

	s.mux.HandleFunc("POST /v1/{kinds}", s.forOne(api.Create, http.StatusCreated))
	s.mux.HandleFunc("GET /v1/{kinds}/{id}", s.forOne(api.Read, http.StatusOK))
	s.mux.HandleFunc("PUT /v1/{kinds}/{id}", s.forOne(api.Update, http.StatusOK))
	s.mux.HandleFunc("DELETE /v1/{kinds}/{id}", s.forOne(api.Delete, http.StatusNoContent))
	s.mux.HandleFunc("GET /v1/resources", s.list)
	s.mux.HandleFunc("GET /v1/journal", s.journal)
	s.mux.HandleFunc("POST /v1/faults", s.addFault)
	s.mux.HandleFunc("DELETE /v1/faults", s.forgetFaults)
	s.mux.HandleFunc("POST /v1/release", s.releaseStalled)

	return s, nil
}

// ServeHTTP serves the API of the cloud.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxRequestBytes)
	s.mux.ServeHTTP(w, r)
}

// forOne handles a call for one resource. The call always leaves an entry in the journal.
func (s *Server) forOne(op api.Op, success int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		kind, ok := api.KindFor(r.PathValue("kinds"))
		if !ok {
			respond(w, http.StatusNotFound, refuse(http.StatusNotFound, "there is no kind called %q", r.PathValue("kinds")))
			return
		}

		c := call{op: op, kind: kind, id: r.PathValue("id"), caller: callerOf(r)}

		var in api.Resource
		if op == api.Create || op == api.Update {
			// An unreadable request is refused below, so that it is in the journal.
			c.malformed = json.NewDecoder(r.Body).Decode(&in)
			c.spec = in.Spec
		}

		if op == api.Create {
			c.id = in.ID
		}

		s.mu.Lock()
		c.fault = s.takeFault(c)
		out, err := s.do(c, success)
		release := s.release
		s.mu.Unlock()

		if c.fault.Stall {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}

		if err != nil {
			respondError(w, err)
			return
		}

		respond(w, success, out)
	}
}

// A call is a call for one resource.
type call struct {
	op        api.Op
	kind      api.Kind
	id        string
	spec      api.Spec
	caller    api.Caller
	fault     api.Fault
	malformed error
}

// do carries out a call and writes it to the journal. If the write fails, the call does nothing.
func (s *Server) do(c call, success int) (api.Resource, error) {
	now := time.Now().UTC()
	rec := record{Entry: api.Entry{Time: now, Op: c.op, Kind: c.kind, ID: c.id, Status: success, Caller: c.caller}}

	after, refused := s.decide(c, now)

	var e *api.Error

	switch {
	case errors.As(refused, &e):
		rec.Status = e.Status
	case c.op == api.Delete && c.fault.Linger:
		rec.Status = http.StatusAccepted
		s.lingering[key{c.kind, c.id}] = c.caller
	case c.op == api.Create, c.op == api.Update:
		rec.ID = after.ID
		rec.Resource = &after
	}

	if err := s.store.write(rec); err != nil {
		return api.Resource{}, err
	}

	if refused != nil {
		return api.Resource{}, refused
	}

	// After a delete this is not the stored resource, but the response to a delete has no body.
	if r, ok := s.store.get(c.kind, after.ID); ok {
		after = r
	}

	return s.tellOnce(c.op, seen(after, now)), nil
}

// decide returns the resource after a call, or why the call is refused. It changes nothing.
func (s *Server) decide(c call, now time.Time) (api.Resource, error) {
	if c.fault.Status != 0 {
		return api.Resource{}, refuse(c.fault.Status, "a fault was asked for")
	}

	if c.malformed != nil {
		return api.Resource{}, refuse(http.StatusBadRequest, "cannot decode the request: %s", c.malformed)
	}

	if c.op == api.Create {
		return s.decideCreate(c, now)
	}

	r, ok := s.store.get(c.kind, c.id)
	if !ok {
		return api.Resource{}, refuse(http.StatusNotFound, "there is no %s %q", c.kind, c.id)
	}

	if c.op == api.Update {
		r.Spec = c.spec
	}

	return r, nil
}

func (s *Server) decideCreate(c call, now time.Time) (api.Resource, error) {
	r := api.Resource{Kind: c.kind, ID: c.id, Spec: c.spec, CreatedAt: now, AvailableAt: now, CreatedBy: c.caller}

	switch {
	case c.kind == api.Bucket && c.id == "":
		return api.Resource{}, refuse(http.StatusBadRequest, "a Bucket needs an id")
	case c.kind != api.Bucket && c.id != "":
		return api.Resource{}, refuse(http.StatusBadRequest, "the cloud chooses the id of a %s", c.kind)
	case c.kind == api.Network:
		r.ID = "net-" + randomHex()
	case c.kind == api.Database:
		r.ID = "db-" + randomHex()
		r.AvailableAt = now.Add(s.databaseDelay)
		r.Connection = &api.Connection{Endpoint: r.ID + ".databases.cloud.example.org:5432", Username: "admin", Password: randomHex()}
	}

	if _, exists := s.store.get(r.Kind, r.ID); exists {
		return api.Resource{}, refuse(http.StatusConflict, "there is a %s %q already", r.Kind, r.ID)
	}

	return r, nil
}

// seen returns the resource without the fields that a caller can't see yet: the connection of a
// resource that is not available.
func seen(r api.Resource, now time.Time) api.Resource {
	r.State = api.Available

	if now.Before(r.AvailableAt) {
		r.State = api.Creating
		r.Connection = nil
	}

	return r
}

// tellOnce removes the connection from an answer if the cloud returns it only until it was read, as
// clouds do with the secret of an access key.
func (s *Server) tellOnce(op api.Op, r api.Resource) api.Resource {
	if r.Spec.Engine != api.EngineOnce || r.State != api.Available {
		return r
	}

	k := key{r.Kind, r.ID}
	if s.told[k] {
		r.Connection = nil
	}

	s.told[k] = s.told[k] || op == api.Read

	return r
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()

	now := time.Now()

	rs := s.store.list()
	for i := range rs {
		rs[i] = seen(rs[i], now)
	}

	respond(w, http.StatusOK, rs)
}

func (s *Server) journal(w http.ResponseWriter, r *http.Request) {
	since := int64(0)

	if q := r.URL.Query().Get("since"); q != "" {
		n, err := strconv.ParseInt(q, 10, 64)
		if err != nil {
			respondError(w, refuse(http.StatusBadRequest, "cannot parse since: %s", err))
			return
		}

		since = n
	}

	ops := map[api.Op]bool{}

	if q := r.URL.Query().Get("op"); q != "" {
		for op := range strings.SplitSeq(q, ",") {
			ops[api.Op(op)] = true
		}
	}

	s.mu.Lock()
	es := s.store.entriesAfter(since, ops)
	s.mu.Unlock()

	respond(w, http.StatusOK, es)
}

func (s *Server) addFault(w http.ResponseWriter, r *http.Request) {
	f := api.Fault{}
	if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
		respondError(w, refuse(http.StatusBadRequest, "cannot decode the fault: %s", err))
		return
	}

	fails := !f.Stall && !f.Linger
	if bad := f.Status < http.StatusBadRequest || f.Status > 599; !fails && f.Status != 0 || fails && bad {
		respondError(w, refuse(http.StatusBadRequest, "the status of a fault is from 400 to 599, or 0 if it stalls or lingers, not %d", f.Status))
		return
	}

	s.mu.Lock()
	s.faults = append(s.faults, &fault{Fault: f, calls: map[string]int{}})
	s.mu.Unlock()

	respond(w, http.StatusCreated, f)
}

func (s *Server) forgetFaults(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := r.URL.Query().Get("by")
	s.faults = slices.DeleteFunc(s.faults, func(f *fault) bool { return strings.HasPrefix(f.By, by) })
	respond(w, http.StatusNoContent, nil)
}

func (s *Server) releaseStalled(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.release)
	s.release = make(chan struct{})
	for k, by := range s.lingering {
		rec := record{Entry: api.Entry{Time: time.Now().UTC(), Op: api.Delete, Kind: k.kind, ID: k.id, Status: http.StatusNoContent, Caller: by}}
		if err := s.store.write(rec); err != nil {
			respondError(w, err)
			return
		}

		delete(s.lingering, k)
	}
	respond(w, http.StatusNoContent, nil)
}

// A fault is a requested fault, with the number of matching calls of each caller.
type fault struct {
	api.Fault

	calls map[string]int
}

func (f *fault) matches(c call) bool {
	return f.Times > 0 && (f.Op == "" || f.Op == c.op) && (f.Kind == "" || f.Kind == c.kind) && strings.Contains(c.caller.ManagedBy, f.By)
}

// isDue reports whether the next call of a caller fails.
func (f *fault) isDue(caller string) bool {
	f.calls[caller]++

	return f.calls[caller] > f.After
}

// takeFault uses one failure of the oldest matching fault; without one it returns an empty Fault.
func (s *Server) takeFault(c call) api.Fault {
	for _, f := range s.faults {
		if f.matches(c) && f.isDue(c.caller.ManagedBy) {
			f.Times--

			return f.Fault
		}
	}

	return api.Fault{}
}

func callerOf(r *http.Request) api.Caller {
	return api.Caller{
		Cluster:                 r.Header.Get(api.HeaderCluster),
		ManagedBy:               r.Header.Get(api.HeaderManagedBy),
		Composite:               r.Header.Get(api.HeaderComposite),
		CompositionResourceName: r.Header.Get(api.HeaderCompositionResourceName),
	}
}

func refuse(status int, format string, a ...any) *api.Error {
	return &api.Error{Status: status, Message: fmt.Sprintf(format, a...)}
}

func respondError(w http.ResponseWriter, err error) {
	var e *api.Error
	if !errors.As(err, &e) {
		e = refuse(http.StatusInternalServerError, "%s", err)
	}

	respond(w, e.Status, e)
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)

	if status == http.StatusNoContent {
		return
	}

	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // If this fails, the caller has closed the connection.
}
