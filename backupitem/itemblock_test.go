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
	cases := map[string]struct {
		reason  string
		cluster *cluster
		item    *unstructured.Unstructured
		want    []velero.ResourceIdentifier
	}{
		"XR": {
			reason: "The block has only the XR's own objects, since shared ones would join all blocks.", cluster: clusterOf(all...), item: xr,
			want: []velero.ResourceIdentifier{bucket("b"), id("example.org", "orderclaims", "team-a", "o")},
		},
		"Claim": {reason: "The claim brings its XR, which brings the rest.", cluster: clusterOf(all...), item: claim, want: []velero.ResourceIdentifier{xorder("x")}},
		"API": {
			reason: "An unreadable object stays out, and the other action warns of it.", cluster: clusterOf(all...).without(mine), item: xr,
			want: []velero.ResourceIdentifier{id("example.org", "orderclaims", "team-a", "o")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, newSession(t, tc.cluster).related(tc.item)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
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
	xptest.Run(t, map[string]xptest.Row[Reader, velero.ResourceSelector]{
		"XRDs": {
			Reason: "Only claims and XRs bring other objects, so the plugin saves calls for the rest.", In: clusterOf(xrd("xorders", "orderclaims")),
			Want: velero.ResourceSelector{IncludedResources: []string{xrds, "xorders.example.org", "orderclaims.example.org"}},
		},
		"None": {
			Reason: "Velero takes an empty list for all resources, so the list names one.", In: clusterOf(), Want: velero.ResourceSelector{IncludedResources: []string{xrds}},
		},
		"Unserved": {
			Reason: "A cluster without Crossplane has no XRDs.", In: unserved{clusterOf()}, Want: velero.ResourceSelector{IncludedResources: []string{xrds}},
		},
		"API": {Reason: "A needless call is better than an incomplete block.", In: down, Want: wide},
	}, func(in Reader) velero.ResourceSelector {
		log, _ := logtest.NewNullLogger()
		got, err := NewItemBlock(NewResolver(in), log).AppliesTo()
		if err != nil {
			t.Error(err)
		}

		return got
	})
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
	s := newSession(t, c)
	for _, item := range []*unstructured.Unstructured{claim, xr} {
		s.related(item)
		s.take(item, &velerov1.Backup{})
	}
	for id, n := range c.asked {
		if n != 1 {
			t.Errorf("the plugin read %v %d times", id, n)
		}
	}
}
