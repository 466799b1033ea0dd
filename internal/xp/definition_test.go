package xp_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
