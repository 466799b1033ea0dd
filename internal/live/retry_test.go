package live

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
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
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// failingServer is a server that fails for a while.
type failingServer struct {
	*server

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

	return f.server.ServerGroups()
}

func (f *failingServer) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	if f.fails() {
		return nil, f.err
	}

	return f.server.ServerResourcesForGroupVersion(gv)
}

// tries is how often a Cluster of these tests tries a request, without pauses.
const tries = 4

func withoutPauses(c *Cluster) *Cluster {
	c.backoff = wait.Backoff{Duration: time.Microsecond, Steps: tries - 1}

	return c
}

func newFailingServer(err error, objects ...*unstructured.Unstructured) (*failingServer, *Cluster) {
	f := &failingServer{server: newServer(objects...), err: err}
	f.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return f.fails(), nil, f.err })

	return f, withoutPauses(NewCluster(f, f))
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
	mr, revision := xptest.MR("b", xptest.ControlledBy(x)), xptest.Revision(xptest.RevisionName, x)
	xr := restored(xptest.XR("x", xptest.Refs(mr)))
	settings := xptest.Object("v1", "ConfigMap", "velero", "settings", xptest.Labelled("velero.io/plugin-config", ""), xptest.Labelled("velero.crossplane.io/settings", ""),
		xptest.Field(map[string]any{"clone": "new"}, "data"))
	missing := xptest.XR("missing")
	owner := func(u *unstructured.Unstructured) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName()}
	}
	cases := map[string]struct {
		reason string
		ask    func(t *testing.T, c *Cluster) (any, error)
		want   any
	}{
		"Owner": {
			reason: "An owner that counts as gone is dropped, and its objects are orphaned.",
			ask: func(t *testing.T, c *Cluster) (any, error) {
				t.Helper()
				u, err := c.Owner(t.Context(), owner(x), "")
				if err != nil {
					return nil, err
				}

				return string(u.GetUID()), nil
			},
			want: string(x.GetUID()),
		},
		"OwnerThatIsGone": {
			reason: "A retry must not hide that the owner is gone.",
			ask: func(t *testing.T, c *Cluster) (any, error) {
				t.Helper()
				_, err := c.Owner(t.Context(), owner(missing), "")
				if apierrors.IsNotFound(err) {
					return "gone", nil
				}

				return nil, err
			},
			want: "gone",
		},
		"Exists": {
			reason: "A restore must not overwrite a live object.",
			ask:    func(t *testing.T, c *Cluster) (any, error) { t.Helper(); return c.Exists(t.Context(), xp.RefTo(mr)) },
			want:   true,
		},
		"Deleting": {
			reason: "The check uses the same list.",
			ask:    func(t *testing.T, c *Cluster) (any, error) { t.Helper(); return c.Deleting(t.Context(), xp.RefTo(mr)) },
			want:   false,
		},
		"List": {
			reason: "A backup includes the objects of a list.",
			ask: func(t *testing.T, c *Cluster) (any, error) {
				t.Helper()
				all, err := c.List(t.Context(), mr.GroupVersionKind(), "", metav1.ListOptions{})

				return len(all), err
			},
			want: 1,
		},
		"Read": {
			reason: "The release command reads its results.",
			ask: func(t *testing.T, c *Cluster) (any, error) {
				t.Helper()
				all, err := c.Read(t.Context(), []xp.Ref{xp.RefTo(mr)}, "")

				return len(all), err
			},
			want: 1,
		},
		"Settings": {
			reason: "Settings that can't be read change the result of a restore.",
			ask:    func(t *testing.T, c *Cluster) (any, error) { t.Helper(); return c.Settings(t.Context(), "velero") },
			want:   map[string]string{"clone": "new"},
		},
		"Resource": {
			reason: "The plugin looks up the resource of each item that must come first.",
			ask: func(t *testing.T, c *Cluster) (any, error) {
				t.Helper()
				gvr, _, err := c.Resource(mr.GroupVersionKind())

				return gvr.Resource, err
			},
			want: "buckets",
		},
		"Served": {
			reason: "A backup lists the served kinds.",
			ask: func(t *testing.T, c *Cluster) (any, error) {
				t.Helper()
				_, ok, err := c.Served(mr.GroupVersionKind().GroupKind())

				return ok, err
			},
			want: true,
		},
		"Observe": {
			reason: "A poll that observes nothing would find no holds.",
			ask: func(t *testing.T, c *Cluster) (any, error) {
				t.Helper()
				w, err := c.Observe(t.Context(), adoption.Unverified, selector, []xp.Ref{xp.RefTo(xr)})
				if err != nil {
					return nil, err
				}

				return w.Get(xp.RefTo(xr)) != nil && w.Get(xp.RefTo(mr)) != nil, nil
			},
			want: true,
		},
		"Event": {
			reason: "An Event must report the result of a hold.",
			ask: func(t *testing.T, c *Cluster) (any, error) {
				t.Helper()
				return nil, c.Warn(t.Context(), xr, "Why", "because")
			},
		},
	}
	for name, tc := range cases {
		for fault, err := range transientErrors() {
			t.Run(name+"/"+fault, func(t *testing.T) {
				f, c := newFailingServer(err, xr, mr, revision, settings)
				f.left = 2
				got, err := tc.ask(t, c)
				if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
					t.Errorf("%s while it fails a few times: %v, -want, +got:\n%s", tc.reason, err, diff)
				}

				f, c = newFailingServer(f.err, xr, mr, revision, settings)
				f.left = 1 << 20
				_, err = tc.ask(t, c)
				if err == nil || isUnserved(err) || !errors.Is(err, f.err) || name != "Event" && strings.Count(err.Error(), "try again when") != 1 {
					t.Errorf("%s while it fails: %v", tc.reason, err)
				}
				f.left = 0
				got, err = tc.ask(t, c)
				if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
					t.Errorf("%s when it no longer fails: %v, -want, +got:\n%s", tc.reason, err, diff)
				}
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
	if diff := cmp.Diff([]int{tries, 1, 1, tries}, got); diff != "" {
		t.Errorf("the requests of a first failure, a second one, a success and a new failure: -want, +got:\n%s", diff)
	}
}

// A refusal is not retried.
func TestAnswersAreFinal(t *testing.T) {
	cases := map[string]error{
		"NotFound":  apierrors.NewNotFound(buckets.GroupResource(), "b"),
		"Forbidden": apierrors.NewForbidden(buckets.GroupResource(), "b", errors.New("no")),
		"Conflict":  apierrors.NewConflict(buckets.GroupResource(), "b", errors.New("it has changed")),
		"Invalid":   apierrors.NewBadRequest("no"),
		"Refused":   apierrors.NewApplyConflict(nil, "no"),
		"Another":   errDown,
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			n := 0
			err := withoutPauses(newServer().cluster()).withRetry(t.Context().Done(), apiServerName, func() error { n++; return want })
			if n != 1 || err != want { //nolint:errorlint // It must be the same error.
				t.Errorf("requested %d times: %v", n, err)
			}
		})
	}
}
