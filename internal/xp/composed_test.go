package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestComposed(t *testing.T) {
	xr := xptest.XR("x")
	nested := xptest.XR("child", xptest.Labelled(xp.LabelComposite, "x"))
	cases := map[string]struct {
		reason string
		xr     *unstructured.Unstructured
		object *unstructured.Unstructured
		want   bool
	}{
		"Controlled": {reason: "The owner reference has the XR's UID.", xr: xr, object: xptest.MR("b", xptest.ControlledBy(xr)), want: true},
		"OtherController": {
			reason: "A label proves nothing against a controller.",
			xr:     xr, object: xptest.MR("b", xptest.ControlledBy(xptest.XR("x", xptest.UID("other")))),
		},
		"Ownerless": {reason: "A restore without this plugin leaves the label only.", xr: xr, object: xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x")), want: true},
		"OwnerlessOfATree": {
			reason: "All composed resources of a tree carry the name of its root.",
			xr:     nested, object: xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x")), want: true,
		},
		"OwnerlessOfTheChild": {reason: "The label carries the root's name, never the name of a nested XR.", xr: nested, object: xptest.MR("b", xptest.Labelled(xp.LabelComposite, "child"))},
		"OfAnotherTree":       {reason: "The object carries the label of another tree.", xr: xr, object: xptest.MR("b", xptest.Labelled(xp.LabelComposite, "y"))},
		"OwnerlessInItsNamespace": {
			reason: "Crossplane v2 uses the same label.",
			xr:     xptest.XRV2("x"), object: xptest.NamespacedMR("b", xptest.Labelled(xp.LabelComposite, "x")), want: true,
		},
		"OwnerlessClusterScoped": {
			reason: "A tenant can copy another tree's name or label, but gets no objects outside of their namespace.",
			xr:     xptest.XRV2("x", xptest.Labelled(xp.LabelComposite, "x")), object: xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x")),
		},
		"OwnerlessElsewhere": {
			reason: "A tenant's XR gets no objects of another namespace.",
			xr:     xptest.XRV2("x"), object: xptest.NamespacedMR("b", xptest.In("team-b"), xptest.Labelled(xp.LabelComposite, "x")),
		},
		"OwnerlessOfAClusterXR": {
			reason: "A cluster-scoped XR composes objects in any namespace.",
			xr:     xr, object: xptest.NamespacedMR("b", xptest.Labelled(xp.LabelComposite, "x")), want: true,
		},
		"Unlabelled": {reason: "Neither an owner nor a label ties the object to an XR.", xr: xr, object: xptest.MR("b")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := xp.Composed(xp.CompositeFrom(tc.xr), tc.object); got != tc.want {
				t.Errorf("%s\nComposed: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestSavedRefs(t *testing.T) {
	bucket, gone := xptest.MR("b"), xptest.MR("gone")
	local := xptest.NamespacedMR("gone")
	type want struct {
		Refs []xp.Ref
		Err  string
	}
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   want
	}{
		"All": {reason: "All refs are resolved.", object: xptest.XR("x", xptest.Refs(bucket, gone)), want: want{Refs: []xp.Ref{xp.RefTo(bucket), xp.RefTo(gone)}}},
		"Unresolved": {
			reason: "A restore does not wait for an unresolved ref.",
			object: xptest.XR("x", xptest.Refs(gone, bucket), xptest.UnresolvedRefs(gone)), want: want{Refs: []xp.Ref{xp.RefTo(bucket)}},
		},
		"V2": {
			reason: "A ref without a namespace means the XR's namespace.",
			object: xptest.XRV2("x", xptest.Refs(local, xptest.NamespacedMR("b")), xptest.UnresolvedRefs(local)), want: want{Refs: []xp.Ref{xp.RefTo(xptest.NamespacedMR("b"))}},
		},
		"Unreadable": {
			reason: "Without a list of unresolved refs a restore waits for all refs, which is safe.",
			object: xptest.XR("x", xptest.Refs(gone), xptest.Field("x", "metadata", xp.FieldUnresolvedRefs)), want: want{Refs: []xp.Ref{xp.RefTo(gone)}},
		},
		"Malformed": {
			reason: "Refs that can't be read cause an error.", object: xptest.XR("x", xptest.JSON(`{"spec":{"resourceRefs":7}}`)),
			want: want{Err: "cannot read the resourceRefs of XOrder x: they are a int64, not a list"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			refs, err := xp.CompositeFrom(tc.object).SavedRefs()
			if diff := cmp.Diff(tc.want, want{Refs: refs, Err: message(err)}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRemoveResourceRefs(t *testing.T) {
	for name, build := range map[string]func(string, ...xptest.Option) *unstructured.Unstructured{"V1": xptest.XR, "V2": xptest.XRV2} {
		u := build("x", xptest.Refs(xptest.MR("b")))
		xp.CompositeFrom(u).RemoveResourceRefs()
		if diff := cmp.Diff(build("x"), u); diff != "" {
			t.Errorf("%s: only the refs are removed, where the schema has them: -want, +got:\n%s", name, diff)
		}
	}
}
