package cluster

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

func TestResource(t *testing.T) {
	s := apiserver.NewServer()
	c := clusterOf(s)
	for kind, want := range map[string]schema.GroupVersionResource{xptest.ClaimKind: apiserver.OrderClaims, xptest.LegacyKind: apiserver.XOrders} {
		gvr, namespaced, err := c.Resource(schema.FromAPIVersionAndKind(xptest.LegacyVersion, kind))
		if err != nil || gvr != want || namespaced != (want == apiserver.OrderClaims) || len(s.KindReads) != 1 {
			t.Errorf("one request must find a kind, which a subresource has too; %s: got %v, %v, %v, and requested %v", kind, gvr, namespaced, err, s.KindReads)
		}
	}
}

// A tenant's references can name any number of kinds that don't exist, and a backup or restore
// reads them again and again. It can bring their CRDs too.
func TestResourceOfUnknownKinds(t *testing.T) {
	type args struct {
		reason, apiVersion, kind string
		want                     []string
	}
	xptest.Each(t, map[string]args{
		"Groups":    {reason: "The list of groups lacks the group, so no further request is needed.", apiVersion: "g%d.org/v1", kind: "K"},
		"Versions":  {reason: "The list of groups lacks the version, so no further request is needed.", apiVersion: "example.org/v%d", kind: "K"},
		"Kinds":     {reason: "The list of a group and version has all its kinds.", apiVersion: xptest.LegacyVersion, kind: "K%d", want: []string{xptest.LegacyVersion}},
		"Core":      {reason: "The core group has one version.", apiVersion: "v%d", kind: "K"},
		"CoreKinds": {reason: "The list of the core group has all its kinds.", apiVersion: "v1", kind: "K%d", want: []string{"v1"}},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewServer()
		c := clusterOf(s)
		kind := func(n int) schema.GroupVersionKind {
			return schema.FromAPIVersionAndKind(strings.ReplaceAll(tc.apiVersion, "%d", strconv.Itoa(n)), strings.ReplaceAll(tc.kind, "%d", strconv.Itoa(n)))
		}
		for reads := 1; reads <= 2; reads++ {
			for n := range 1000 {
				if _, _, err := c.Resource(kind(n + 2)); !meta.IsNoMatchError(err) {
					t.Fatalf("no group serves %v; got error %v", kind(n+2), err)
				}
			}
			if s.GroupReads > reads || len(s.KindReads) != reads*len(tc.want) || !slices.Equal(slices.Compact(s.KindReads), tc.want) {
				t.Errorf("%s\nrequested the groups %d times, and %v", tc.reason, s.GroupReads, s.KindReads)
			}
			if len(c.silent) > 0 || len(c.kinds) > len(tc.want) {
				t.Errorf("the cache grows with the names in the backup: %v, %v", c.silent, c.kinds)
			}
			time.Sleep(unservedTTL)
		}
		gvk := kind(2)
		s.Serve(gvk.GroupVersion().String(), metav1.APIResource{Name: "news", Kind: gvk.Kind})
		if gvr, _, err := c.Resource(gvk); err != nil || gvr.Resource != "news" {
			t.Errorf("a restore can bring a CRD; got %v, %v", gvr, err)
		}
	})
}

// A tenant can write any API version into a ref. An error would stop the adoption of all observed
// XRs, and the version must not change the path of a request.
func TestResourceOfMalformedAPIVersions(t *testing.T) {
	s := apiserver.NewServer()
	c := clusterOf(s)
	for _, apiVersion := range []string{
		"", "a/b/c", ".", "..", "../metrics", "a/..", "../..", "a?b/v1", "a b/v1", "%2e%2e/v1",
		"A/v1", "a/V 1", "/", "/v1", "v1/", "\x00",
	} {
		if _, _, err := c.Resource(schema.FromAPIVersionAndKind(apiVersion, "K")); !meta.IsNoMatchError(err) {
			t.Errorf("no group serves %q; got error %v", apiVersion, err)
		}
	}
	for _, asked := range s.KindReads {
		if strings.Contains(asked, "..") || asked == "." || asked == "" {
			t.Errorf("requested %q", asked)
		}
	}
}

func TestServed(t *testing.T) {
	legacy := xp.UsageKinds()[2]
	s := apiserver.NewServer().Serve(legacy.Group+"/v1beta1", metav1.APIResource{Name: "usages", Kind: legacy.Kind})
	c := clusterOf(s)
	bucket := xptest.MR("b").GroupVersionKind()
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
	if s.GroupReads != 1 {
		t.Errorf("each MR of a backup asks for its kind, but the groups stay the same; requested them %d times", s.GroupReads)
	}
	delete(s.Kinds, xptest.LegacyVersion)
	if _, ok, err := c.Served(schema.GroupKind{Group: "example.org", Kind: "XOrder"}); ok || err != nil {
		t.Errorf("a group that went away serves nothing; got %v, %v", ok, err)
	}
}

func TestDiscover(t *testing.T) {
	g := &apiserver.BulkServer{Server: apiserver.NewCategorized()}
	c := New(g, g)
	discover := func(categories ...string) int {
		t.Helper()
		xptest.Must(t, c.Discover())
		kinds, unread, err := c.Kinds(t.Context(), categories...)
		if err != nil || len(unread) > 0 {
			t.Fatal(unread, err)
		}

		return len(kinds)
	}
	if n := discover(xp.CategoryComposite, xp.CategoryClaim, xp.CategoryManaged); n != 3 || len(g.KindReads) > 0 {
		t.Errorf("one request must return all kinds; got %d, and requested %v", n, g.KindReads)
	}
	delete(g.Kinds, "example.org/v1alpha1")
	if n := discover(xp.CategoryComposite); n > 0 {
		t.Errorf("a discovery must replace the kinds that were known before; got %d", n)
	}
	g.Failing = map[schema.GroupVersion]error{{Group: "cloud.example.org", Version: "v1alpha1"}: apiserver.ErrDown}
	if n := discover(xp.CategoryManaged); n != 1 || len(g.KindReads) != 1 {
		t.Errorf("a failed group must be requested separately; got %d, and requested %v", n, g.KindReads)
	}
	g.Err = apiserver.ErrDown
	if err := c.Discover(); !errors.Is(err, apiserver.ErrDown) {
		t.Errorf("without an answer no kind is known; got %v", err)
	}
}

func TestWithoutShortNames(t *testing.T) {
	g := &apiserver.BulkServer{Server: apiserver.NewServer().Serve("short.example.org/v1", metav1.APIResource{Name: "things", Kind: "Thing", ShortNames: []string{"th"}})}
	c := New(g, g)
	got, err := c.WithoutShortNames([]string{"Th", "secrets", "*"})
	xptest.Must(t, err)
	xptest.Same(t, []string{"things.short.example.org", "secrets", "*"}, got, "a short name stands for a resource")
	g.Err = apiserver.ErrDown
	if _, err := c.WithoutShortNames([]string{"po"}); !errors.Is(err, apiserver.ErrDown) {
		t.Errorf("a server that does not answer is an error, got %v", err)
	}
	if got, err := c.WithoutShortNames(nil); got != nil || err != nil {
		t.Errorf("no filter needs no server, got %v, %v", got, err)
	}
}

func TestKinds(t *testing.T) {
	s := apiserver.NewServer()
	s.Kinds = map[string][]metav1.APIResource{
		"example.org/v1": {apiserver.Listable("xorders", "XOrder", "crossplane", "composite"), apiserver.Listable("orders", "Order", "claim")},
		"example.org/v1beta1": {
			apiserver.Listable("xorders", "XOrder", "composite"), apiserver.Listable("olds", "Old", "crossplane", "composite"), {Name: "xorders/status", Kind: "XOrder", Categories: []string{"composite"}},
		},
		"cloud.example.org/v1": {apiserver.Listable("buckets", "Bucket", "crossplane", "managed"), apiserver.Listable("configs", "ProviderConfig", "crossplane", "provider")},
	}
	c := clusterOf(s)
	kinds, unread, err := c.Kinds(t.Context(), xp.CategoryComposite, xp.CategoryManaged)
	if err != nil || len(unread) > 0 {
		t.Fatalf("got %v, %v", unread, err)
	}
	var got []string
	for _, gvk := range kinds {
		got = append(got, gvk.GroupVersion().String()+" "+gvk.Kind)
	}
	slices.Sort(got)
	xptest.Same(t, []string{"cloud.example.org/v1 Bucket", "example.org/v1 XOrder", "example.org/v1beta1 Old"}, got, "each kind must come once, in the preferred version of its group if that has it")
	for gvk, want := range map[schema.GroupVersionKind]struct{ reconciled, claim bool }{
		{Group: "example.org", Version: "v1", Kind: "XOrder"}:               {reconciled: true},
		{Group: "example.org", Version: "v1", Kind: "Order"}:                {reconciled: true, claim: true},
		{Group: "cloud.example.org", Version: "v1", Kind: "Bucket"}:         {reconciled: true},
		{Group: "cloud.example.org", Version: "v1", Kind: "ProviderConfig"}: {},
		{Group: "example.org", Version: "v1", Kind: "Missing"}:              {},
		{Group: "other.org", Version: "v1", Kind: "XOrder"}:                 {},
	} {
		reconciled, err := c.IsReconciled(t.Context(), gvk)
		claim, claimErr := c.IsClaimKind(gvk)
		if reconciled != want.reconciled || claim != want.claim || err != nil || claimErr != nil {
			t.Errorf("%s: reconciled %t, %v, claim %t, %v", gvk, reconciled, err, claim, claimErr)
		}
	}
}

func TestKindsReturnsUnreadGroups(t *testing.T) {
	s := apiserver.NewServer()
	c := clusterOf(s)
	if _, err := c.cachedGroups(); err != nil {
		t.Fatal(err)
	}
	s.DiscoveryErr = apiserver.ErrDown
	kinds, unread, err := c.Kinds(t.Context(), xp.CategoryManaged)
	if err != nil || len(kinds) > 0 || len(unread) != len(s.Kinds) {
		t.Errorf("a group without an answer must be in the list of unread ones: got %v, %v, %v", kinds, unread, err)
	}
}

func TestInactive(t *testing.T) {
	mr := xptest.MR("b")
	of := func(plural, kind string) *unstructured.Unstructured {
		return xptest.ManagedDefinition(plural, xptest.Object(xptest.ManagedVersion, kind, "", "g"), xptest.Inactive())
	}
	const bucket = "buckets.cloud.example.org"
	type args struct {
		reason   string
		unserved bool
		mrds     []*unstructured.Unstructured
		kind     string
		change   func(*apiserver.Server)
		want     string
		requests int
	}
	xptest.Each(t, map[string]args{
		"Served":    {reason: "A backup brought the CRD, but the MRD is inactive.", mrds: []*unstructured.Unstructured{of("buckets", "Bucket")}, kind: "Bucket", want: bucket, requests: 1},
		"Active":    {reason: "An active MRD needs no command.", mrds: []*unstructured.Unstructured{xptest.ManagedDefinition("buckets", mr)}, kind: "Bucket", requests: 1},
		"None":      {reason: "Not every kind has an MRD.", kind: "Bucket", requests: 1},
		"Unserved":  {reason: "Without a served kind the plugin guesses the resource name.", unserved: true, mrds: []*unstructured.Unstructured{of("alarms", "Alarm"), of("buckets", "Bucket")}, kind: "Bucket", want: bucket, requests: 1},
		"Irregular": {reason: "The plural of a kind can be irregular.", unserved: true, kind: "Index", mrds: []*unstructured.Unstructured{of("alarms", "Alarm"), of("indices", "Index")}, want: "indices.cloud.example.org", requests: 1},
		"OfAnotherGroup": {
			reason: "Another group can end with the same letters.", unserved: true, kind: "Bucket",
			mrds: []*unstructured.Unstructured{xptest.ManagedDefinition("buckets", xptest.Object("s3.cloud.example.org/v1", "Bucket", "", "b"), xptest.Inactive())},
		},
		"MadeUp":    {reason: "A kind that a tenant invented must cost no request.", unserved: true, kind: "Nothing"},
		"V1":        {reason: "Crossplane v1 has no MRDs.", kind: "Bucket", change: func(s *apiserver.Server) { delete(s.Kinds, apiserver.DefinitionsOfMRs.GroupVersion().String()) }},
		"Forbidden": {reason: "Without the right to read MRDs there is the general advice.", kind: "Bucket", change: func(s *apiserver.Server) { apiserver.Forbid(s, apiserver.DefinitionsOfMRs.Resource) }, mrds: []*unstructured.Unstructured{of("buckets", "Bucket")}, requests: 1},
	}, func(t *testing.T, tc args) {
		s, c := withMRDs(apiserver.NewServer(tc.mrds...), tc.unserved, tc.mrds)
		if tc.change != nil {
			tc.change(s)
		}
		a := &activations{cluster: c}
		for range 3 {
			if got := a.inactive(t.Context(), schema.GroupKind{Group: "cloud.example.org", Kind: tc.kind}); got != tc.want {
				t.Fatalf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		}
		if asked := s.Requests("list"); len(asked) != tc.requests {
			t.Errorf("%s\nasked %v", tc.reason, asked)
		}
	})
}

// withMRDs makes a server serve MRDs, and with unserved no kinds of theirs.
func withMRDs(s *apiserver.Server, unserved bool, mrds []*unstructured.Unstructured) (*apiserver.Server, *Cluster) {
	s.Serve(apiserver.DefinitionsOfMRs.GroupVersion().String(), metav1.APIResource{Name: apiserver.DefinitionsOfMRs.Resource, Kind: xp.KindManagedDefinition.Kind})
	if unserved {
		delete(s.Kinds, xptest.ManagedVersion)
	}
	c := clusterOf(s)
	c.metadataPages = metadataOf(mrds...)

	return s, c
}
