package restoreitem

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var errAPI = errors.New("the API server is on holiday")

// served maps the kinds of package xptest, as a cluster with all of them.
func served(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	kinds := map[string]struct {
		resource   string
		namespaced bool
	}{
		xptest.LegacyKind: {"xorders", false}, xptest.ClaimKind: {"orderclaims", true}, xptest.ModernKind: {"orders", true},
		xptest.ManagedKind: {"buckets", false}, "Composition": {"compositions", false}, "LocalBucket": {"localbuckets", true}, "ConfigMap": {"configmaps", true},
		"Secret": {"secrets", true}, "Node": {"nodes", false}, "Provider": {"providers", false}, "Usage": {"usages", gvk.Group == xp.GroupProtection},
		"ProviderConfig": {"providerconfigs", gvk.Group == "m.example.org"}, "ClusterProviderConfig": {"clusterproviderconfigs", false},
		"ClusterUsage": {"clusterusages", false}, "ManagedResourceActivationPolicy": {"managedresourceactivationpolicies", false},
	}
	k, ok := kinds[gvk.Kind]
	if !ok {
		return schema.GroupVersionResource{}, false, &meta.NoKindMatchError{GroupKind: gvk.GroupKind()}
	}

	return gvk.GroupVersion().WithResource(k.resource), k.namespaced, nil
}

func failing(schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	return schema.GroupVersionResource{}, false, errAPI
}

func unserved(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	return schema.GroupVersionResource{}, false, &meta.NoKindMatchError{GroupKind: gvk.GroupKind()}
}

func id(group, resource, namespace, name string) velero.ResourceIdentifier {
	return velero.ResourceIdentifier{GroupResource: schema.GroupResource{Group: group, Resource: resource}, Namespace: namespace, Name: name}
}

// stripped returns a backed-up item as Velero gives it to an action: without UID, owners and
// status.
func stripped(u *unstructured.Unstructured) *unstructured.Unstructured {
	return xptest.With(u, xptest.Without("metadata", "uid"), xptest.Without("metadata", "ownerReferences"), xptest.Without("metadata", "resourceVersion"),
		xptest.Without("metadata", "generateName"), xptest.Without("status"))
}

func inputFor(u *unstructured.Unstructured, restore *velerov1.Restore) *velero.RestoreItemActionExecuteInput {
	return &velero.RestoreItemActionExecuteInput{Item: stripped(u), ItemFromBackup: u, Restore: restore}
}

func TestOrder(t *testing.T) {
	x := xptest.XR("x")
	revision, composition := id(xp.GroupAPIExtensions, "compositionrevisions", "", xptest.RevisionName), id(xp.GroupAPIExtensions, "compositions", "", "orders")
	xrd := id(xp.GroupAPIExtensions, "compositeresourcedefinitions", "", "xorders.example.org")
	self := id("example.org", "xorders", "", "x")
	tree := xptest.Tree("xorders.example.org//x", "buckets.cloud.example.org//b")
	type want struct {
		First []velero.ResourceIdentifier
		Err   error
		Warns int
	}
	cases := map[string]struct {
		reason string
		mapper ResourceMapperFn
		item   *unstructured.Unstructured
		want   want
	}{
		"Composed": {
			reason: "After its XR.",
			mapper: served, item: xptest.MR("b", xptest.ControlledBy(x)), want: want{First: []velero.ResourceIdentifier{self}},
		},
		"ComposedInXR2": {
			reason: "After its XR, in the same namespace.",
			mapper: served,
			item:   xptest.NamespacedMR("b", xptest.ControlledBy(xptest.ModernXR("x"))),
			want:   want{First: []velero.ResourceIdentifier{id("example.org", "orders", "team-a", "x")}},
		},
		"ClusterOwner": {
			reason: "A cluster-scoped owner has no namespace, whatever its composed resource has.",
			mapper: served, item: xptest.NamespacedMR("b", xptest.ControlledBy(x)), want: want{First: []velero.ResourceIdentifier{self}},
		},
		"Nested": {
			reason: "A nested XR after its parent, and after what it needs itself.", mapper: served, item: xptest.XR("child", xptest.ControlledBy(x)),
			want: want{First: []velero.ResourceIdentifier{self, revision, composition, xrd}},
		},
		"XR": {
			reason: "After what it runs on, which it names itself.",
			mapper: served, item: x, want: want{First: []velero.ResourceIdentifier{revision, composition, xrd}},
		},
		"ModernXR": {
			reason: "The same where Crossplane v2 keeps it.", mapper: served, item: xptest.ModernXR("x"),
			want: want{First: []velero.ResourceIdentifier{revision, composition, id(xp.GroupAPIExtensions, "compositeresourcedefinitions", "", "orders.example.org")}},
		},
		"NewXR": {
			reason: "An XR that was never reconciled needs its XRD.",
			mapper: served, item: xptest.XR("x", xptest.NeverComposed(), xptest.Without("spec", "compositionRef")), want: want{First: []velero.ResourceIdentifier{xrd}},
		},
		"XRUnserved": {
			reason: "The name of an XRD that is not there can't be known.",
			mapper: unserved, item: x, want: want{First: []velero.ResourceIdentifier{revision, composition}},
		},
		"XRWithTree": {
			reason: "The backup knew it all.",
			mapper: failing, item: xptest.XR("x", tree), want: want{First: []velero.ResourceIdentifier{self, id("cloud.example.org", "buckets", "", "b")}},
		},
		"Claim": {
			reason: "After its XR, which is all that it names.",
			mapper: served, item: xptest.Claim("o", xptest.OfXR(x)), want: want{First: []velero.ResourceIdentifier{self}},
		},
		"ClaimOfTree": {
			reason: "The backup knew the whole tree.",
			mapper: failing,
			item:   xptest.Claim("o", xptest.OfXR(x), tree),
			want:   want{First: []velero.ResourceIdentifier{self, id("cloud.example.org", "buckets", "", "b")}},
		},
		"NewClaim": {reason: "A claim without an XR is after nothing.", mapper: served, item: xptest.Claim("o")},
		"Secret": {
			reason: "After what publishes in it.",
			mapper: served, item: xptest.Secret("s", xptest.ControlledBy(x)), want: want{First: []velero.ResourceIdentifier{self}},
		},
		"AllOwners": {
			reason: "After each owner: one that came later would find its own reference gone.", mapper: served,
			item: xptest.NamespacedMR("b", xptest.ControlledBy(x), xptest.OwnedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "helper"})),
			want: want{First: []velero.ResourceIdentifier{self, id("", "configmaps", "team-a", "helper")}},
		},
		"OwnSecret": {
			reason: "Before its connection secret, even if that is one of its owners: the Secret would come back without its controller.", mapper: served,
			item: xptest.NamespacedMR("b", xptest.ControlledBy(x), xptest.Field("s", "spec", "writeConnectionSecretToRef", "name"),
				xptest.OwnedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "s"}),
				xptest.OwnedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "another"})),
			want: want{First: []velero.ResourceIdentifier{self, id("", "secrets", "team-a", "another")}},
		},
		"PackageRevision": {
			reason: "After its package, which says whether it comes back at all.", mapper: served,
			item: xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p-1", xptest.ControlledBy(xptest.Object("pkg.crossplane.io/v1", "Provider", "", "p"))),
			want: want{First: []velero.ResourceIdentifier{id("pkg.crossplane.io", "providers", "", "p")}},
		},
		"Usage": {
			reason: "After what it uses, or else Crossplane has nothing to label as in use.", mapper: served,
			item: xptest.Object("apiextensions.crossplane.io/v1beta1", "Usage", "", "u", xptest.JSON(`{"spec":{
				"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","resourceRef":{"name":"b"}},
				"by":{"apiVersion":"example.org/v1alpha1","kind":"XOrder","resourceRef":{"name":"x"}}}}`)),
			want: want{First: []velero.ResourceIdentifier{id("cloud.example.org", "buckets", "", "b"), self}},
		},
		"ComposedUsage": {
			reason: "After its XR too.", mapper: served,
			item: xptest.Object("protection.crossplane.io/v1beta1", "Usage", "team-a", "u", xptest.ControlledBy(x), xptest.JSON(
				`{"spec":{"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"LocalBucket","resourceRef":{"name":"b"}}}}`)),
			want: want{First: []velero.ResourceIdentifier{self, id("cloud.example.org", "localbuckets", "team-a", "b")}},
		},
		"OtherSecret": {
			reason: "Other Secrets are none of our business.",
			mapper: failing, item: xptest.Secret("s", xptest.ControlledBy(x), xptest.Field("Opaque", "type")),
		},
		"Unrelated": {
			reason: "A tenant's own resources are none of our business.",
			mapper: failing, item: xptest.Object("example.org/v1", "Thing", "team-a", "t", xptest.Field(map[string]any{"a": "b"}, "spec")),
		},
		"MRWithTree": {
			reason: "After its ProviderConfig, which the backup has found.", mapper: failing,
			item: xptest.MR("b", xptest.JSON(`{"spec":{"providerConfigRef":{"name":"default"}}}`), xptest.Tree("providerconfigs.example.org//default")),
			want: want{First: []velero.ResourceIdentifier{id("example.org", "providerconfigs", "", "default")}},
		},
		"FreeMR": {reason: "An MR that nothing composed is after nothing.", mapper: failing, item: xptest.MR("b")},
		"Rebuilt": {
			reason: "What is not restored waits for nothing.",
			mapper: failing, item: xptest.Object("ops.crossplane.io/v1alpha1", "Operation", "", "o", xptest.ControlledBy(x)),
		},
		"Unserved": {
			reason: "What can't be restored is not waited for, but named.",
			mapper: unserved, item: xptest.MR("b", xptest.ControlledBy(x)), want: want{Warns: 1},
		},
		"Forgotten": {reason: "The claim of an unserved XR is not lost with it.", mapper: unserved, item: xptest.Claim("o", xptest.OfXR(x)), want: want{Warns: 1}},
		"API": {
			reason: "Order must not be given up for a failure that passes.",
			mapper: failing, item: xptest.MR("b", xptest.ControlledBy(x)), want: want{Err: errAPI},
		},
		"APIOfXRD": {reason: "The same for an XRD.", mapper: failing, item: x, want: want{Err: errAPI}},
		"APIOfXR":  {reason: "The same for a claim's XR.", mapper: failing, item: xptest.Claim("o", xptest.OfXR(x)), want: want{Err: errAPI}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, hook := logtest.NewNullLogger()
			before := tc.item.DeepCopy()
			out, err := NewOrder(Crossplane(), tc.mapper, &RequestedItems{}, log).Execute(inputFor(tc.item, &velerov1.Restore{}))
			got := want{Err: err, Warns: len(hook.AllEntries())}
			if out != nil {
				got.First = out.AdditionalItems
				if out.UpdatedItem != nil || out.SkipRestore || out.OperationID != "" {
					t.Errorf("order changes nothing but the order: %+v", out)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, tc.item); diff != "" {
				t.Errorf("the backed-up item was changed: %s", diff)
			}
		})
	}
}

func TestOrderMalformedTree(t *testing.T) {
	log, hook := logtest.NewNullLogger()
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")), xptest.Field([]any{int64(1)}, "metadata", xp.FieldRestoreFirst))
	out, err := NewOrder(Crossplane(), ResourceMapperFn(served), &RequestedItems{}, log).Execute(inputFor(claim, &velerov1.Restore{}))
	if err != nil {
		t.Fatal(err)
	}
	if len(out.AdditionalItems) != 1 || out.AdditionalItems[0].Name != "x" || len(hook.AllEntries()) != 1 {
		t.Errorf("What is not this plugin's list is named, and the claim's XR still comes first: %+v, %d warnings", out.AdditionalItems, len(hook.AllEntries()))
	}
}

func TestOrderHasNoOperations(t *testing.T) {
	o := NewOrder(Crossplane(), nil, &RequestedItems{}, nil)
	if _, err := o.Progress("id", nil); err == nil {
		t.Error("An operation that was never started must not look as if it were under way.")
	}
	if err := o.Cancel("id", nil); err != nil {
		t.Error(err)
	}
	if ready, err := o.AreAdditionalItemsReady(nil, nil); !ready || err != nil {
		t.Errorf("existence is enough; got %v, %v", ready, err)
	}
}
