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
	xptest.Run(t, map[string]xptest.Row[pair, bool]{
		"Controlled": {Reason: "The owner reference has the XR's UID.", In: pair{xr, xptest.MR("b", xptest.ControlledBy(xr))}, Want: true},
		"OtherController": {
			Reason: "A label proves nothing against a controller.",
			In:     pair{xr, xptest.MR("b", xptest.ControlledBy(xptest.XR("x", xptest.UID("other"))))},
		},
		"Ownerless": {Reason: "A restore without this plugin leaves the label only.", In: pair{xr, xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x"))}, Want: true},
		"OwnerlessOfATree": {
			Reason: "All composed resources of a tree carry the name of its root.",
			In:     pair{nested, xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x"))}, Want: true,
		},
		"OwnerlessOfTheChild": {Reason: "The label carries the root's name, never the name of a nested XR.", In: pair{nested, xptest.MR("b", xptest.Labelled(xp.LabelComposite, "child"))}},
		"OfAnotherTree":       {Reason: "The object carries the label of another tree.", In: pair{xr, xptest.MR("b", xptest.Labelled(xp.LabelComposite, "y"))}},
		"OwnerlessInItsNamespace": {
			Reason: "Crossplane v2 uses the same label.",
			In:     pair{xptest.XRV2("x"), xptest.NamespacedMR("b", xptest.Labelled(xp.LabelComposite, "x"))}, Want: true,
		},
		"OwnerlessClusterScoped": {
			Reason: "A tenant can copy another tree's name or label, but gets no objects outside of their namespace.",
			In:     pair{xptest.XRV2("x", xptest.Labelled(xp.LabelComposite, "x")), xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x"))},
		},
		"OwnerlessElsewhere": {
			Reason: "A tenant's XR gets no objects of another namespace.",
			In:     pair{xptest.XRV2("x"), xptest.NamespacedMR("b", xptest.In("team-b"), xptest.Labelled(xp.LabelComposite, "x"))},
		},
		"OwnerlessOfAClusterXR": {
			Reason: "A cluster-scoped XR composes objects in any namespace.",
			In:     pair{xr, xptest.NamespacedMR("b", xptest.Labelled(xp.LabelComposite, "x"))}, Want: true,
		},
	}, func(in pair) bool {
		return xp.Composed(xp.CompositeFrom(in[0]), in[1])
	})
}

func TestSavedRefs(t *testing.T) {
	bucket, gone := xptest.MR("b"), xptest.MR("gone")
	local := xptest.NamespacedMR("gone")
	type want struct {
		Refs []xp.Ref
		Err  string
	}
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, want]{
		"Unresolved": {
			Reason: "A restore does not wait for an unresolved ref.",
			In:     xptest.XR("x", xptest.Refs(gone, bucket), xptest.UnresolvedRefs(gone)), Want: want{Refs: []xp.Ref{xp.RefTo(bucket)}},
		},
		"V2": {
			Reason: "A ref without a namespace means the XR's namespace.",
			In:     xptest.XRV2("x", xptest.Refs(local, xptest.NamespacedMR("b")), xptest.UnresolvedRefs(local)), Want: want{Refs: []xp.Ref{xp.RefTo(xptest.NamespacedMR("b"))}},
		},
		"Unreadable": {
			Reason: "Without a list of unresolved refs a restore waits for all refs, which is safe.",
			In:     xptest.XR("x", xptest.Refs(gone), xptest.Field("x", "metadata", xp.FieldUnresolvedRefs)), Want: want{Refs: []xp.Ref{xp.RefTo(gone)}},
		},
	}, func(in *unstructured.Unstructured) want {
		refs, err := xp.CompositeFrom(in).SavedRefs()

		return want{Refs: refs, Err: message(err)}
	})
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
