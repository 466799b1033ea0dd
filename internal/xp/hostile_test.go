package xp_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestIsValidName(t *testing.T) {
	for _, tc := range []struct {
		namespace, name string
		want            bool
	}{
		{"", "orders.example.org", true},
		{"team-a", "o", true},
		{"team-a", "system:node:a", true}, // A user of RBAC.
		{"team-a", "", false},
		{"team-a", ".", false},
		{"team-a", "..", false},
		{"team-a", "../team-b/password", false},
		{"team-a", "a%2fb", false},
		{"..", "o", false},
		{"../..", "o", false},
		{"team-a", strings.Repeat("a", 253), true},
		{"team-a", strings.Repeat("a", 254), false},
		{strings.Repeat("a", 254), "o", false},
	} {
		if got := xp.IsValidName(tc.namespace, tc.name); got != tc.want {
			t.Errorf("names become parts of paths: %q in %q: got %v, want %v", tc.name, tc.namespace, got, tc.want)
		}
	}
}

// A tenant's XR can list as many refs as etcd stores, and a file any number. The test counts
// allocations, since time depends on other processes.
func TestManyRefsAreCheap(t *testing.T) {
	of := func(n int) *unstructured.Unstructured {
		refs := make([]any, n)
		for i := range refs {
			refs[i] = map[string]any{"apiVersion": xptest.ManagedVersion, "kind": xptest.ManagedKind, "name": fmt.Sprint("b", i)}
		}

		return xptest.XR("x", xptest.Field(refs, "spec", "resourceRefs"), xptest.Field(refs[:n/2], "metadata", xp.FieldUnresolvedRefs))
	}
	const many = xp.MostRefs / 100 * 100
	for n, u := range map[int]*unstructured.Unstructured{600: of(600), many: of(many)} {
		refs, err := xp.CompositeFrom(u).SavedRefs()
		if err != nil || len(refs) != n/2 || refs[0].Name != fmt.Sprint("b", n/2) {
			t.Fatalf("of %d refs, half of them unresolved, there are %d: %v", n, len(refs), err)
		}
		if each := testing.AllocsPerRun(1, func() { _, _ = xp.CompositeFrom(u).SavedRefs() }) / float64(n); each > 20 {
			t.Errorf("each of %d refs costs %.0f allocations; the time must not grow with the square", n, each)
		}
	}
}

// A malformed list of refs is an error that names the XR, or an empty list.
func TestMalformedRefs(t *testing.T) {
	cases := map[string]struct {
		refs    any
		refused string
		listed  int
	}{
		"Map":           {refs: map[string]any{"a": "b"}, refused: "they are a map"},
		"Null":          {refs: nil},
		"OfStrings":     {refs: []any{"b"}, refused: "resourceRef 0"},
		"NameIsNumber":  {refs: []any{map[string]any{"apiVersion": "v1", "kind": "K", "name": int64(7)}}, refused: "its name is a int64"},
		"NameIsMissing": {refs: []any{map[string]any{"apiVersion": "v1", "kind": "K"}}},
		"KindIsMissing": {refs: []any{map[string]any{"apiVersion": "v1", "name": "n"}}, refused: "no kind"},
		"SecondOfTwo": {
			refs:    []any{map[string]any{"apiVersion": "v1", "kind": "K", "name": "n"}, map[string]any{"apiVersion": "v1", "kind": true}},
			refused: "resourceRef 1",
		},
		"TooMany":    {refs: make([]any, xp.MostRefs+1), refused: "are supported"},
		"AbsurdName": {refs: []any{map[string]any{"apiVersion": "v1", "kind": "K", "name": strings.Repeat("../", 1000)}}, listed: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, u := range []*unstructured.Unstructured{
				xptest.XR("x", xptest.Field(tc.refs, "spec", "resourceRefs")),
				xptest.XRV2("x", xptest.Field(tc.refs, "spec", "crossplane", "resourceRefs")),
			} {
				refs, err := xp.CompositeFrom(u).ResourceRefs()
				switch {
				case tc.refused == "" && (err != nil || len(refs) != tc.listed):
					t.Errorf("got %v with error %v, want %d", refs, err, tc.listed)
				case tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused) || !strings.Contains(err.Error(), xp.String(u))):
					t.Errorf("got %v with error %v; the error must name the XR and contain %q", refs, err, tc.refused)
				}
			}
		})
	}
}
