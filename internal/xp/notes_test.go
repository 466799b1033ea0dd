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

func TestRestoreFirst(t *testing.T) {
	type want struct {
		Items []xp.Item
		OK    bool
		Err   string
	}
	const prefix = "cannot read metadata[velero.crossplane.io/restore-first] of XOrder x: "
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, want]{
		"List": {
			Reason: "The list keeps the order, cluster-scoped and namespaced, with and without a group.",
			In:     xptest.XR("x", xptest.RestoreFirst("xorders.example.org//x", "buckets.c.example.org/team-a/b", "secrets/team-a/s")),
			Want: want{OK: true, Items: []xp.Item{
				item("example.org", "xorders", "", "x"), item("c.example.org", "buckets", "team-a", "b"), item("", "secrets", "team-a", "s"),
			}},
		},
		"Empty": {Reason: "An empty list counts as a list.", In: xptest.XR("x", xptest.RestoreFirst()), Want: want{OK: true}},
		"Annotation": {
			Reason: "A user can write an annotation, but only a backup can have the field.",
			In:     xptest.XR("x", xptest.Annotated(xp.FieldRestoreFirst, `["secrets/team-b/theirs"]`)),
		},
		"NotAList": {
			Reason: "The error names the field, the object and the wrong type.",
			In:     xptest.XR("x", xptest.Field("x", "metadata", xp.FieldRestoreFirst)), Want: want{Err: prefix + "it is a string, not a list"},
		},
		"NoName": {
			Reason: "The error contains the expected format.",
			In:     xptest.XR("x", xptest.RestoreFirst("a.b/c/")), Want: want{Err: prefix + `cannot read "a.b/c/" as "resource.group/namespace/name"`},
		},
		"NoResource": {
			Reason: "The error contains the expected format.",
			In:     xptest.XR("x", xptest.RestoreFirst("/c/d")), Want: want{Err: prefix + `cannot read "/c/d" as "resource.group/namespace/name"`},
		},
		"TooManyPart": {
			Reason: "The error contains the expected format.",
			In:     xptest.XR("x", xptest.RestoreFirst("a/b/c/d")), Want: want{Err: prefix + `cannot read "a/b/c/d" as "resource.group/namespace/name"`},
		},
	}, func(in *unstructured.Unstructured) want {
		items, ok, err := xp.RestoreFirst(in)

		return want{Items: items, OK: ok, Err: message(err)}
	})
}

func TestSetRestoreFirst(t *testing.T) {
	forged := xptest.RestoreFirst("secrets/team-b/theirs")
	items := []xp.Item{item("g", "r", "", "n")}
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		items  []xp.Item
		want   *unstructured.Unstructured
	}{
		"Overwritten": {reason: "The new list replaces a forged one.", object: xptest.XR("x", forged), items: items, want: xptest.XR("x", xptest.RestoreFirst("r.g//n"))},
		"Removed":     {reason: "An empty list removes a forged one.", object: xptest.XR("x", forged), want: xptest.XR("x")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xp.SetRestoreFirst(tc.object, tc.items)
			if diff := cmp.Diff(tc.want, tc.object); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUnresolvedRefs(t *testing.T) {
	const prefix = "cannot read metadata[velero.crossplane.io/unresolved-refs] of XOrder x: "
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"NotAList":   {value: "what a tenant wrote", want: prefix + "it is a string, not a list"},
		"NotObjects": {value: []any{"x"}, want: prefix + "it is a string, not an object"},
	} {
		if _, err := xp.UnresolvedRefs(xptest.XR("x", xptest.Field(tc.value, "metadata", xp.FieldUnresolvedRefs))); message(err) != tc.want {
			t.Errorf("%s: the error must name the field and the object; got %v, want %s", name, err, tc.want)
		}
	}
	if got, err := xp.UnresolvedRefs(xptest.XR("x", xptest.Annotated(xp.FieldUnresolvedRefs, `[1]`))); got != nil || err != nil {
		t.Errorf("a user can write an annotation, but only a backup can have the field; got %v, %v", got, err)
	}

	refs := []xp.Ref{{APIVersion: "c.org/v1", Kind: "Bucket", Name: "b"}, {APIVersion: "v1", Kind: "Secret", Namespace: "team-a", Name: "s"}}
	u := xptest.XR("x")
	xp.SetUnresolvedRefs(u, refs)
	got, err := xp.UnresolvedRefs(xptest.Merge(u, nil))
	if diff := cmp.Diff(refs, got); err != nil || diff != "" {
		t.Errorf("the written refs must come back, from JSON too: error %v, -want, +got:\n%s", err, diff)
	}

	xp.SetUnresolvedRefs(u, nil)
	got, err = xp.UnresolvedRefs(u)
	if got != nil || err != nil || xp.HasBackupMetadata(u) {
		t.Errorf("without refs the field must go; got %v, %v", got, err)
	}
}

// No note gets into a cluster, and StripBackupMetadata removes nothing else.
func TestNotes(t *testing.T) {
	for name, tc := range map[string]struct {
		note xptest.Option
		want bool
	}{
		"Tree":       {note: xptest.RestoreFirst("a.b//c"), want: true},
		"Unresolved": {note: xptest.UnresolvedRefs(xptest.MR("b")), want: true},
		"Secret":     {note: xptest.Published(), want: true},
		"Must":       {note: xptest.Annotated(xp.AnnotationMustInclude, "true"), want: true},
		"Restore":    {note: xptest.Annotated(xp.AnnotationMustRestore, "true"), want: true},
		"None":       {note: xptest.Annotated("theirs", "kept")},
	} {
		bare := xptest.XR("x", xptest.Annotated("theirs", "kept"))
		u := xptest.With(bare, tc.note)
		if got := xp.HasBackupMetadata(u); got != tc.want {
			t.Errorf("%s: HasBackupMetadata: got %v, want %v", name, got, tc.want)
		}
		xp.StripBackupMetadata(u)
		if diff := cmp.Diff(bare, u); diff != "" || xp.HasBackupMetadata(u) {
			t.Errorf("%s: StripBackupMetadata: -want, +got:\n%s", name, diff)
		}
	}
}

// FuzzRestoreFirst checks that RestoreFirst reads what SetRestoreFirst writes, for all names that
// Kubernetes allows.
func FuzzRestoreFirst(f *testing.F) {
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
		xp.SetRestoreFirst(u, want)
		got, ok, err := xp.RestoreFirst(u)
		if diff := cmp.Diff(want, got); !ok || err != nil || diff != "" {
			t.Errorf("ok %v, error %v, -want, +got:\n%s", ok, err, diff)
		}
	})
}

// FuzzNotes checks that any note is read or refused, that a note that is read and written again
// stays the same, and that StripBackupMetadata removes it.
func FuzzNotes(f *testing.F) {
	for _, s := range []string{`["r.g/ns/n"]`, `[]`, `null`, `{}`, `["/","//","a//b"]`, `[1]`, `"x"`, `[{"apiVersion":"a/b","kind":"K","name":"n"}]`, `[null]`, `[{"name":1}]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var value any
		if json.Unmarshal([]byte(s), &value) != nil {
			t.Skip()
		}
		u := decoded(t, map[string]any{"metadata": map[string]any{"name": "x", xp.FieldRestoreFirst: value, xp.FieldUnresolvedRefs: value}})
		items, ok, err := xp.RestoreFirst(u)
		if err != nil && (ok || items != nil) {
			t.Errorf("an error must come without items; got %v, %v", items, ok)
		}
		for _, i := range items {
			if i.Name == "" || i.Resource == "" && i.Group == "" {
				t.Errorf("%q names no object", i)
			}
		}
		refs, _ := xp.UnresolvedRefs(u)
		xp.SetRestoreFirst(u, items)
		xp.SetUnresolvedRefs(u, refs)
		again, _, err := xp.RestoreFirst(u)
		if diff := cmp.Diff(items, again); err != nil || diff != "" {
			t.Errorf("error %v, -read, +read again:\n%s", err, diff)
		}
		refsAgain, err := xp.UnresolvedRefs(u)
		if diff := cmp.Diff(refs, refsAgain); err != nil || diff != "" {
			t.Errorf("error %v, -read, +read again:\n%s", err, diff)
		}
		xp.StripBackupMetadata(u)
		if xp.HasBackupMetadata(u) {
			t.Errorf("backup metadata is left in %s", s)
		}
	})
}
