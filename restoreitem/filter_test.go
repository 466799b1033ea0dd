package restoreitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Without a warning, an XR would stay held for what the resource filters exclude.
func TestOrderWarnsOfExcludedResources(t *testing.T) {
	mr := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")))
	local := xptest.Object(xptest.ManagedVersion, "LocalBucket", "team-a", "l")
	gone := xptest.MR("gone")
	xr := xptest.XR("x", xptest.Refs(mr, local, gone), xptest.UnresolvedRefs(gone))
	claim := xptest.Claim("o", xptest.OfXR(xr), xptest.RestoreFirst("xorders.example.org//x", "buckets.cloud.example.org//b"))
	excluded := func(resources ...string) velerov1.RestoreSpec {
		return velerov1.RestoreSpec{ExcludedResources: resources}
	}
	cases := map[string]struct {
		reason string
		items  []*unstructured.Unstructured
		spec   velerov1.RestoreSpec
		// want are the objects with a warning, and what is left out of theirs.
		want []string
	}{
		"Nothing":  {reason: "A restore without filters leaves nothing out.", items: []*unstructured.Unstructured{claim, xr, mr}},
		"All":      {reason: "A star includes all resources.", items: []*unstructured.Unstructured{xr}, spec: velerov1.RestoreSpec{IncludedResources: []string{"*"}}},
		"Composed": {reason: "The XR stays held for the excluded composed resource.", items: []*unstructured.Unstructured{xr}, spec: excluded("buckets"), want: []string{"XOrder x: buckets.cloud.example.org//b"}},
		"Included": {
			reason: "A resource that is not included is left out.", items: []*unstructured.Unstructured{xr},
			spec: velerov1.RestoreSpec{IncludedResources: []string{"xorders", "*.apiextensions.crossplane.io", "buckets"}},
			want: []string{"XOrder x: localbuckets.cloud.example.org/team-a/l"},
		},
		"OfClaim": {
			reason: "The claim reports the excluded resource, and its XR does not repeat it.", items: []*unstructured.Unstructured{claim, xr}, spec: excluded("buckets"),
			want: []string{"OrderClaim team-a/o: buckets.cloud.example.org//b"},
		},
		"Owner": {
			reason: "Two resources of one owner report it once.", items: []*unstructured.Unstructured{mr, xptest.With(mr, xptest.Field("c", "metadata", "name"))}, spec: excluded("xorders"),
			want: []string{"Bucket b: xorders.example.org//x"},
		},
		"Excluded": {
			reason: "An exclusion takes precedence over an inclusion.", items: []*unstructured.Unstructured{mr}, want: []string{"Bucket b: xorders.example.org//x"},
			spec: velerov1.RestoreSpec{IncludedResources: []string{"*"}, ExcludedResources: []string{"*"}},
		},
		"Secret": {
			reason: "The provider creates another Secret, without data that the cloud returns only once.", spec: excluded("secrets"), want: []string{"Bucket b: secrets/infra/s, as all Secrets"},
			items: []*unstructured.Unstructured{xptest.MR("b", xptest.PublishesTo("infra", "s")), xptest.MR("c", xptest.PublishesTo("infra", "t"))},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			o := NewOrder(Crossplane(), kindsFn(served), log, Shared{})
			restore := restoreOf(nil)
			restore.Spec = tc.spec
			var got []string
			for _, item := range tc.items {
				out, err := o.Execute(inputFor(item, restore))
				if err != nil {
					t.Fatal(err)
				}
				progress := velero.OperationProgress{}
				if !noteText(out.OperationID, &progress) {
					continue
				}
				_, left, _ := strings.Cut(progress.Description, "belongs with: ")
				left, _, _ = strings.Cut(left, ". ")
				got = append(got, xp.String(item)+": "+left)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A resource policy excludes single objects, and nothing that an action requests. So an XR that it
// includes gets all that it composes.
func TestOrderBringsTreesBesideAResourcePolicy(t *testing.T) {
	mr := xptest.MR("b")
	log, _ := logtest.NewNullLogger()
	restore := restoreOf(nil)
	restore.Spec.ResourcePolicy = &corev1.TypedLocalObjectReference{Kind: "configmap", Name: "p"}
	out, err := NewOrder(Crossplane(), kindsFn(served), log, Shared{}).Execute(inputFor(xptest.XR("x", xptest.Refs(mr), xptest.RestoreFirst()), restore))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]velero.ResourceIdentifier{id("cloud.example.org", "buckets", "", "b")}, out.AdditionalItems); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
