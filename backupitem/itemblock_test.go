package backupitem

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestBlock(t *testing.T) {
	x := xptest.XR("x")
	mine, theirs := xptest.MR("b", xptest.ControlledBy(x)), xptest.MR("t")
	claim := xptest.Claim("o", xptest.OfXR(x))
	xr := xptest.XR("x", xptest.ClaimedBy(claim), xptest.Refs(mine, theirs))
	runsOn, _ := platform()
	all := slices.Concat(runsOn, []*unstructured.Unstructured{mine, theirs, xr, claim})
	type want struct {
		Items []velero.ResourceIdentifier
	}
	cases := map[string]struct {
		reason  string
		cluster *cluster
		item    *unstructured.Unstructured
		want    want
	}{
		"XR": {
			reason: "The block has only the XR's own objects, since shared ones would join all blocks.", cluster: clusterOf(all...), item: xr,
			want: want{Items: []velero.ResourceIdentifier{bucket("b"), id("example.org", "orderclaims", "team-a", "o")}},
		},
		"Claim":     {reason: "The claim brings its XR, which brings the rest.", cluster: clusterOf(all...), item: claim, want: want{Items: []velero.ResourceIdentifier{xorder("x")}}},
		"Unrelated": {reason: "No other object belongs to this one.", cluster: clusterOf(), item: xptest.Object("example.org/v1", "Thing", "team-a", "t")},
		"API": {
			reason: "An unreadable object stays out, and the other action warns of it.", cluster: clusterOf(all...).without(mine), item: xr,
			want: want{Items: []velero.ResourceIdentifier{id("example.org", "orderclaims", "team-a", "o")}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.item.DeepCopy()
			items, err := NewItemBlock(NewResolver(tc.cluster), nil).GetRelatedItems(tc.item, &velerov1.Backup{})
			if diff := cmp.Diff(tc.want, want{Items: items}); err != nil || diff != "" {
				t.Errorf("%s\nerror %v, -want, +got:\n%s", tc.reason, err, diff)
			}
			if diff := cmp.Diff(before, tc.item); diff != "" {
				t.Errorf("the item was changed: %s", diff)
			}
		})
	}
}

func TestBlockAppliesTo(t *testing.T) {
	wide, _ := NewTree(NewResolver(clusterOf()), nil).AppliesTo()
	xrd := func(plural, claims string) *unstructured.Unstructured {
		o := []xptest.Option{xptest.Field("example.org", "spec", "group"), xptest.Field(plural, "spec", "names", "plural")}
		if claims != "" {
			o = append(o, xptest.Field(claims, "spec", "claimNames", "plural"))
		}

		return xptest.XRD(plural+".example.org", o...)
	}
	const xrds = "compositeresourcedefinitions.apiextensions.crossplane.io"
	down := clusterOf(xrd("xorders", ""))
	down.down = true
	cases := map[string]struct {
		reason  string
		cluster Reader
		want    velero.ResourceSelector
	}{
		"XRDs": {
			reason: "Only claims and XRs bring other objects, so the plugin saves calls for the rest.", cluster: clusterOf(xrd("xorders", "orderclaims")),
			want: velero.ResourceSelector{IncludedResources: []string{xrds, "xorders.example.org", "orderclaims.example.org"}},
		},
		"None": {
			reason: "Velero takes an empty list for all resources, so the list names one.", cluster: clusterOf(), want: velero.ResourceSelector{IncludedResources: []string{xrds}},
		},
		"Unserved": {
			reason: "A cluster without Crossplane has no XRDs.", cluster: unserved{clusterOf()}, want: velero.ResourceSelector{IncludedResources: []string{xrds}},
		},
		"API": {reason: "A needless call is better than an incomplete block.", cluster: down, want: wide},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			got, err := NewItemBlock(NewResolver(tc.cluster), log).AppliesTo()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// An unserved cluster serves none of the kinds that are listed.
type unserved struct{ *cluster }

func (unserved) Each(_ context.Context, gvk schema.GroupVersionKind, _ string, _ metav1.ListOptions, _ func(*unstructured.Unstructured)) error {
	return &meta.NoKindMatchError{GroupKind: gvk.GroupKind()}
}

// The two actions read the same, one right after the other.
func TestBlockAndTreeReadOnce(t *testing.T) {
	x := xptest.XR("x")
	mine := xptest.MR("b", xptest.ControlledBy(x))
	claim := xptest.Claim("o", xptest.OfXR(x))
	xr := xptest.XR("x", xptest.ClaimedBy(claim), xptest.Refs(mine))
	runsOn, _ := platform()
	c := clusterOf(append(runsOn, mine, xr, claim)...)
	resolver := NewResolver(c)
	log, _ := logtest.NewNullLogger()
	for _, item := range []*unstructured.Unstructured{claim, xr} {
		if _, err := NewItemBlock(resolver, nil).GetRelatedItems(item.DeepCopy(), nil); err != nil {
			t.Fatal(err)
		}
		if _, _, _, _, err := NewTree(resolver, log).Execute(item.DeepCopy(), &velerov1.Backup{}); err != nil {
			t.Fatal(err)
		}
	}
	for id, n := range c.asked {
		if n != 1 {
			t.Errorf("the plugin read %v %d times", id, n)
		}
	}
}
