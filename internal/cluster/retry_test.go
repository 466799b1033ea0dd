package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

// failingServer is a server that fails for a while.
type failingServer struct {
	*apiserver.Server

	left int
	err  error
}

func (f *failingServer) fails() bool {
	f.left--

	return f.left >= 0
}

func (f *failingServer) ServerGroups() (*metav1.APIGroupList, error) {
	if f.fails() {
		return nil, f.err
	}

	return f.Server.ServerGroups()
}

func (f *failingServer) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	if f.fails() {
		return nil, f.err
	}

	return f.Server.ServerResourcesForGroupVersion(gv)
}

// tries is how often a Cluster of these tests tries a request, without pauses.
const tries = 4

func withoutPauses(c *Cluster) *Cluster {
	c.backoff = wait.Backoff{Duration: time.Microsecond, Steps: tries - 1}

	return c
}

func newFailingServer(err error, objects ...*unstructured.Unstructured) (*failingServer, *Cluster) {
	f := &failingServer{Server: apiserver.NewServer(objects...), err: err}
	f.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return f.fails(), nil, f.err })

	return f, withoutPauses(New(f, f))
}

func transientErrors() map[string]error {
	bucket := schema.GroupResource{Group: "cloud.example.org", Resource: "buckets"}
	broken := func(err error) error { return &url.Error{Op: "Get", URL: "https://10.0.0.1/", Err: err} }

	return map[string]error{
		"TooMany":     apierrors.NewTooManyRequestsError("slow down"),
		"Internal":    apierrors.NewInternalError(errors.New("etcdserver: leader changed")),
		"Unavailable": apierrors.NewServiceUnavailable("starting"),
		"Timeout":     apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0),
		"Unknown":     apierrors.NewGenericServerResponse(http.StatusBadGateway, "get", bucket, "b", "", 0, true),
		"Reset":       broken(&net.OpError{Op: "read", Err: syscall.ECONNRESET}),
		"Refused":     broken(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}),
		"Closed":      broken(io.EOF),
		"Truncated":   fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", io.ErrUnexpectedEOF),
	}
}

// A restore or a backup gets its answer when the API server is back, and nothing counts as missing
// until then.
func TestFailuresAreNoAnswers(t *testing.T) {
	x := xptest.XR("x")
	mr := xptest.MR("b", xptest.ControlledBy(x))
	cases := map[string]struct {
		reason string
		ask    func(ctx context.Context, c *Cluster) (any, error)
		want   any
	}{
		"Owner": {
			reason: "An owner that counts as gone is dropped, and its objects are orphaned.", want: x.GetUID(),
			ask: func(ctx context.Context, c *Cluster) (any, error) {
				u, err := c.Owner(ctx, ownerOf(xptest.LegacyKind, "x"), "")
				if err != nil {
					return nil, err
				}

				return u.GetUID(), nil
			},
		},
		"OwnerThatIsGone": {
			reason: "A retry must not hide that the owner is gone.", want: true,
			ask: func(ctx context.Context, c *Cluster) (any, error) {
				_, err := c.Owner(ctx, ownerOf(xptest.LegacyKind, "missing"), "")

				return apierrors.IsNotFound(err), IgnoreUnserved(err)
			},
		},
		"Exists": {reason: "A restore must not overwrite a live object.", want: true, ask: func(ctx context.Context, c *Cluster) (any, error) { return c.Exists(ctx, xp.RefTo(mr)) }},
		"Settings": {
			reason: "Settings that can't be read change the result of a restore.", want: map[string]string{"clone": "new"},
			ask: func(ctx context.Context, c *Cluster) (any, error) { return c.Settings(ctx, "velero") },
		},
		"Resource": {
			reason: "The plugin looks up the resource of each item that must come first.", want: "buckets",
			ask: func(_ context.Context, c *Cluster) (any, error) {
				gvr, _, err := c.Resource(mr.GroupVersionKind())

				return gvr.Resource, err
			},
		},
		"Served": {
			reason: "A backup lists the served kinds.", want: true,
			ask: func(_ context.Context, c *Cluster) (any, error) {
				_, ok, err := c.Served(mr.GroupVersionKind().GroupKind())

				return ok, err
			},
		},
		"Event": {reason: "An Event must report the result of a hold.", ask: func(ctx context.Context, c *Cluster) (any, error) { return nil, c.Warn(ctx, x, "Why", "because") }},
	}
	for name, tc := range cases {
		for fault, err := range transientErrors() {
			t.Run(name+"/"+fault, func(t *testing.T) {
				f, c := newFailingServer(err, x, mr, apiserver.Settings("s"))
				check := func(left int) {
					f.left = left
					got, failure := tc.ask(t.Context(), c)
					if diff := cmp.Diff(tc.want, got); failure != nil || diff != "" {
						t.Errorf("%s after %d failures: %v, -want, +got:\n%s", tc.reason, left, failure, diff)
					}
				}
				check(2)
				f, c = newFailingServer(err, x, mr, apiserver.Settings("s"))
				f.left = 1 << 20
				if _, failure := tc.ask(t.Context(), c); failure == nil || IsUnserved(failure) || !errors.Is(failure, err) ||
					name != "Event" && strings.Count(failure.Error(), "try again when") != 1 {
					t.Errorf("%s while it fails: %v", tc.reason, failure)
				}
				check(0)
			})
		}
	}
}

// A server that is down is not retried for each of a thousand items.
func TestServerThatIsDown(t *testing.T) {
	f, c := newFailingServer(apierrors.NewServiceUnavailable("starting"), xptest.XR("x"))
	asked := func() int {
		before := f.left
		_, _ = c.Settings(t.Context(), "velero") // It fails; the number of requests matters.

		return before - f.left
	}
	if _, _, err := c.Resource(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}); err != nil {
		t.Fatal(err)
	}
	f.left = 1 << 20
	got := []int{asked(), asked()}
	f.left = 0
	got = append(got, asked())
	f.left = 1 << 20
	got = append(got, asked())
	xptest.Same(t, []int{tries, 1, 1, tries}, got, "the requests of a first failure, a second one, a success and a new failure")
}

// A refusal is not retried.
func TestAnswersAreFinal(t *testing.T) {
	cases := map[string]error{
		"NotFound":  apierrors.NewNotFound(apiserver.Buckets.GroupResource(), "b"),
		"Forbidden": apierrors.NewForbidden(apiserver.Buckets.GroupResource(), "b", errors.New("no")),
		"Conflict":  apierrors.NewConflict(apiserver.Buckets.GroupResource(), "b", errors.New("it has changed")),
		"Invalid":   apierrors.NewBadRequest("no"),
		"Refused":   apierrors.NewApplyConflict(nil, "no"),
		"Another":   apiserver.ErrDown,
	}
	for name, want := range cases {
		n := 0
		err := withoutPauses(clusterOf(apiserver.NewServer())).withRetry(t.Context().Done(), apiServerName, func() error { n++; return want })
		if n != 1 || err != want { //nolint:errorlint // It must be the same error.
			t.Errorf("%s: requested %d times: %v", name, n, err)
		}
	}
}

// A failed conversion of one kind does not concern other kinds, and is not retried as long as a
// restart of the API server takes.
func TestConversionIsNotOutage(t *testing.T) {
	s := apiserver.NewServer(xptest.MR("b"))
	s.FailOn("list", "buckets", 1<<30, apiserver.ErrConversion)
	c := withoutPauses(clusterOf(s))
	for range 3 {
		if _, err := c.Exists(t.Context(), xp.RefTo(xptest.MR("b"))); !xp.IsConversion(err) {
			t.Errorf("got %v", err)
		}
	}
	if asked := s.Requests("list"); len(asked) != fewRetries || len(c.silent) > 0 {
		t.Errorf("each item of a restore asks, and a webhook may need 30 s for no answer; requested %v, silent %v", asked, c.silent)
	}
	began := time.Now()
	c.now = func() time.Time { return began.Add(unconvertedTTL) }
	if _, err := c.Named(t.Context(), xptest.MR("b").GroupVersionKind(), "b"); !xp.IsConversion(err) || len(s.Requests("list")) != 2*fewRetries {
		t.Errorf("requested %v, and got %v: the webhook may be up by now", s.Requests("list"), err)
	}
}

// A patch may be applied although its answer was lost. The conflict of the retry then means
// success, unless another writer has changed the object.
func TestPatchWithoutAnAnswer(t *testing.T) {
	pause := map[string]any{"metadata": map[string]any{
		"resourceVersion": "1", "annotations": map[string]any{"crossplane.io/paused": "true", "velero.crossplane.x-k8s.io/hold": nil}, "labels": map[string]any{"gone": nil},
	}, "spec": map[string]any{"names": []any{"a"}}}
	names, kept := xptest.Field([]any{"a"}, "spec", "names"), xptest.Annotated("velero.crossplane.x-k8s.io/hold", "{}")
	paused := func(value string) xptest.Option { return xptest.Annotated("crossplane.io/paused", value) }
	type args struct {
		reason string
		// done are the changes of the object while the answer is lost.
		done []xptest.Option
		want bool
	}
	xptest.Each(t, map[string]args{
		"Done":   {reason: "The patch succeeded, and another writer has changed another field since.", want: true, done: []xptest.Option{paused("true"), names, xptest.SeenPaused()}},
		"Undone": {reason: "Another writer has changed the patched field.", done: []xptest.Option{paused("false"), names}},
		"Half":   {reason: "The patch removes an annotation, and the object still has it.", done: []xptest.Option{paused("true"), kept, names}},
	}, func(t *testing.T, tc args) {
		before := xptest.MR("b", kept)
		s := apiserver.NewServer(before)
		s.Before("patch", 1, func() { s.Put(apiserver.Buckets, xptest.With(xptest.MR("b", xptest.Version("1")), tc.done...)) })
		s.FailOn("patch", "*", 1, &url.Error{Op: "Patch", Err: io.EOF})
		after, err := withoutPauses(clusterOf(s)).Patch(t.Context(), before, pause)
		if tc.want && (err != nil || after.GetResourceVersion() != "2") || !tc.want && !apierrors.IsConflict(err) {
			t.Errorf("%s Got %v", tc.reason, err)
		}
	})
}

// The client determines the error of a broken connection, so these connections are real.
func TestBrokenConnections(t *testing.T) {
	gv := metav1.GroupVersionForDiscovery{GroupVersion: xptest.ManagedVersion, Version: "v1alpha1"}
	answers := map[string]any{
		"/api":                           metav1.APIVersions{Versions: []string{"v1"}},
		"/apis":                          metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "cloud.example.org", Versions: []metav1.GroupVersionForDiscovery{gv}, PreferredVersion: gv}}},
		"/apis/" + xptest.ManagedVersion: metav1.APIResourceList{GroupVersion: xptest.ManagedVersion, APIResources: []metav1.APIResource{{Name: "buckets", Kind: xptest.ManagedKind}}},
		"/apis/" + xptest.ManagedVersion + "/buckets/b": xptest.MR("b", xptest.UID("u")),
	}
	cases := map[string]struct {
		reason string
		fail   func(w http.ResponseWriter, r *http.Request, whole []byte)
	}{
		"Reset": {reason: "The connection is reset.", fail: func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			_ = conn.(*net.TCPConn).SetLinger(0) //nolint:forcetypeassert // The server uses plain HTTP.
			_ = conn.Close()
		}},
		"Closed": {reason: "The connection is closed.", fail: func(http.ResponseWriter, *http.Request, []byte) { panic(http.ErrAbortHandler) }},
		"Truncated": {reason: "The answer ends in the middle.", fail: func(w http.ResponseWriter, _ *http.Request, whole []byte) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(len(whole)))
			_, _ = w.Write(whole[:len(whole)/2])
		}},
		"Silent": {reason: "The API server does not answer before the timeout.", fail: func(_ http.ResponseWriter, r *http.Request, _ []byte) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}},
		"Unavailable": {reason: "A proxy in front of the API server answers with an error.", fail: func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			http.Error(w, "<html>Bad Gateway</html>", http.StatusBadGateway)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			calls := map[string]int{}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				whole, _ := json.Marshal(answers[r.URL.Path])
				mu.Lock()
				calls[r.URL.Path]++
				fails := calls[r.URL.Path] == 1
				mu.Unlock()
				if fails {
					tc.fail(w, r, whole)

					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(whole)
			}))
			defer s.Close()
			c, err := NewForConfig(&rest.Config{Host: s.URL, Timeout: time.Second / 2})
			xptest.Must(t, err)
			u, err := withoutPauses(c).Owner(t.Context(), metav1.OwnerReference{APIVersion: xptest.ManagedVersion, Kind: xptest.ManagedKind, Name: "b"}, "")
			if err != nil || u.GetUID() != "u" {
				t.Errorf("%s Got %v", tc.reason, err)
			}
			for path := range answers {
				if n := calls[path]; n < 2 || path != "/api" && n > 2 {
					t.Errorf("%s %s must be requested twice, since the first request fails: %v", tc.reason, path, n)
				}
			}
		})
	}
}
