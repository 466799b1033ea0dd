package restoreitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// The file of a requested item can have another object, which Velero creates where that says.
func TestOrderTakesOnlyWhatIsInTheRequestedFile(t *testing.T) {
	claim := xptest.Claim("o")
	mr := xptest.MR("b", xptest.Labelled(xp.LabelClaimNamespace, xptest.Namespace))
	asking := xptest.With(claim, xptest.RestoreFirst("buckets.cloud.example.org//b", "localbuckets.cloud.example.org/team-a/l"))
	local := xptest.Object("cloud.example.org/v1alpha1", "LocalBucket", xptest.Namespace, "l")
	elsewhere := xptest.With(local, xptest.In("team-b"))
	mapped := teamA()
	mapped.NamespaceMapping = map[string]string{xptest.Namespace: "copy"}
	all := velerov1.RestoreSpec{}
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		spec   velerov1.RestoreSpec
		// after means that Velero has come back to the claim.
		after bool
		want  bool
	}{
		"Requested":   {reason: "The claim has requested it.", item: mr, spec: teamA(), want: true},
		"Local":       {reason: "The claim has requested it.", item: local, spec: teamA(), want: true},
		"LocalMapped": {reason: "Velero creates it in the mapped namespace.", item: local, spec: mapped, want: true},
		"Elsewhere":   {reason: "Velero would create it in the namespace of another tenant.", item: elsewhere, spec: teamA()},
		"Unmapped":    {reason: "Velero would create it in the namespace that the restore copies.", item: xptest.With(local, xptest.Field("m", "metadata", "name")), spec: mapped},
		"OtherName":   {reason: "Nothing has requested a cluster-scoped object of this name.", item: xptest.With(mr, xptest.Field("c", "metadata", "name")), spec: teamA()},
		"OtherGroup":  {reason: "Nothing has requested an object of this group.", item: xptest.Object("policies.example.org/v1", "Bucket", "", "b"), spec: teamA()},
		"OtherPlugin": {reason: "Another plugin has requested it.", item: xptest.Object("policies.example.org/v1", "Bucket", "", "b"), spec: teamA(), after: true, want: true},
		"Everything":  {reason: "Such a restore brings all that the backup has.", item: elsewhere, spec: all, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			requested, restore := &RequestedItems{}, restoreOf(nil)
			restore.Spec = tc.spec
			order := NewOrder(Crossplane(), kindsFn(served), log, Shared{Requested: requested})
			if _, err := order.Execute(inputFor(asking, restore)); err != nil {
				t.Fatal(err)
			}
			if tc.after {
				if _, err := NewAdopt(Crossplane(), live(), nil, log, Shared{Requested: requested}).Execute(inputFor(asking, restore)); err != nil {
					t.Fatal(err)
				}
			}
			out, err := order.Execute(inputFor(tc.item, restore))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, !out.SkipRestore); diff != "" {
				t.Errorf("%s\n-want restored, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
