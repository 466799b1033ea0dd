package live

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A patch may be applied although its answer was lost. The conflict of the retry then means
// success, unless another writer has changed the object.
func TestPatchWithoutAnAnswer(t *testing.T) {
	pause := map[string]any{"metadata": map[string]any{
		"resourceVersion": "1", "annotations": map[string]any{"crossplane.io/paused": "true", "velero.crossplane.x-k8s.io/hold": nil}, "labels": map[string]any{"gone": nil},
	}, "spec": map[string]any{"names": []any{"a"}}}
	cases := map[string]struct {
		reason string
		// done are the changes of the object while the answer is lost.
		done []xptest.Option
		want bool
	}{
		"Done": {
			reason: "The object has the patched state, so the patch succeeded.", want: true,
			done: []xptest.Option{xptest.Annotated("crossplane.io/paused", "true"), xptest.Field([]any{"a"}, "spec", "names")},
		},
		"DoneAndMore": {
			reason: "The patch succeeded, and another writer has changed another field since.", want: true,
			done: []xptest.Option{
				xptest.Annotated("crossplane.io/paused", "true"), xptest.Field([]any{"a"}, "spec", "names"), xptest.Synced("False", "ReconcilePaused", ""),
			},
		},
		"Undone": {reason: "Another writer has changed the patched field.", done: []xptest.Option{xptest.Annotated("crossplane.io/paused", "false")}},
		"Half": {reason: "The patch removes an annotation, and the object still has it.", done: []xptest.Option{
			xptest.Annotated("crossplane.io/paused", "true"), xptest.Annotated("velero.crossplane.x-k8s.io/hold", "{}"), xptest.Field([]any{"a"}, "spec", "names"),
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := xptest.MR("b", xptest.Annotated("velero.crossplane.x-k8s.io/hold", "{}"))
			s := newServer(before)
			unanswered := true
			s.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				if !unanswered {
					return false, nil, nil
				}
				unanswered = false
				s.put(buckets, xptest.With(xptest.MR("b", xptest.Version("1")), tc.done...))

				return true, nil, &url.Error{Op: "Patch", Err: io.EOF}
			})
			after, err := withoutPauses(s.cluster()).Patch(t.Context(), before, pause)
			if tc.want && (err != nil || after.GetResourceVersion() != "2") || !tc.want && !apierrors.IsConflict(err) {
				t.Errorf("%s Got %v", tc.reason, err)
			}
		})
	}
}

// The client determines the error of a broken connection, so these connections are real.
func TestBrokenConnections(t *testing.T) {
	gv := metav1.GroupVersionForDiscovery{GroupVersion: xptest.ManagedVersion, Version: "v1alpha1"}
	answers := map[string]any{
		"/api":  metav1.APIVersions{Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "cloud.example.org", Versions: []metav1.GroupVersionForDiscovery{gv}, PreferredVersion: gv}}},
		"/apis/" + xptest.ManagedVersion: metav1.APIResourceList{
			GroupVersion: xptest.ManagedVersion, APIResources: []metav1.APIResource{{Name: "buckets", Kind: xptest.ManagedKind}},
		},
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
			var calls sync.Map
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				whole, err := json.Marshal(answers[r.URL.Path])
				if err != nil {
					panic(err)
				}
				n, _ := calls.LoadOrStore(r.URL.Path, &atomic.Int64{})
				if n.(*atomic.Int64).Add(1) == 1 { //nolint:forcetypeassert // The map has only counters.
					tc.fail(w, r, whole)

					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(whole)
			}))
			defer s.Close()
			c, err := connectTo(&rest.Config{Host: s.URL, Timeout: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			u, err := withoutPauses(c).Owner(t.Context(), metav1.OwnerReference{APIVersion: xptest.ManagedVersion, Kind: xptest.ManagedKind, Name: "b"}, "")
			if err != nil || u.GetUID() != "u" {
				t.Errorf("%s Got %v", tc.reason, err)
			}
			for path := range answers {
				n, ok := calls.Load(path)
				if !ok || n.(*atomic.Int64).Load() < 2 || path != "/api" && n.(*atomic.Int64).Load() > 2 { //nolint:forcetypeassert // The map has only counters.
					t.Errorf("%s %s must be requested twice, since the first request fails: %v", tc.reason, path, n)
				}
			}
		})
	}
}
