package live

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var errConversion = apierrors.NewInternalError(errors.New(
	`conversion webhook for cloud.example.org/v1alpha1, Kind=Bucket failed: Post "https://provider.crossplane-system.svc/convert": service "provider" not found`))

// An object that can't be converted is not missing, and blocks no other XR.
func TestObserveWhatCannotBeConverted(t *testing.T) {
	theirs := xptest.With(restored(xptest.Claim("theirs")), xptest.SeenPaused())
	bucket := restored(xptest.MR("b", xptest.PublishesTo("infra", "s")))
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	claimed := xptest.With(restored(xptest.XR("x", xptest.ClaimedBy(claim))), xptest.SeenPaused())
	other := restored(xptest.MR("other", xptest.PublishesTo("infra", "o")))
	cases := map[string]struct {
		reason, fails string
		mine, other   *unstructured.Unstructured
		want          string
	}{
		"MR":    {reason: "The adoption of an MR waits for the webhook.", fails: "buckets", mine: bucket, other: theirs, want: "Bucket b: it can't be read"},
		"XR":    {reason: "The adoption of an XR waits, since an XRD can have a webhook.", fails: "xorders", mine: claimed, other: other, want: "XOrder x: it can't be read"},
		"Claim": {reason: "An XR waits if its claim can't be read.", fails: "orderclaims", mine: claimed, other: other, want: "OrderClaim team-a/o: it can't be read"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(tc.mine, tc.other, restored(xptest.Revision(xptest.RevisionName, claimed)))
			s.refuseLists(tc.fails, false, errConversion)
			w, err := withoutPauses(s.cluster()).Observe(t.Context(), adoption.Unverified, selector, []xp.Ref{xp.RefTo(tc.mine), xp.RefTo(tc.other)})
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if !w.Has(xp.RefTo(tc.other)) {
				t.Errorf("%s\nthe other object was not observed", tc.reason)
			}
			plan := adoption.Next(w, xp.RefTo(tc.mine))
			if plan.Patch != nil || plan.Done || !plan.Failed.IsZero() || plan.Adopted > 0 || !slices.ContainsFunc(reason.Strings(plan.Waiting), func(s string) bool {
				return strings.Contains(s, tc.want) && strings.Contains(s, `service "provider" not found`)
			}) {
				t.Errorf("%s\ngot %+v, want a plan that waits: %s", tc.reason, plan, tc.want)
			}
		})
	}
}

// A failed conversion of one kind does not concern other kinds, and is not retried as long as a
// restart of the API server takes.
func TestConversionIsNotOutage(t *testing.T) {
	s := newServer(xptest.MR("b"))
	asked := 0
	s.PrependReactor("list", "buckets", func(clienttesting.Action) (bool, runtime.Object, error) {
		asked++

		return true, nil, errConversion
	})
	c := withoutPauses(s.cluster())
	for range 3 {
		if _, err := c.Exists(t.Context(), xp.RefTo(xptest.MR("b"))); !xp.IsConversion(err) {
			t.Errorf("got %v", err)
		}
	}
	if asked != fewRetries {
		t.Errorf("requested %d times; each item of a restore asks, and a webhook may need 30 s for no answer", asked)
	}
	if len(c.silent) > 0 {
		t.Errorf("the API server counts as silent: %v", c.silent)
	}
	began := time.Now()
	c.now = func() time.Time { return began.Add(unconvertedTTL) }
	if _, err := c.Named(t.Context(), xptest.MR("b").GroupVersionKind(), "b"); !xp.IsConversion(err) || asked != 2*fewRetries {
		t.Errorf("requested %d times, and got %v: the webhook may be up by now", asked, err)
	}
}

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func serverWithCRDs(objects ...*unstructured.Unstructured) *server {
	s := newServer(objects...)
	s.kinds["apiextensions.k8s.io/v1"] = []metav1.APIResource{{Name: crds.Resource, Kind: "CustomResourceDefinition"}}

	return s
}

func TestVersions(t *testing.T) {
	crd := xptest.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "buckets.cloud.example.org", xptest.JSON(
		`{"spec":{"group":"cloud.example.org","names":{"kind":"Bucket"},"versions":[{"name":"v1alpha1","served":true,"storage":true}]}}`))
	bucket := schema.GroupKind{Group: "cloud.example.org", Kind: "Bucket"}
	known := xp.Versions{Kind: bucket, Stored: "v1alpha1", Served: []string{"v1alpha1"}}
	forbidden := apierrors.NewForbidden(crds.GroupResource(), "", errors.New("not for you"))
	cases := map[string]struct {
		reason string
		kind   schema.GroupKind
		server func() *server
		want   xp.Versions
		asked  int
		fails  bool
	}{
		"CRD":      {reason: "One request is enough.", kind: bucket, server: func() *server { return serverWithCRDs(crd) }, want: known, asked: 1},
		"None":     {reason: "Another API server serves the kind.", kind: bucket, server: func() *server { return serverWithCRDs() }, asked: 1},
		"Unserved": {reason: "No API server serves the kind.", kind: schema.GroupKind{Group: "none.example.org", Kind: "X"}, server: func() *server { return serverWithCRDs() }},
		"Forbidden": {
			reason: "Without the right to read CRDs there are no versions.", kind: bucket, asked: 1,
			server: func() *server { s := serverWithCRDs(crd); s.failOn("get", crds.Resource, 9, forbidden); return s },
		},
		"Broken": {
			reason: "A failure must be requested again.", kind: bucket, asked: 2, fails: true,
			server: func() *server {
				s := serverWithCRDs(crd)
				s.failOn("get", crds.Resource, 9, errors.New("no"))

				return s
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.server()
			c := withoutPauses(s.cluster())
			for range 2 {
				got, err := c.Versions(t.Context(), tc.kind)
				if diff := cmp.Diff(tc.want, got); (err != nil) != tc.fails || diff != "" {
					t.Errorf("%s: error %v, -want, +got:\n%s", tc.reason, err, diff)
				}
			}
			if asked := len(s.requests("get")); asked != tc.asked {
				t.Errorf("%s: requested %d times, not %d", tc.reason, asked, tc.asked)
			}
		})
	}
}

func TestConvert(t *testing.T) {
	cases := map[string]struct {
		reason string
		with   error
		want   bool
	}{
		"Converted": {reason: "The API server accepted the create."},
		"Refused":   {reason: "The restore reports a refusal itself.", with: apierrors.NewForbidden(buckets.GroupResource(), "b", errors.New("a policy"))},
		"Exists":    {reason: "The object exists, so its conversion worked.", with: apierrors.NewAlreadyExists(buckets.GroupResource(), "b")},
		"Down":      {reason: "The webhook is down, so the restore would fail.", with: errConversion, want: true},
		"NoAnswer":  {reason: "A webhook that hangs counts as down.", with: context.DeadlineExceeded, want: true},
		"APIServer": {reason: "Another failure is not the webhook's.", with: apierrors.NewServiceUnavailable("etcd")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			s.PrependReactor("create", "buckets", func(a clienttesting.Action) (bool, runtime.Object, error) {
				create := a.(clienttesting.CreateActionImpl)    //nolint:forcetypeassert // The reactor gets only creates.
				u := create.Object.(*unstructured.Unstructured) //nolint:forcetypeassert // The client sends only such objects.
				if u.GetUID() != "" || u.GetResourceVersion() != "" || u.Object["status"] != nil || len(u.GetOwnerReferences()) > 0 {
					t.Errorf("an API server refuses to create %v", u.Object)
				}

				return true, u, tc.with
			})
			mr := xptest.MR("b", xptest.Version("5"), xptest.ControlledBy(xptest.XR("x")), xptest.JSON(`{"status":{"a":"b"}}`))
			if err := s.cluster().Convert(t.Context(), mr, ""); (err != nil) != tc.want {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}

// The fake client does not record the options of a create.
func TestConvertCreatesNothing(t *testing.T) {
	var query url.Values
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.Query()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","metadata":{"name":"b"}}`))
	}))
	defer api.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := NewCluster(client, newServer()).Convert(t.Context(), xptest.MR("b"), ""); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{metav1.DryRunAll}, query["dryRun"]); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
