package xp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func item(group, resource, namespace, name string) xp.Item {
	return xp.Item{GroupResource: schema.GroupResource{Group: group, Resource: resource}, Namespace: namespace, Name: name}
}

func TestTree(t *testing.T) {
	type want struct {
		Items []xp.Item
		OK    bool
		Err   string
	}
	const prefix = "cannot read the annotation velero.crossplane.io/tree of XOrder x: "
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   want
	}{
		"None": {reason: "A backup without the plugin has no list.", object: xptest.XR("x")},
		"List": {
			reason: "In order, cluster-scoped and namespaced, with and without a group.",
			object: xptest.XR("x", xptest.Annotated(xp.AnnotationTree, `["xorders.example.org//x","buckets.c.example.org/team-a/b","secrets/team-a/s"]`)),
			want: want{OK: true, Items: []xp.Item{
				item("example.org", "xorders", "", "x"), item("c.example.org", "buckets", "team-a", "b"), item("", "secrets", "team-a", "s"),
			}},
		},
		"NotJSON": {
			reason: "The error names the annotation and the object.",
			object: xptest.XR("x", xptest.Annotated(xp.AnnotationTree, `x`)), want: want{Err: prefix + "invalid character 'x' looking for beginning of value"},
		},
		"NotStrings": {
			reason: "The error names the annotation and the object.",
			object: xptest.XR("x", xptest.Annotated(xp.AnnotationTree, `[1]`)), want: want{Err: prefix + "json: cannot unmarshal number into Go value of type string"},
		},
		"NoName": {
			reason: "The error says what was expected.",
			object: xptest.XR("x", xptest.Annotated(xp.AnnotationTree, `["a.b/c/"]`)),
			want:   want{Err: prefix + `cannot read "a.b/c/" as "resource.group/namespace/name"`},
		},
		"NoResource": {
			reason: "The error says what was expected.",
			object: xptest.XR("x", xptest.Annotated(xp.AnnotationTree, `["/c/d"]`)), want: want{Err: prefix + `cannot read "/c/d" as "resource.group/namespace/name"`},
		},
		"TooManyPart": {
			reason: "The error says what was expected.",
			object: xptest.XR("x", xptest.Annotated(xp.AnnotationTree, `["a/b/c/d"]`)),
			want:   want{Err: prefix + `cannot read "a/b/c/d" as "resource.group/namespace/name"`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			items, ok, err := xp.Tree(tc.object)
			if diff := cmp.Diff(tc.want, want{Items: items, OK: ok, Err: message(err)}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSetTree(t *testing.T) {
	forged := xptest.Annotated(xp.AnnotationTree, `["secrets/team-b/theirs"]`)
	other := xptest.Annotated("theirs", "kept")
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		items  []xp.Item
		want   map[string]string
	}{
		"New": {
			reason: "It is written.",
			object: xptest.XR("x"), items: []xp.Item{item("g", "r", "", "n")}, want: map[string]string{xp.AnnotationTree: `["r.g//n"]`},
		},
		"Overwritten": {
			reason: "What a tenant wrote there is gone; the rest stays.",
			object: xptest.XR("x", forged, other), items: []xp.Item{item("g", "r", "", "n")}, want: map[string]string{xp.AnnotationTree: `["r.g//n"]`, "theirs": "kept"},
		},
		"Removed": {
			reason: "What a tenant wrote there is gone, though there is nothing to write.",
			object: xptest.XR("x", forged, other), want: map[string]string{"theirs": "kept"},
		},
		"Nothing":    {reason: "There is nothing to take off.", object: xptest.XR("x")},
		"NoMetadata": {reason: "There is nothing to take off.", object: &unstructured.Unstructured{Object: map[string]any{}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xp.SetTree(tc.object, tc.items)
			if diff := cmp.Diff(tc.want, tc.object.GetAnnotations()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDangling(t *testing.T) {
	refs := []xp.Ref{{APIVersion: "c.org/v1", Kind: "Bucket", Name: "b"}, {APIVersion: "v1", Kind: "Secret", Namespace: "team-a", Name: "s"}}
	u := xptest.XR("x", xptest.Annotated(xp.AnnotationDangling, "what a tenant wrote"))
	if _, err := xp.Dangling(u); err == nil || !strings.HasPrefix(err.Error(), "cannot read the annotation velero.crossplane.io/dangling of XOrder x: ") {
		t.Errorf("The error must name the annotation and the object; got %v", err)
	}

	xp.SetDangling(u, refs)
	got, err := xp.Dangling(u)
	if diff := cmp.Diff(refs, got); err != nil || diff != "" {
		t.Errorf("What was written must come back: error %v, -want, +got:\n%s", err, diff)
	}

	xp.SetDangling(u, nil)
	got, err = xp.Dangling(u)
	if got != nil || err != nil {
		t.Errorf("Without refs the annotation is taken off; got %v, %v", got, err)
	}
}

// What SetTree writes Tree reads, for all names that Kubernetes allows.
func FuzzTreeRoundTrip(f *testing.F) {
	f.Add("buckets", "c.example.org", "team-a", "b")
	f.Add("secrets", "", "team-a", "s")
	f.Add("xorders", "example.org", "", "x:y.z")
	f.Fuzz(func(t *testing.T, resource, group, namespace, name string) {
		all := strings.Join([]string{resource, group, namespace, name}, " ")
		if resource == "" || name == "" || strings.ContainsRune(all, '/') || strings.ContainsRune(resource, '.') || strings.ContainsRune(all, utf8.RuneError) {
			t.Skip()
		}
		want := []xp.Item{item(group, resource, namespace, name), item("g", "r", "", "n")}
		u := xptest.XR("x")
		xp.SetTree(u, want)
		got, ok, err := xp.Tree(u)
		if diff := cmp.Diff(want, got); !ok || err != nil || diff != "" {
			t.Errorf("ok %v, error %v, -want, +got:\n%s", ok, err, diff)
		}
	})
}

// Whatever a tenant writes is read or refused, and what is read is written and read as the same.
func FuzzTree(f *testing.F) {
	for _, s := range []string{`["r.g/ns/n"]`, `[]`, `null`, `{}`, `["/","//","a//b"]`, `[1]`, `"x"`, ``} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u := xptest.XR("x", xptest.Annotated(xp.AnnotationTree, s))
		items, ok, err := xp.Tree(u)
		if err != nil && (ok || items != nil) {
			t.Errorf("An error comes with nothing else; got %v, %v", items, ok)
		}
		for _, i := range items {
			if i.Name == "" {
				t.Errorf("%q has no name", i)
			}
		}
		xp.SetTree(u, items)
		again, _, err := xp.Tree(u)
		if diff := cmp.Diff(items, again); err != nil || diff != "" {
			t.Errorf("error %v, -read, +read again:\n%s", err, diff)
		}
	})
}

// Whatever a tenant writes is read or refused, and what is read is written and read as the same.
func FuzzDangling(f *testing.F) {
	for _, s := range []string{`[{"apiVersion":"a/b","kind":"K","name":"n"}]`, `[]`, `null`, `[null]`, `{}`, `[{"name":1}]`, ``} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u := xptest.XR("x", xptest.Annotated(xp.AnnotationDangling, s))
		refs, err := xp.Dangling(u)
		if err != nil {
			return
		}
		if !json.Valid([]byte(s)) {
			t.Errorf("%q was read", s)
		}
		xp.SetDangling(u, refs)
		again, err := xp.Dangling(u)
		if len(refs) != len(again) || err != nil {
			t.Errorf("error %v, read %v, read again %v", err, refs, again)
		}
		for i := range again {
			if refs[i] != again[i] {
				t.Errorf("read %v, read again %v", refs, again)
			}
		}
	})
}
