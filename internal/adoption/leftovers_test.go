package adoption

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestLeftovers(t *testing.T) {
	usage := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("protection.crossplane.io/v1beta1", "Usage", xptest.Namespace, "u", append([]xptest.Option{
			xptest.JSON(`{"spec":{"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","resourceRef":{"name":"b"}}}}`),
		}, o...)...)
	}
	x := xptest.XRV2("x")
	gone := xptest.XRV2("x", xptest.UID("gone"))
	mine := usage(xptest.ControlledBy(x))
	lost := usage(xptest.Labelled(xp.LabelComposite, "x"))
	child := xptest.XRV2("c", xptest.ControlledBy(x))
	const left = "Usage team-a/u: "
	const next = ". It protects Bucket team-a/b; if that is not in use any more, delete the Usage with: kubectl label Usage.v1beta1.protection.crossplane.io u -n team-a " +
		"crossplane.io/composite- && kubectl delete Usage.v1beta1.protection.crossplane.io u -n team-a [UsageLeftBehind]"
	type found map[string][]string
	cases := map[string]struct {
		reason string
		usage  *unstructured.Unstructured
		xrs    []*unstructured.Unstructured
		want   found
	}{
		"Listed":      {reason: "A Usage that its XR lists is no leftover.", usage: mine, xrs: []*unstructured.Unstructured{xptest.With(x, xptest.Refs(mine))}},
		"ToBeAdopted": {reason: "The XR that lists a Usage without a controller takes it over.", usage: lost, xrs: []*unstructured.Unstructured{xptest.With(x, xptest.Refs(lost))}},
		"Dropped": {
			reason: "The XR no longer lists the Usage.", usage: mine, xrs: []*unstructured.Unstructured{x},
			want: found{"x": {left + "Order team-a/x composed it and does not list it in its resourceRefs" + next}},
		},
		"Nested": {
			reason: "The Usage belongs to a nested XR of the tree.", usage: usage(xptest.ControlledBy(child)), xrs: []*unstructured.Unstructured{xptest.With(x, xptest.Refs(child)), child},
			want: found{"c": {left + "Order team-a/c composed it and does not list it in its resourceRefs" + next}},
		},
		"Uncontrolled": {
			reason: "The label of the Usage names the tree.", usage: lost, xrs: []*unstructured.Unstructured{x, child},
			want: found{"x": {left + "no XR lists it in its resourceRefs" + next}},
		},
		"ListedBelow": {reason: "Another XR of the tree lists the Usage.", usage: lost, xrs: []*unstructured.Unstructured{x, xptest.With(child, xptest.Refs(lost))}},
		"Recreated": {
			reason: "A new XR of the same name is another object.", usage: usage(xptest.ControlledBy(gone)), xrs: []*unstructured.Unstructured{x},
			want: found{"x": {left + "Order x, which composed it, is gone" + next}},
		},
		"XRGone": {
			reason: "The protected resource connects the Usage with this XR.", usage: usage(xptest.ControlledBy(xptest.XRV2("other"))),
			xrs:  []*unstructured.Unstructured{xptest.With(x, xptest.Refs(xptest.NamespacedMR("b")))},
			want: found{"x": {left + "Order other, which composed it, is gone" + next}},
		},
		"Theirs": {
			reason: "A Usage of an XR of another kind has no connection with this XR.", usage: usage(xptest.ControlledBy(xptest.XR("x"))),
			xrs: []*unstructured.Unstructured{x},
		},
		"Elsewhere": {
			reason: "A label does not name a tree of another namespace.", usage: xptest.With(lost, xptest.In("team-b")), xrs: []*unstructured.Unstructured{x},
		},
		"Stranger": {reason: "The tree of this Usage is not among the XRs.", usage: usage(xptest.Labelled(xp.LabelComposite, "y")), xrs: []*unstructured.Unstructured{x}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := found{}
			for _, l := range Leftovers([]*unstructured.Unstructured{tc.usage}, tc.xrs) {
				got[l.XR.GetName()] = append(got[l.XR.GetName()], l.Message().String())
			}
			if tc.want == nil {
				tc.want = found{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			for _, remark := range slices.Concat(slices.Collect(maps.Values(got))...) {
				if !strings.HasPrefix(remark, left) {
					t.Errorf("a remark must begin with its object: %q", remark)
				}
			}
		})
	}
}
