package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var errDown = errors.New("the API server is on holiday")

func TestResource(t *testing.T) {
	s := newServer()
	c := s.cluster()
	for range 3 {
		gvr, namespaced, err := c.Resource(schema.FromAPIVersionAndKind(xptest.LegacyVersion, xptest.ClaimKind))
		if err != nil || gvr != orderclaims || !namespaced {
			t.Errorf("OrderClaim: got %v, %v, %v", gvr, namespaced, err)
		}
	}
	gvr, namespaced, err := c.Resource(schema.FromAPIVersionAndKind(xptest.LegacyVersion, xptest.LegacyKind))
	if err != nil || gvr != xorders || namespaced {
		t.Errorf("a subresource has the kind of its resource and is another resource: got %v, %v, %v", gvr, namespaced, err)
	}
	if diff := cmp.Diff([]string{xptest.LegacyVersion}, s.kindReads); diff != "" {
		t.Errorf("one request for each group and version is enough: -want, +requested:\n%s", diff)
	}
}

func TestResourceThatComesLater(t *testing.T) {
	s := newServer()
	c := s.cluster()
	now := time.Now()
	c.now = func() time.Time { return now }
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "new.org", Version: "v1", Kind: "New"}, {Group: "example.org", Version: "v1alpha1", Kind: "New"},
	} {
		if _, _, err := c.Resource(gvk); !meta.IsNoMatchError(err) {
			t.Errorf("%s is not served yet; got error %v", gvk, err)
		}
		gv := gvk.GroupVersion().String()
		s.kinds[gv] = append(s.kinds[gv], metav1.APIResource{Name: "news", Kind: "New"})
		now = now.Add(unservedTTL)
		if gvr, _, err := c.Resource(gvk); err != nil || gvr.Resource != "news" {
			t.Errorf("a restore can bring a CRD; got %v, %v", gvr, err)
		}
	}
}

// A tenant's references can name any number of kinds that don't exist, and a backup or restore
// reads them again and again.
func TestResourceOfUnknownKinds(t *testing.T) {
	cases := map[string]struct {
		reason string
		kind   func(n int) schema.GroupVersionKind
		want   []string
	}{
		"Groups": {
			reason: "The list of groups lacks the group, so no further request is needed.",
			kind: func(n int) schema.GroupVersionKind {
				return schema.GroupVersionKind{Group: fmt.Sprintf("g%d.org", n), Version: "v1", Kind: "K"}
			},
		},
		"Versions": {
			reason: "The list of groups lacks the version, so no further request is needed.",
			kind: func(n int) schema.GroupVersionKind {
				return schema.GroupVersionKind{Group: "example.org", Version: fmt.Sprint("v", n), Kind: "K"}
			},
		},
		"Core": {
			reason: "The core group has one version.",
			kind: func(n int) schema.GroupVersionKind {
				return schema.GroupVersionKind{Version: fmt.Sprint("v", n+2), Kind: "K"}
			},
		},
		"Kinds": {
			reason: "The list of a group and version has all its kinds.", want: []string{xptest.LegacyVersion},
			kind: func(n int) schema.GroupVersionKind {
				return schema.FromAPIVersionAndKind(xptest.LegacyVersion, fmt.Sprint("K", n))
			},
		},
		"CoreKinds": {
			reason: "The list of the core group has all its kinds.", want: []string{"v1"},
			kind: func(n int) schema.GroupVersionKind {
				return schema.GroupVersionKind{Version: "v1", Kind: fmt.Sprint("K", n)}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			c := s.cluster()
			now := time.Now()
			c.now = func() time.Time { return now }
			for n := range 1000 {
				if _, _, err := c.Resource(tc.kind(n)); !meta.IsNoMatchError(err) {
					t.Fatalf("no group serves %v; got error %v", tc.kind(n), err)
				}
			}
			if diff := cmp.Diff(tc.want, s.kindReads); s.groupReads > 1 || diff != "" {
				t.Errorf("%s\nrequested the groups %d times; -want, +requested:\n%s", tc.reason, s.groupReads, diff)
			}
			if len(c.silent) > 0 || len(c.kinds) > len(tc.want) {
				t.Errorf("the cache grows with the names in the backup: %v, %v", c.silent, c.kinds)
			}
			now = now.Add(unservedTTL)
			for n := range 1000 {
				_, _, _ = c.Resource(tc.kind(n)) // The number of requests matters.
			}
			if s.groupReads > 2 || len(s.kindReads) > 2*len(tc.want) {
				t.Errorf("%s\nit must ask once more later; requested the groups %d times, and %v", tc.reason, s.groupReads, s.kindReads)
			}
		})
	}
}

// A group is not missing because its server does not answer.
func TestResourceOfAGroupThatDoesNotAnswer(t *testing.T) {
	s := newServer()
	s.undiscoverable = map[string]error{xptest.ManagedVersion: errDown}
	c := s.cluster()
	gvk := schema.FromAPIVersionAndKind(xptest.ManagedVersion, xptest.ManagedKind)
	for range 2 {
		if _, _, err := c.Resource(gvk); !errors.Is(err, errDown) || meta.IsNoMatchError(err) {
			t.Errorf("got error %v", err)
		}
	}
	s.undiscoverable = nil
	if _, _, err := c.Resource(gvk); err != nil {
		t.Errorf("a failure must not be cached; got %v", err)
	}
}

func TestResourceWhileTheServerIsDown(t *testing.T) {
	s := newServer()
	s.discoveryErr = errDown
	c := s.cluster()
	gvk := schema.FromAPIVersionAndKind(xptest.LegacyVersion, xptest.LegacyKind)
	if _, _, err := c.Resource(gvk); !errors.Is(err, errDown) || meta.IsNoMatchError(err) {
		t.Errorf("a failed discovery must differ from a kind that is not served; got error %v", err)
	}
	s.discoveryErr = nil
	if _, _, err := c.Resource(gvk); err != nil {
		t.Errorf("a failure must not be cached; got %v", err)
	}
}

// A tenant can write any API version into a ref. An error would stop the adoption of all observed
// XRs, and the version must not change the path of a request.
func TestResourceOfMalformedAPIVersions(t *testing.T) {
	s := newServer()
	c := s.cluster()
	for _, apiVersion := range []string{
		"", "a/b/c", ".", "..", "../metrics", "a/..", "../..", "a?b/v1", "a b/v1", "%2e%2e/v1",
		"A/v1", "a/V 1", "/", "/v1", "v1/", "\x00",
	} {
		if _, _, err := c.Resource(schema.FromAPIVersionAndKind(apiVersion, "K")); !meta.IsNoMatchError(err) {
			t.Errorf("no group serves %q; got error %v", apiVersion, err)
		}
	}
	for _, asked := range s.kindReads {
		if strings.Contains(asked, "..") || asked == "." || asked == "" {
			t.Errorf("requested %q", asked)
		}
	}
}

func TestServed(t *testing.T) {
	s := newServer()
	legacy := xp.UsageKinds()[2]
	s.kinds[legacy.Group+"/v1beta1"] = []metav1.APIResource{{Name: "usages", Kind: legacy.Kind}}
	c := s.cluster()
	bucket := gvkOf(xptest.MR("b"))
	for range 3 {
		if gvk, ok, err := c.Served(bucket.GroupKind()); err != nil || !ok || gvk != bucket {
			t.Errorf("a kind is served in the preferred version of its group; got %v, %v, %v", gvk, ok, err)
		}
	}
	if gvk, ok, err := c.Served(legacy); err != nil || !ok || gvk.Version != "v1beta1" {
		t.Errorf("a kind is served in another version if the preferred one lacks it; got %v, %v, %v", gvk, ok, err)
	}
	for _, gk := range []schema.GroupKind{{Group: bucket.Group, Kind: "ProviderConfig"}, {Group: "gone.org", Kind: "Gone"}} {
		if _, ok, err := c.Served(gk); ok || err != nil {
			t.Errorf("%s is not served; got %v, %v", gk, ok, err)
		}
	}
	if s.groupReads != 1 {
		t.Errorf("each MR of a backup asks for its kind, but the groups stay the same; requested them %d times", s.groupReads)
	}
	s.discoveryErr = errDown
	if _, ok, err := c.Served(schema.GroupKind{Group: "example.org", Kind: "XOrder"}); ok || !errors.Is(err, errDown) {
		t.Errorf("a failed discovery must differ from a kind that is not served; got %v, %v", ok, err)
	}
	c = s.cluster()
	if _, ok, err := c.Served(bucket.GroupKind()); ok || !errors.Is(err, errDown) {
		t.Errorf("a failed list of groups must differ too; got %v, %v", ok, err)
	}
	s.discoveryErr = nil
	if _, ok, err := c.Served(bucket.GroupKind()); !ok || err != nil {
		t.Errorf("a failure must not be cached; got %v, %v", ok, err)
	}
	delete(s.kinds, xptest.LegacyVersion)
	if _, ok, err := c.Served(schema.GroupKind{Group: "example.org", Kind: "XOrder"}); ok || err != nil {
		t.Errorf("a group that went away serves nothing; got %v, %v", ok, err)
	}
}

func TestConnect(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", config)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := Connect("", ""); err == nil {
		t.Error("outside of a cluster and without KUBECONFIG there is no API server")
	}
	for name, tc := range map[string]struct{ cluster, want string }{
		"Fine":   {cluster: "server: https://127.0.0.1:1"},
		"Broken": {cluster: "server: https://127.0.0.1:1, certificate-authority-data: eA==", want: "cannot make a client for the API server: "},
	} {
		document := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {` + tc.cluster + `}}]}`
		if err := os.WriteFile(config, []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Connect("", "")
		if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) || (c == nil) != (err != nil) {
			t.Errorf("%s: got %v, error %v, want %q", name, c, err, tc.want)
		}
	}
}

func TestPatchErrors(t *testing.T) {
	s := newServer(xptest.XR("x"))
	if _, err := s.cluster().Patch(context.Background(), xptest.Object("gone.org/v1", "Gone", "", "g"), map[string]any{}); !meta.IsNoMatchError(err) {
		t.Errorf("an object of a kind that is not served can't be patched; got error %v", err)
	}
	s.failOn("patch", "xorders", 1, errDown)
	_, err := s.cluster().Patch(context.Background(), xptest.XR("x"), map[string]any{})
	if !errors.Is(err, errDown) || !strings.HasPrefix(err.Error(), "cannot patch XOrder x: ") {
		t.Errorf("got error %v", err)
	}
}

func TestGet(t *testing.T) {
	x, claim := xptest.XR("x"), xptest.Claim("o")
	c := newServer(x, claim).cluster()
	cases := map[string]struct {
		reason string
		ref    xp.Ref
		want   *unstructured.Unstructured
		check  func(error) bool
	}{
		"Cluster":    {reason: "The cluster-scoped object exists.", ref: xp.RefTo(x), want: x},
		"Namespaced": {reason: "The namespaced object exists.", ref: xp.RefTo(claim), want: claim},
		"Reaching": {
			reason: "A ref to a cluster-scoped object can have a namespace, which has no effect.",
			ref:    xp.Ref{APIVersion: xptest.LegacyVersion, Kind: xptest.LegacyKind, Namespace: "team-a", Name: "x"}, want: x,
		},
		"Absent":    {reason: "The object does not exist.", ref: xp.RefTo(xptest.XR("y")), check: apierrors.IsNotFound},
		"Elsewhere": {reason: "The object does not exist in this namespace.", ref: xp.RefTo(xptest.Claim("o", xptest.In("team-b"))), check: apierrors.IsNotFound},
		"Unserved":  {reason: "The kind is not served.", ref: xp.Ref{APIVersion: "v1", Kind: "Nothing", Name: "n"}, check: meta.IsNoMatchError},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := c.Get(context.Background(), tc.ref)
			if tc.check != nil {
				if !tc.check(err) {
					t.Errorf("%s\ngot %v, error %v", tc.reason, got, err)
				}

				return
			}
			if diff := cmp.Diff(xptest.With(tc.want, xptest.Version("1")), got); err != nil || diff != "" {
				t.Errorf("%s\nerror %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

// Now needs the right to list a kind, and not the right to get it.
func TestNow(t *testing.T) {
	s := newAPIServer(t)
	s.put(t, xptest.MR("a"), xptest.MR("b"))
	s.refused["get buckets"] = true
	c := s.connect(t)
	u, err := c.Now(t.Context(), xp.RefTo(xptest.MR("b")))
	if err != nil || u.GetName() != "b" || u.GetResourceVersion() == "" {
		t.Errorf("got %v, error %v", u, err)
	}
	s.put(t, xptest.XR("x"))
	reaching := xp.RefTo(xptest.XR("x"))
	reaching.Namespace = "team-a"
	if u, err := c.Now(t.Context(), reaching); err != nil || u.GetName() != "x" {
		t.Errorf("a cluster-scoped object: %v, error %v", u, err)
	}
	if _, err := c.Now(t.Context(), xp.RefTo(xptest.MR("c"))); !apierrors.IsNotFound(err) {
		t.Errorf("an object that does not exist: %v", err)
	}
	if _, err := c.Now(t.Context(), xp.Ref{APIVersion: "nobody.example.org/v1", Kind: "Thing", Name: "t"}); !meta.IsNoMatchError(err) {
		t.Errorf("an object of a kind that is not served: %v", err)
	}
	if asked := s.takeRequests(); asked["list one of buckets"] != 2 || asked["list buckets"] != 0 {
		t.Errorf("it must request one object: %v", asked)
	}
}

func TestWarn(t *testing.T) {
	s := newServer()
	for namespace, u := range map[string]*unstructured.Unstructured{"default": xptest.XR("x"), "team-a": xptest.Claim("o")} {
		if err := s.cluster().Warn(context.Background(), u, "Why", "because"); err != nil {
			t.Fatal(err)
		}
		list, err := s.Resource(events).Namespace(namespace).List(context.Background(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("%v in %s: %v", list, namespace, err)
		}
		want := map[string]any{
			"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "namespace": u.GetNamespace(), "name": u.GetName(), "uid": string(u.GetUID()),
		}
		if diff := cmp.Diff(any(want), list.Items[0].Object["involvedObject"]); diff != "" {
			t.Errorf("the Event must reference the object: -want, +got:\n%s", diff)
		}
	}
	s.failOn("create", "events", 1, errDown)
	if err := s.cluster().Warn(context.Background(), xptest.XR("x"), "Why", "because"); !errors.Is(err, errDown) {
		t.Errorf("got error %v", err)
	}
}
