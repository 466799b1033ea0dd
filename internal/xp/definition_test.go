package xp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestDefinedKinds(t *testing.T) {
	const established = `{"type":"Established","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}`
	const offered = `{"type":"Offered","status":"True","lastTransitionTime":"2026-01-02T03:04:06+01:00"}`
	const spec = `"group":"example.org","names":{"kind":"XOrder"},"claimNames":{"kind":"OrderClaim"},"versions":[{"name":"v1","served":true}]`
	document := func(spec, conditions string) string {
		return `{"spec":{` + spec + `},"status":{"conditions":[` + conditions + `]}}`
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	xorder := xp.DefinedKind{GroupVersionKind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "XOrder"}, XRD: "x", Since: at}
	claim := xp.DefinedKind{GroupVersionKind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "OrderClaim"}, XRD: "x", Since: at.Add(time.Second - time.Hour)}
	xptest.Run(t, map[string]xptest.Row[string, []xp.DefinedKind]{
		"Both": {
			Reason: "Crossplane offers XRs and claims at different times.",
			In:     document(spec, established+","+offered), Want: []xp.DefinedKind{xorder, claim},
		},
		"NotOffered":     {Reason: "The XRD does not offer claims yet.", In: document(spec, established), Want: []xp.DefinedKind{xorder}},
		"NotEstablished": {Reason: "A kind that is not served has no objects.", In: document(spec, `{"type":"Established","status":"False"}`)},
		"ServedVersion": {
			Reason: "A client can't request a version that is not served.",
			In: document(`"group":"example.org","names":{"kind":"XOrder"},"versions":[7,{"name":"v0","served":false},{"name":"v1","served":true},{"name":"v2",
				"served":true}]`, established),
			Want: []xp.DefinedKind{xorder},
		},
		"NoTime": {
			Reason: "A condition without a time counts from the beginning.",
			In:     document(spec, `{"type":"Established","status":"True","lastTransitionTime":"yesterday"}`),
			Want:   []xp.DefinedKind{{GroupVersionKind: xorder.GroupVersionKind, XRD: "x"}},
		},
	}, func(in string) []xp.DefinedKind {
		return xp.DefinedKinds(xptest.XRD("x", xptest.JSON(in)))
	})
}

// FuzzDefinedKinds checks that any XRD is read without a panic, and that no kind is empty.
func FuzzDefinedKinds(f *testing.F) {
	f.Add(`{"spec":{"group":"g.org","names":{"kind":"X"},"claimNames":{"kind":"C"},"versions":[{"name":"v1","served":true}]},
		"status":{"conditions":[{"type":"Established","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"},{"type":"Offered","status":"True"}]}}`)
	f.Add(`{"spec":{"group":1,"names":{"kind":"X"},"versions":[1,null,{"name":1,"served":"true"}]},"status":{"conditions":[{"type":"Established","status":"True"}]}}`)
	f.Add(`{"spec":7,"status":[]}`)
	f.Fuzz(func(t *testing.T, document string) {
		var object map[string]any
		if json.Unmarshal([]byte(document), &object) != nil {
			t.Skip()
		}
		kinds := xp.DefinedKinds(decoded(t, object))
		if len(kinds) > 2 {
			t.Errorf("an XRD defines two kinds at most: %v", kinds)
		}
		for _, k := range kinds {
			if k.Kind == "" {
				t.Errorf("%v has no kind", k)
			}
		}
	})
}

func TestCreatedAs(t *testing.T) {
	const v1, v2 = xp.GroupAPIExtensions + "/v1", xp.GroupAPIExtensions + "/v2"
	xrd := func(version string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object(version, "CompositeResourceDefinition", "", "xorders.example.org", o...)
	}
	scope := func(scope string) xptest.Option { return xptest.Field(scope, "spec", "scope") }
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, string]{
		"Legacy":      {Reason: "v2 refuses the scope of an XRD with claims.", In: xrd(v2, scope(xp.ScopeLegacy)), Want: v1},
		"LegacyV1":    {Reason: "v1 accepts it.", In: xrd(v1, scope(xp.ScopeLegacy)), Want: v1},
		"Crossplane1": {Reason: "An XRD of Crossplane v1 has no scope.", In: xrd(v1), Want: v1},
		"Namespaced":  {Reason: "v2 accepts what it was made for.", In: xrd(v2, scope("Namespaced")), Want: v2},
		"Unscoped":    {Reason: "v2 makes it Namespaced.", In: xrd(v2), Want: v2},
		"Other":       {Reason: "Only XRDs have such versions.", In: xptest.XRV2("x", scope(xp.ScopeLegacy)), Want: xptest.ModernVersion},
	}, func(in *unstructured.Unstructured) string {
		return xp.CreatedAs(in).GroupVersion().String()
	})
}

func TestActivates(t *testing.T) {
	xptest.Run(t, map[string]xptest.Row[string, bool]{
		"Exact":     {Reason: "A name activates the MRD of exactly that name.", In: `["other","buckets.cloud.example.org"]`, Want: true},
		"Prefix":    {Reason: "A wildcard can stand for the start of a name.", In: `["*.cloud.example.org"]`, Want: true},
		"Another":   {Reason: "Another name does not activate the MRD.", In: `["queues.cloud.example.org"]`},
		"Malformed": {Reason: "A malformed pattern matches no MRD.", In: `["[",7]`},
	}, func(in string) bool {
		return xp.Activates(xptest.ActivationPolicy("p", xptest.JSON(`{"spec":{"activate":`+in+`}}`)), "buckets.cloud.example.org")
	})
}

func TestManagedDefinition(t *testing.T) {
	mrd := xptest.ManagedDefinition("buckets", xptest.MR("b"))
	if xp.IsActivationPolicy(mrd) || !xp.IsActivationPolicy(xptest.ActivationPolicy("p")) {
		t.Error("MRDs and policies differ by their kinds")
	}
	if diff := cmp.Diff(schema.GroupKind{Group: "cloud.example.org", Kind: "Bucket"}, xp.ManagedKind(mrd)); diff != "" {
		t.Error(diff)
	}
	for state, want := range map[string]bool{`"Active"`: false, `"Inactive"`: true, `null`: true, `7`: true} {
		if got := xp.IsInactive(xptest.With(mrd, xptest.JSON(`{"spec":{"state":`+state+`}}`))); got != want {
			t.Errorf("%s: got %v", state, got)
		}
	}
}

func TestDefines(t *testing.T) {
	both := xptest.XRD("xorders.example.org", xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XOrder"},"claimNames":{"kind":"OrderClaim"}}}`))
	none := xptest.XRD("odd", xptest.JSON(`{"spec":{"group":7,"names":"XOrder"}}`))
	for gk, want := range map[schema.GroupKind]bool{
		{Group: "example.org", Kind: "XOrder"}:     true,
		{Group: "example.org", Kind: "OrderClaim"}: true,
		{Group: "example.org", Kind: "Order"}:      false,
		{Group: "example.com", Kind: "XOrder"}:     false,
		{}:                                         false,
	} {
		if got := xp.Defines(both, gk); got != want {
			t.Errorf("an XRD defines the kinds of its XRs and claims; of %s: got %v, want %v", gk, got, want)
		}
		if xp.Defines(none, gk) {
			t.Errorf("a malformed XRD defines nothing, not %s", gk)
		}
	}
	if !xp.IsDefinition(both) || xp.IsDefinition(xptest.Composition("c", xptest.XR("x"))) {
		t.Error("only XRDs are definitions")
	}
}

func TestXRDTerminating(t *testing.T) {
	cases := map[string]struct {
		reason     string
		finalizers []string
		want       []string
	}{
		"Defined": {reason: "The XRD waits until its XRs are gone.", finalizers: []string{"defined.apiextensions.crossplane.io"}, want: []string{"until all of its XRs are gone"}},
		"Offered": {
			reason: "The XRD waits until its claims are gone too.", finalizers: []string{"defined.apiextensions.crossplane.io", "offered.apiextensions.crossplane.io"},
			want: []string{"until all of its XRs are gone", "and for", "until all of its claims are gone"},
		},
		"Other": {reason: "The XRD waits for another controller's finalizer.", finalizers: []string{"example.org/keep"}, want: []string{"its finalizer example.org/keep"}},
		"None":  {reason: "Without finalizers the XRD waits for the garbage collector.", want: []string{"what it owns"}},
	}
	for name, tc := range cases {
		got := xp.XRDTerminating(xptest.XRD("xorders.example.org", xptest.Finalizers(tc.finalizers...)))
		for _, want := range append(tc.want, "its XRD xorders.example.org is being deleted", "kubectl get xorders.example.org") {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s\n%q does not contain %q", name, tc.reason, got, want)
			}
		}
	}
}
