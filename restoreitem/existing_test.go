package restoreitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func updating() *velerov1.Restore {
	r := restoreOf(nil)
	r.Spec.ExistingResourcePolicy = velerov1.PolicyTypeUpdate

	return r
}

// Another writer, such as Git, creates objects while the restore runs. With the policy update Velero
// writes the backup's resourceRefs over an XR that Crossplane has composed anew.
func TestAdoptLeavesWhatIsCreatedMeanwhile(t *testing.T) {
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
	}{
		"XR":     {reason: "Its resourceRefs name what it composes now.", item: xptest.XR("x", xptest.Refs(xptest.MR("b")))},
		"Modern": {reason: "A namespaced XR lists its resources, too.", item: xptest.XRV2("x", xptest.Refs(xptest.NamespacedMR("b")))},
		"Claim":  {reason: "It is bound to another XR.", item: xptest.Claim("o", xptest.OfXR(xptest.XR("x")))},
		"MR":     {reason: "It manages another external resource.", item: xptest.MR("b")},
		"Secret": {reason: "Its publisher has published again.", item: xptest.Secret("s")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := live()
			if _, err := c.Exists(t.Context(), xp.RefTo(tc.item)); err != nil {
				t.Fatal(err)
			}
			c.since = []*unstructured.Unstructured{tc.item}
			if got := adopt(t, c, tc.item, updating()); got.err != nil || !got.SkipRestore {
				t.Errorf("%s\nVelero must not write the item over it: %+v", tc.reason, got)
			}
		})
	}
}

// An object can be created between the action and Velero's write.
func TestAdoptRefusesUpdates(t *testing.T) {
	config := xptest.Object("cloud.example.org/v1beta1", "ProviderConfig", "", "default")
	cases := map[string]struct {
		reason  string
		item    *unstructured.Unstructured
		restore *velerov1.Restore
		want    bool
	}{
		"XR":       {reason: "The API server must refuse an update of an XR.", item: xptest.XR("x"), restore: updating(), want: true},
		"Claim":    {reason: "The API server must refuse an update of a claim.", item: xptest.Claim("o"), restore: updating(), want: true},
		"FreeMR":   {reason: "The item needs no other change.", item: xptest.MR("b"), restore: updating(), want: true},
		"Secret":   {reason: "The API server must refuse an update of a connection secret.", item: xptest.Secret("s"), restore: updating(), want: true},
		"Composed": {reason: "The API server accepts no status of a ConfigMap or a Deployment with the field.", item: xptest.Object("v1", "ConfigMap", xptest.Namespace, "c", xptest.ControlledBy(xptest.XR("x")), xptest.Labelled(xp.LabelComposite, "x")), restore: updating()},
		"Config":   {reason: "A user decides whether a restore updates a ProviderConfig.", item: config, restore: updating()},
		"None":     {reason: "Velero leaves what exists as it is.", item: xptest.XR("x"), restore: restoreOf(nil)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := adopt(t, live(), tc.item, tc.restore)
			if out.err != nil {
				t.Fatal(out.err)
			}
			got := out.object != nil && out.object.GetDeletionGracePeriodSeconds() != nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
