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
	cases := map[string]struct {
		reason   string
		document string
		want     []xp.DefinedKind
	}{
		"Both": {
			reason:   "Crossplane offers XRs and claims at different times.",
			document: document(spec, established+","+offered), want: []xp.DefinedKind{xorder, claim},
		},
		"NotOffered":     {reason: "The XRD does not offer claims yet.", document: document(spec, established), want: []xp.DefinedKind{xorder}},
		"NotEstablished": {reason: "A kind that is not served has no objects.", document: document(spec, `{"type":"Established","status":"False"}`)},
		"New":            {reason: "Crossplane has not seen the XRD.", document: document(spec, "")},
		"NoClaims": {
			reason:   "An XRD can do without claims.",
			document: document(`"group":"example.org","names":{"kind":"XOrder"},"versions":[{"name":"v1","served":true}]`, established+","+offered),
			want:     []xp.DefinedKind{xorder},
		},
		"ServedVersion": {
			reason: "A client can't request a version that is not served.",
			document: document(`"group":"example.org","names":{"kind":"XOrder"},"versions":[7,{"name":"v0","served":false},{"name":"v1","served":true},{"name":"v2",
				"served":true}]`, established),
			want: []xp.DefinedKind{xorder},
		},
		"NoTime": {
			reason:   "A condition without a time counts from the beginning.",
			document: document(spec, `{"type":"Established","status":"True","lastTransitionTime":"yesterday"}`),
			want:     []xp.DefinedKind{{GroupVersionKind: xorder.GroupVersionKind, XRD: "x"}},
		},
		"NoVersions": {
			reason:   "The XRD lists no served version.",
			document: document(`"group":"example.org","names":{"kind":"XOrder"},"versions":"v1"`, established),
			want:     []xp.DefinedKind{{GroupVersionKind: schema.GroupVersionKind{Group: "example.org", Kind: "XOrder"}, XRD: "x", Since: at}},
		},
		"WrongTypes": {
			reason:   "A malformed XRD defines no kinds.",
			document: document(`"group":1,"names":[],"claimNames":{"kind":{}},"versions":{}`, established+","+offered),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, xp.DefinedKinds(xptest.XRD("x", xptest.JSON(tc.document)))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
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
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   string
	}{
		"Legacy":      {reason: "v2 refuses the scope of an XRD with claims.", object: xrd(v2, scope(xp.ScopeLegacy)), want: v1},
		"LegacyV1":    {reason: "v1 accepts it.", object: xrd(v1, scope(xp.ScopeLegacy)), want: v1},
		"Crossplane1": {reason: "An XRD of Crossplane v1 has no scope.", object: xrd(v1), want: v1},
		"Namespaced":  {reason: "v2 accepts what it was made for.", object: xrd(v2, scope("Namespaced")), want: v2},
		"Cluster":     {reason: "v2 accepts what it was made for.", object: xrd(v2, scope("Cluster")), want: v2},
		"ClusterV1":   {reason: "v1 accepts the scopes of v2, too.", object: xrd(v1, scope("Cluster")), want: v1},
		"Unscoped":    {reason: "v2 makes it Namespaced.", object: xrd(v2), want: v2},
		"Odd":         {reason: "A user wrote a scope that is no text; the API server refuses it.", object: xrd(v2, xptest.Field(int64(1), "spec", "scope")), want: v2},
		"Other": {
			reason: "Only XRDs have such versions.", object: xptest.XRV2("x", scope(xp.ScopeLegacy)), want: xptest.ModernVersion,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, xp.CreatedAs(tc.object).GroupVersion().String()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestActivates(t *testing.T) {
	cases := map[string]struct {
		reason string
		policy string
		want   bool
	}{
		"Exact":     {reason: "A name activates the MRD of exactly that name.", policy: `["other","buckets.cloud.example.org"]`, want: true},
		"All":       {reason: "The policy of Crossplane's chart activates all MRDs.", policy: `["*"]`, want: true},
		"Prefix":    {reason: "A wildcard can stand for the start of a name.", policy: `["*.cloud.example.org"]`, want: true},
		"Another":   {reason: "Another name does not activate the MRD.", policy: `["queues.cloud.example.org"]`},
		"Malformed": {reason: "A malformed pattern matches no MRD.", policy: `["[",7]`},
		"Forged":    {reason: "A string instead of a list has no names.", policy: `"*"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := xptest.ActivationPolicy("p", xptest.JSON(`{"spec":{"activate":`+tc.policy+`}}`))
			if diff := cmp.Diff(tc.want, xp.Activates(policy, "buckets.cloud.example.org")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
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

func TestHowToActivate(t *testing.T) {
	const command = `"kubectl patch managedresourcedefinition --type=merge -p '{"spec":{"state":"Active"}}' buckets.cloud.example.org"`
	if got := xp.HowToActivate("buckets.cloud.example.org"); !strings.Contains(got, command) {
		t.Errorf("got %s", got)
	}
	if got := xp.HowToActivate("$(reboot)"); !strings.Contains(got, `'$(reboot)'`) {
		t.Errorf("the name must be one word for the shell: %s", got)
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
