package restoreitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A provider's credentials are the platform's, and in no namespace if the config is cluster-scoped.
func TestOrderOfProviderConfigs(t *testing.T) {
	const group, modern = "cloud.example.org", "m.example.org"
	config := func(group, kind, namespace string) *unstructured.Unstructured {
		return xptest.Object(group+"/v1", kind, namespace, "default")
	}
	own := config(group, "ProviderConfig", "")
	owned := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return xptest.NamespacedMR("b", xptest.Labelled(xp.LabelComposite, "x"), xptest.Annotated(xp.AnnotationResourceName, "b"),
			xptest.OwnedBy(metav1.OwnerReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName()}))
	}
	usage := func(kind, namespace string) *unstructured.Unstructured {
		return xptest.Object("protection.crossplane.io/v1beta1", kind, namespace, "u",
			xptest.JSON(`{"spec":{"of":{"apiVersion":"`+group+`/v1","kind":"ProviderConfig","resourceRef":{"name":"default"}}}}`))
	}
	outside := func(who, kind string) ordering {
		return ordering{Warned: []string{who + " names " + kind + " default, which is not restored first, because it is outside of its namespace [OutsideNamespace]"}}
	}
	first := func(group, resource, namespace string) ordering {
		return ordering{First: []velero.ResourceIdentifier{id(group, resource, namespace, "default")}}
	}
	asked := []*unstructured.Unstructured{own, config(modern, "ClusterProviderConfig", ""), xptest.XR("default")}
	labels := velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}}
	runOrders(t, map[string]orderCase{
		"Owner":   {reason: "A tenant can name any ProviderConfig as an owner.", item: owned(own), want: outside("Bucket team-a/b", "ProviderConfig")},
		"Cluster": {reason: "A tenant can name any ClusterProviderConfig of Crossplane v2 as an owner.", item: owned(asked[1]), want: outside("Bucket team-a/b", "ClusterProviderConfig")},
		"Local": {
			reason: "A ProviderConfig in the tenant's namespace belongs to the tenant.", item: owned(config(modern, "ProviderConfig", "team-a")),
			want: first(modern, "providerconfigs", "team-a"),
		},
		"Usage":        {reason: "A Usage can name any ProviderConfig too.", item: usage("Usage", "team-a"), want: outside("Usage team-a/u", "ProviderConfig")},
		"ClusterUsage": {reason: "A cluster-scoped Usage belongs to the platform.", item: usage("ClusterUsage", ""), want: first(group, "providerconfigs", "")},
		"ClusterUsageOfNamespace": {
			reason: "A cluster-scoped Usage stays the platform's in a restore of namespaces.", item: usage("ClusterUsage", ""), spec: teamA(), want: first(group, "providerconfigs", ""),
		},
		"XR": {
			reason: "A namespaced XR composes only in its own namespace.", spec: labels, item: xptest.XRV2("x", xptest.RestoreFirst(), xptest.Refs(own)),
			want: outside("Order team-a/x", "ProviderConfig"),
		},
		"ClusterXR": {
			reason: "A cluster-scoped XR can compose a ProviderConfig.", spec: labels, item: xptest.XR("x", xptest.RestoreFirst(), xptest.Refs(own)),
			want: first(group, "providerconfigs", ""),
		},
		"Unlisted":       {reason: "Only a cluster-scoped object can have asked for it, so it comes.", item: own, spec: teamA()},
		"UnlistedModern": {reason: "Only a cluster-scoped object can have asked for a ClusterProviderConfig, so it comes.", item: asked[1], spec: teamA()},
		"Listed": {
			reason: "A ProviderConfig in a claim's list must belong to the claim, or stay out.", item: own, asked: asked, spec: teamA(),
			want: ordering{Skipped: true, Warned: []string{"it is cluster-scoped, and it is of no claim in the restored namespaces. To restore it, add --include-cluster-resources=true [ClusterScopedLeftOut]"}},
		},
		"ListedOwn": {
			reason: "An XR can compose a ProviderConfig, which has the claim's labels then.", item: xptest.With(own, xptest.Labelled(xp.LabelClaimNamespace, "team-a")), asked: asked, spec: teamA(),
		},
		"AskedOther": {
			reason: "Another kind must have the claim's labels.", item: asked[2], asked: asked, spec: teamA(),
			want: ordering{Skipped: true, Warned: []string{"it is cluster-scoped, and it is of no claim in the restored namespaces. To restore it, add --include-cluster-resources=true [ClusterScopedLeftOut]"}},
		},
	})
}

// A tenant's annotation would make Velero ignore the restore's filters.
func TestOrderTakesMustRestoreOff(t *testing.T) {
	x := xptest.XR("x")
	kept := xptest.Annotated("theirs", "kept")
	plain := xptest.Claim("o", xptest.OfXR(x), kept)
	must := func(u *unstructured.Unstructured, value string) *unstructured.Unstructured {
		return xptest.With(u, xptest.Annotated(xp.AnnotationMustRestore, value))
	}
	xr := []velero.ResourceIdentifier{xorder("x")}
	type want struct {
		// Updated is the returned item, nil if the action did not change it.
		Updated map[string]any
		First   []velero.ResourceIdentifier
	}
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		spec   velerov1.RestoreSpec
		want   want
	}{
		"True":  {reason: "Items that come first are asked for despite the annotation.", item: must(plain, "true"), want: want{Updated: stripped(plain).Object, First: xr}},
		"Other": {reason: "The annotation's value does not matter.", item: must(plain, "?"), want: want{Updated: stripped(plain).Object, First: xr}},
		"None":  {reason: "Without the annotation Velero need not read the item again.", item: plain, want: want{First: xr}},
		"Filtered": {
			reason: "The filters of the Restore still apply.", item: must(plain, "true"), spec: velerov1.RestoreSpec{IncludeClusterResources: ptr.To(false)},
			want: want{Updated: stripped(plain).Object},
		},
		"NothingFirst": {
			reason: "The plugin removes the annotation even if it asks for nothing.", item: must(xptest.MR("b", kept), "true"), want: want{Updated: stripped(xptest.MR("b", kept)).Object},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			before := tc.item.DeepCopy()
			out, err := NewOrder(Crossplane(), kindsFn(served), log, Shared{}).Execute(inputFor(tc.item, &velerov1.Restore{Spec: tc.spec}))
			if err != nil {
				t.Fatal(err)
			}
			got := want{First: out.AdditionalItems}
			if out.UpdatedItem != nil {
				got.Updated = out.UpdatedItem.UnstructuredContent()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || out.SkipRestore {
				t.Errorf("%s\nskipped %v, -want, +got:\n%s", tc.reason, out.SkipRestore, diff)
			}
			if diff := cmp.Diff(before, tc.item); diff != "" {
				t.Errorf("the backed-up item was changed: %s", diff)
			}
		})
	}
}
