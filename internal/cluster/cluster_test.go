package cluster

import (
	"errors"
	"net/http"
	"net/http/httptest"
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

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

// clusterOf returns a Cluster with its own caches, as a new process has.
func clusterOf(s *apiserver.Server) *Cluster { return New(s, s) }

func TestConnect(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", config)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := Connect("", ""); err == nil {
		t.Error("outside of a cluster and without KUBECONFIG there is no API server")
	}
	for cluster, want := range map[string]string{
		"server: https://127.0.0.1:1":                                   "",
		"server: https://127.0.0.1:1, certificate-authority-data: eA==": "cannot make a client for the API server: ",
	} {
		document := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {` + cluster + `}}]}`
		xptest.Must(t, os.WriteFile(config, []byte(document), 0o600))
		c, err := Connect("", "")
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) || (c == nil) != (err != nil) {
			t.Errorf("%s: got %v, error %v, want %q", cluster, c, err, want)
		}
	}
}

// A user can write any name and kind into a reference. An invalid one is not found: an error would
// keep the object with the reference out of a backup or restore.
func TestGet(t *testing.T) {
	x, claim := xptest.XR("x"), xptest.Claim("o")
	secret := func(namespace, name string) xp.Ref {
		return xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}
	}
	type args struct {
		reason string
		ref    xp.Ref
		want   *unstructured.Unstructured
		check  func(error) bool
		// asks is set if the API server is asked although there is no such object.
		asks bool
	}
	xptest.Each(t, map[string]args{
		"Cluster":    {reason: "The cluster-scoped object exists.", ref: xp.RefTo(x), want: x},
		"Namespaced": {reason: "The namespaced object exists.", ref: xp.RefTo(claim), want: claim},
		"Reaching":   {reason: "A ref to a cluster-scoped object can have a namespace.", ref: xp.RefTo(xptest.XR("x", xptest.In("team-a"))), want: x},
		"Absent":     {reason: "The object does not exist.", ref: xp.RefTo(xptest.XR("y")), check: apierrors.IsNotFound, asks: true},
		"Elsewhere":  {reason: "The object does not exist in this namespace.", ref: xp.RefTo(xptest.Claim("o", xptest.In("team-b"))), check: apierrors.IsNotFound, asks: true},
		"Unserved":   {reason: "The kind is not served.", ref: xp.Ref{APIVersion: "v1", Kind: "Nothing", Name: "n"}, check: meta.IsNoMatchError},
		"Path":       {reason: "A name can be a path.", ref: secret("team-a", "../team-b/password"), check: apierrors.IsNotFound},
		"Escape":     {reason: "A name can be escaped.", ref: secret("team-a", "a%2fb"), check: apierrors.IsNotFound},
		"NoName":     {reason: "Without a name all objects would be read.", ref: secret("team-a", ""), check: apierrors.IsNotFound},
		"Namespace":  {reason: "A namespace can be a path.", ref: secret("..", "s"), check: apierrors.IsNotFound},
		"Unread":     {reason: "A kind can be one that is only created.", ref: xp.Ref{APIVersion: "v1", Kind: "Binding", Namespace: "team-a", Name: "b"}, check: apierrors.IsNotFound, asks: true},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewServer(x, claim).Serve("v1", metav1.APIResource{Name: "bindings", Kind: "Binding", Namespaced: true})
		s.FailOn("get", "bindings", 9, apierrors.NewMethodNotSupported(apiserver.Buckets.GroupResource(), "get"))
		c := clusterOf(s)
		got, err := c.Get(t.Context(), tc.ref)
		if tc.check == nil {
			xptest.Must(t, err)
			xptest.Same(t, xptest.With(tc.want, xptest.Version("1")), got, tc.reason)

			return
		}
		_, ownerErr := c.Owner(t.Context(), metav1.OwnerReference{APIVersion: tc.ref.APIVersion, Kind: tc.ref.Kind, Name: tc.ref.Name}, tc.ref.Namespace)
		if !tc.check(err) || !tc.check(ownerErr) || len(s.Requests("get")) > 0 != tc.asks {
			t.Errorf("%s\ngot %v, error %v, of the owner %v, and requested %v", tc.reason, got, err, ownerErr, s.Requests("get"))
		}
	})
}

// Now needs the right to list a kind, and not the right to get it.
func TestNow(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		s := apiserver.NewTransport()
		s.Put(xptest.MR("a"), xptest.MR("b"), xptest.XR("x"))
		c, err := NewForConfig(s.Config())
		xptest.Must(t, err)
		for _, r := range []xp.Ref{xp.RefTo(xptest.MR("b")), xp.RefTo(xptest.XR("x", xptest.In("team-a")))} {
			if u, err := c.Now(t.Context(), r); err != nil || u.GetName() != r.Name || u.GetResourceVersion() == "" {
				t.Errorf("got %v, error %v", u, err)
			}
		}
		if _, err := c.Now(t.Context(), xp.RefTo(xptest.MR("c"))); !apierrors.IsNotFound(err) {
			t.Errorf("an object that does not exist: %v", err)
		}
		if _, err := c.Now(t.Context(), xp.Ref{APIVersion: "nobody.example.org/v1", Kind: "Thing", Name: "t"}); !meta.IsNoMatchError(err) {
			t.Errorf("an object of a kind that is not served: %v", err)
		}
		if asked := s.TakeRequests(); asked["list one of buckets"] != 2 || asked["list buckets"] != 0 || asked["get buckets"] != 0 {
			t.Errorf("it must request one object: %v", asked)
		}
	})
}

// The API server tells its time with each answer, in whole seconds.
func TestServerTime(t *testing.T) {
	own := time.Date(2026, 1, 2, 3, 4, 5, 600e6, time.UTC)
	for ahead, want := range map[time.Duration]time.Duration{
		0: 0, time.Second: 0, // A difference that small can't be measured.
		5 * time.Minute: 5 * time.Minute, -5 * time.Minute: -5 * time.Minute,
	} {
		c := New(nil, nil)
		c.clock.set(own.Add(ahead).Truncate(time.Second), own)
		if off := c.ServerTime(own).Sub(own) - want; off.Abs() > time.Second {
			t.Errorf("%s ahead: it is off by %s", ahead, off)
		}
	}
}

// The clock reads the Date of each answer, and keeps the last one when there is none.
func TestClockReadsAnswers(t *testing.T) {
	date := time.Now().Add(-5 * time.Minute).UTC().Format(http.TimeFormat)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = []string{date} }))
	defer s.Close()
	c := &clock{}
	for _, next := range []string{date, "", "yesterday"} {
		date = next
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, http.NoBody)
		xptest.Must(t, err)
		a, err := c.wrap(http.DefaultTransport).RoundTrip(r)
		xptest.Must(t, err)
		_ = a.Body.Close()
		if behind := time.Until(c.of(time.Now())); behind > -4*time.Minute || behind < -6*time.Minute {
			t.Errorf("after the Date %q the server's clock must be five minutes behind; got %s", next, behind)
		}
	}
}

func TestComposing(t *testing.T) {
	x, of := xptest.XR("x", xptest.Refs(xptest.MR("b"))), xptest.Field("other", "spec", "compositionRef", "name")
	s := apiserver.NewServer(x, xptest.XR("waits"), xptest.XR("others", xptest.Refs(xptest.MR("b")), of))
	got, err := clusterOf(s).Composing(t.Context(), hold.Unverified, x.GroupVersionKind(), xptest.CompositionName)
	xptest.Must(t, err)
	xptest.Same(t, []xp.Ref{xp.RefTo(x)}, got, "only an XR that has composed something can lose it")
	s.FailOn("list", "xorders", 1, apiserver.ErrDown)
	if _, err := clusterOf(s).Composing(t.Context(), hold.Unverified, x.GroupVersionKind(), xptest.CompositionName); !errors.Is(err, apiserver.ErrDown) {
		t.Errorf("without an answer it is unknown which XRs there are: %v", err)
	}
}

// A released object may be gone, with its kind, when its state is read. Without a namespace all
// others are read too.
func TestReadOfWhatIsGone(t *testing.T) {
	near, far, gone, goneFar := xptest.Claim("near"), xptest.Claim("far", xptest.In("team-b")), xptest.Claim("gone"), xptest.Claim("gone", xptest.In("team-b"))
	unserved, unservedFar := xptest.Object("gone.example.org/v1", "Gone", "team-a", "g"), xptest.Object("gone.example.org/v1", "Gone", "team-b", "g")
	for _, namespace := range []string{"", "team-a"} {
		all, err := clusterOf(apiserver.NewServer(near, far)).Read(t.Context(), apiserver.RefsOf([]*unstructured.Unstructured{unserved, unservedFar, near, far, gone, goneFar}), namespace)
		xptest.Must(t, err)
		if len(all) != 2 || all[xp.RefTo(near).ID()] == nil || all[xp.RefTo(far).ID()] == nil {
			t.Errorf("read from %q: got %v", namespace, all)
		}
	}
}

func TestSettings(t *testing.T) {
	type args struct {
		reason  string
		objects []*unstructured.Unstructured
		want    map[string]string
		err     string
	}
	xptest.Each(t, map[string]args{
		"None": {reason: "A user needs no settings."},
		"One":  {reason: "The ConfigMap has the settings.", objects: []*unstructured.Unstructured{apiserver.Settings("s")}, want: map[string]string{"clone": "new"}},
		"Others": {
			reason: "A ConfigMap of another plugin or of a tenant in another namespace has no settings.",
			objects: []*unstructured.Unstructured{
				apiserver.Settings("other", xptest.Without("metadata", "labels", "velero.crossplane.io/settings")),
				apiserver.Settings("unlabelled", xptest.Without("metadata", "labels", "velero.io/plugin-config")), apiserver.Settings("s", xptest.In("team-a")),
			},
		},
		"Two":       {reason: "The plugin would ignore one of two ConfigMaps.", objects: []*unstructured.Unstructured{apiserver.Settings("s"), apiserver.Settings("t")}, err: "cannot choose between the ConfigMaps s and t"},
		"Empty":     {reason: "An empty ConfigMap sets nothing.", objects: []*unstructured.Unstructured{apiserver.Settings("s", xptest.Without("data"))}},
		"Malformed": {reason: "Malformed settings must not count as the default.", objects: []*unstructured.Unstructured{apiserver.Settings("s", xptest.JSON(`{"data":{"clone":1}}`))}, err: "cannot read the ConfigMap velero/s: "},
	}, func(t *testing.T, tc args) {
		got, err := clusterOf(apiserver.NewServer(tc.objects...)).Settings(t.Context(), "velero")
		if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s %v\n-want, +got:\n%s", tc.reason, err, diff)
		}
	})
}

func TestRoots(t *testing.T) {
	const claimA, claimB, xrA, xrB = "OrderClaim team-a/a", "OrderClaim team-b/b", "XOrder xa", "XOrder xb"
	type args struct {
		reason string
		in     Places
		// forbidden is a resource that may not be listed.
		forbidden     string
		want          []string
		kinds, unread int
	}
	xptest.Each(t, map[string]args{
		"Everywhere": {reason: "The scope has claims and XRs, and nothing else.", want: []string{claimA, claimB, xrA, xrB}, kinds: 2},
		"Namespace":  {reason: "A scope of one namespace has no cluster-scoped objects.", in: Places{Namespaces: []string{"team-a"}}, want: []string{claimA}, kinds: 1},
		"Cluster":    {reason: "A name without a namespace asks for cluster-scoped objects only.", in: Places{Cluster: true}, want: []string{xrA, xrB}, kinds: 1},
		"Mixed":      {reason: "A scope can have namespaces and cluster-scoped objects.", in: Places{Namespaces: []string{"team-b"}, Cluster: true}, want: []string{claimB, xrA, xrB}, kinds: 2},
		"Forbidden":  {reason: "A kind without read access does not hide the others.", forbidden: "xorders", want: []string{claimA, claimB}, kinds: 1, unread: 1},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewCategorized(append(apiserver.ClaimedTree("team-a", "a"), apiserver.ClaimedTree("team-b", "b")...)...)
		if tc.forbidden != "" {
			apiserver.Forbid(s, tc.forbidden)
		}
		got, err := clusterOf(s).Roots(t.Context(), tc.in, "")
		xptest.Must(t, err)
		if diff := cmp.Diff(tc.want, apiserver.NamesOf(got.Objects)); diff != "" || got.Kinds != tc.kinds || len(got.Unread) != tc.unread {
			t.Errorf("%s\n-want, +got:\n%s%+v", tc.reason, diff, got)
		}
	})
}

func TestRestoreNamed(t *testing.T) {
	failed := xptest.Object("velero.io/v1", "Restore", "velero", "monday",
		xptest.JSON(`{"status":{"phase":"FailedValidation","errors":2,"warnings":3,"validationErrors":["no Backup","no Schedule"]}}`))
	other := xptest.Object("velero.io/v1", "Restore", "velero", "tuesday", xptest.JSON(`{"status":{"phase":"Failed","failureReason":"Velero was restarted"}}`))
	for name, want := range map[string]*report.Restore{
		"monday":    {Name: "velero/monday", Phase: "FailedValidation", Errors: 2, Warnings: 3, Failure: "no Backup; no Schedule"},
		"tuesday":   {Name: "velero/tuesday", Phase: "Failed", Failure: "Velero was restarted"},
		"wednesday": nil,
	} {
		got, err := clusterOf(apiserver.NewCategorized(failed, other)).RestoreNamed(t.Context(), "velero", name)
		xptest.Must(t, err)
		xptest.Same(t, want, got, name+": Velero lists what is wrong, or has one reason")
	}
}
