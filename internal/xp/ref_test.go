package xp_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestRef(t *testing.T) {
	type want struct {
		ID     xp.ID
		GVK    schema.GroupVersionKind
		String string
	}
	cases := map[string]struct {
		reason string
		ref    xp.Ref
		want   want
	}{
		"Namespaced": {
			reason: "A message contains the namespace too.",
			ref:    xp.Ref{APIVersion: "c.org/v1", Kind: "Bucket", Namespace: "team-a", Name: "b"},
			want: want{
				ID:     xp.ID{Group: "c.org", Kind: "Bucket", Namespace: "team-a", Name: "b"},
				GVK:    schema.GroupVersionKind{Group: "c.org", Version: "v1", Kind: "Bucket"},
				String: "Bucket team-a/b",
			},
		},
		"Core": {
			reason: "Kubernetes' core group has no name.",
			ref:    xp.Ref{APIVersion: "v1", Kind: "Secret", Name: "s"},
			want:   want{ID: xp.ID{Kind: "Secret", Name: "s"}, GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, String: "Secret s"},
		},
		"Unparsable": {
			reason: "An API version that can't be parsed belongs to no group.",
			ref:    xp.Ref{APIVersion: "a/b/c", Kind: "Bucket", Name: "b"},
			want:   want{ID: xp.ID{Kind: "Bucket", Name: "b"}, GVK: schema.GroupVersionKind{Kind: "Bucket"}, String: "Bucket b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := want{ID: tc.ref.ID(), GVK: tc.ref.GroupVersionKind(), String: tc.ref.String()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRefTo(t *testing.T) {
	u := xptest.NamespacedMR("b")
	want := xp.Ref{APIVersion: xptest.ManagedVersion, Kind: xptest.ManagedKind, Namespace: xptest.Namespace, Name: "b"}
	if diff := cmp.Diff(want, xp.RefTo(u)); diff != "" {
		t.Errorf("RefTo: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff("Bucket team-a/b", xp.String(u)); diff != "" {
		t.Errorf("String: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(xp.Ref{}, xp.RefTo(&unstructured.Unstructured{})); diff != "" {
		t.Errorf("an object without content has an empty Ref: -want, +got:\n%s", diff)
	}
}

func TestRefCompare(t *testing.T) {
	want := []xp.Ref{
		{APIVersion: "a/v1", Kind: "A", Namespace: "a", Name: "a"},
		{APIVersion: "a/v1", Kind: "A", Namespace: "a", Name: "b"},
		{APIVersion: "a/v1", Kind: "A", Namespace: "b", Name: "a"},
		{APIVersion: "a/v1", Kind: "B", Namespace: "a", Name: "a"},
		{APIVersion: "b/v1", Kind: "A", Namespace: "a", Name: "a"},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, xp.Ref.Compare)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the order of Refs is API version, kind, namespace and name: -want, +got:\n%s", diff)
	}
}

func TestCompositeRefs(t *testing.T) {
	type want struct {
		Ref xp.Ref
		OK  bool
	}
	x := want{Ref: xp.Ref{APIVersion: "example.org/v1", Kind: "X", Name: "x"}, OK: true}
	cases := map[string]struct {
		reason string
		spec   string
		want   want
	}{
		"Whole":      {reason: "A complete ref names its object.", spec: `{"r":{"apiVersion":"example.org/v1","kind":"X","name":"x"}}`, want: x},
		"MoreFields": {reason: "Unknown fields have no effect.", spec: `{"r":{"apiVersion":"example.org/v1","kind":"X","name":"x","uid":7}}`, want: x},
		"NoName": {
			reason: "A ref without a name names nothing.",
			spec:   `{"r":{"apiVersion":"example.org/v1","kind":"X"}}`, want: want{Ref: xp.Ref{APIVersion: "example.org/v1", Kind: "X"}},
		},
		"NoKind":      {reason: "A ref without a kind names nothing.", spec: `{"r":{"apiVersion":"example.org/v1","name":"x"}}`},
		"NameIsList":  {reason: "A malformed ref names nothing.", spec: `{"r":{"apiVersion":"example.org/v1","kind":"X","name":[]}}`},
		"Null":        {reason: "Null names nothing.", spec: `{"r":null}`},
		"String":      {reason: "A string names nothing.", spec: `{"r":"x"}`},
		"SpecIsFloat": {reason: "A malformed spec names nothing.", spec: `1.5`},
		"NoSpec":      {reason: "No spec names nothing.", spec: `null`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := xptest.Object("example.org/v1", "K", "team-a", "o", xptest.JSON(`{"spec":`+tc.spec+`}`))
			if spec, ok := u.Object["spec"].(map[string]any); ok {
				spec["resourceRef"], spec["claimRef"] = spec["r"], spec["r"]
			}
			var claimed, composite want
			claimed.Ref, claimed.OK = xp.CompositeFrom(u).ClaimRef()
			composite.Ref, composite.OK = xp.ClaimFrom(u).CompositeRef()
			if diff := cmp.Diff([]want{tc.want, tc.want}, []want{claimed, composite}); diff != "" {
				t.Errorf("%s\nClaimRef and CompositeRef: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
