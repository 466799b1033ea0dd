package xp_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

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

func TestFunctions(t *testing.T) {
	x := xptest.XR("x")
	cases := map[string]struct {
		reason   string
		document string
		want     []string
	}{
		"Pipeline": {
			reason:   "The result has each Function once, in the order of its first step.",
			document: `{"spec":{"pipeline":[{"functionRef":{"name":"b"}},{"functionRef":{"name":"a"}},{"functionRef":{"name":"b"}}]}}`, want: []string{"b", "a"},
		},
		"Native":    {reason: "A Composition in native mode calls no Functions.", document: `{"spec":{"resources":[{"name":"bucket"}]}}`},
		"Malformed": {reason: "A malformed step calls no Function.", document: `{"spec":{"pipeline":["a",{"functionRef":"b"},{"functionRef":{"name":7}}]}}`},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, xp.Functions(xptest.Revision("r", x, xptest.JSON(tc.document)))); diff != "" {
			t.Errorf("%s: %s\n-want, +got:\n%s", name, tc.reason, diff)
		}
	}
}

func TestComposedNames(t *testing.T) {
	revision := xptest.Revision("r", xptest.XR("x"), xptest.JSON(`{"spec":{"pipeline":[{"input":{"resources":[{"name":"a"},{"name":7},{},7]}},{"input":7},7,`+
		`{"input":{"resources":[{"name":"b","base":{"apiVersion":"cloud.example.org/v1","kind":"Bucket"}}]}}]}}`))
	want := map[string]schema.GroupKind{"a": {}, "b": {Group: "cloud.example.org", Kind: "Bucket"}}
	if diff := cmp.Diff(want, xp.ComposedNames(revision)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
