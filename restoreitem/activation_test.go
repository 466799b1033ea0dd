package restoreitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// All tenants share what activates kinds, and a tenant chooses what an XR composes.
func TestOrderRequestsActivations(t *testing.T) {
	const policy, definition = "managedresourceactivationpolicies.apiextensions.crossplane.io//all",
		"managedresourcedefinitions.apiextensions.crossplane.io//buckets.cloud.example.org"
	tree := xptest.RestoreFirst(policy, definition)
	teamA := velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}}
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		spec   velerov1.RestoreSpec
		want   []string
		warns  int
	}{
		"All": {
			reason: "Policies and definitions come before the XRs that need them.", item: xptest.XRV2("m", tree),
			want: []string{"managedresourceactivationpolicies", "managedresourcedefinitions"},
		},
		"Labels": {
			reason: "A restore by labels brings them even without the labels.", item: xptest.XRV2("m", tree), want: []string{"managedresourceactivationpolicies", "managedresourcedefinitions"},
			spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
		},
		"Namespaces":     {reason: "A restore of namespaces activates no kind.", item: xptest.XRV2("m", tree), spec: teamA},
		"ClusterScoped":  {reason: "A claim's XR in a restore of namespaces activates no kind.", item: xptest.XR("x", tree), spec: teamA},
		"Claim":          {reason: "A claim in a restore of namespaces activates no kind.", item: xptest.Claim("c", tree), spec: teamA},
		"ManagedForged":  {reason: "An MR in a restore of namespaces cannot list activation policies.", item: xptest.NamespacedMR("b", tree), spec: teamA, warns: 1},
		"ManagedOfAll":   {reason: "An MR cannot list activation policies in any restore.", item: xptest.MR("b", tree), warns: 1},
		"NamedAsOwner":   {reason: "An owner reference to a policy activates no kind.", item: xptest.MR("b", xptest.ControlledBy(xptest.ActivationPolicy("all"))), spec: teamA},
		"NamedAsUsedBy":  {reason: "A Usage of a policy activates no kind in a restore of namespaces.", item: usageOf(xptest.ActivationPolicy("all")), spec: teamA, warns: 1},
		"NamedAsUsedAll": {reason: "In a restore of everything, a policy whose kind is not served is only named.", item: usageOf(xptest.ActivationPolicy("all")), warns: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, hook := logtest.NewNullLogger()
			out, err := NewOrder(Crossplane(), kindsFn(served), log, Shared{}).Execute(inputFor(tc.item, &velerov1.Restore{Spec: tc.spec}))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range out.AdditionalItems {
				if i.Group == xp.GroupAPIExtensions && i.Resource[:7] == "managed" {
					got = append(got, i.Resource)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" || len(hook.AllEntries()) != tc.warns {
				t.Errorf("%s\nwarned %d times, -want, +got:\n%s", tc.reason, len(hook.AllEntries()), diff)
			}
		})
	}
}

func usageOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	of := map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "resourceRef": map[string]any{"name": u.GetName()}}

	return xptest.Object(xp.GroupProtection+"/v1beta1", "Usage", xptest.Namespace, "u", xptest.Field(of, "spec", "of"))
}

// An MRD is restored as active as it was, without its owners: its provider takes it over.
func TestAdoptLeavesMRDsToTheirProviders(t *testing.T) {
	out := adopt(t, live(), xptest.ManagedDefinition("buckets", xptest.MR("b"), xptest.ControlledBy(xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p"))),
		restoreOf(nil))
	if out.err != nil || out.SkipRestore || out.OperationID != "" || len(out.logged) > 0 {
		t.Errorf("got %+v", out)
	}
}
