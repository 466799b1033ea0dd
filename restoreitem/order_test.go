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

// A kindsFn maps kinds, of which none is one of claims.
type kindsFn func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error)

func (fn kindsFn) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	return fn(gvk)
}

func (kindsFn) IsClaimKind(schema.GroupVersionKind) (bool, error) { return false, nil }

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
	tree := xptest.RestoreFirst("xorders.example.org//x", "buckets.cloud.example.org//b")
	type want struct {
		First []velero.ResourceIdentifier
		Err   error
		Warns int
	}
	cases := map[string]struct {
		reason string
		mapper kindsFn
		item   *unstructured.Unstructured
		want   want
	}{
		"Composed": {
			reason: "A composed resource comes after its XR.",
			mapper: served, item: xptest.MR("b", xptest.ControlledBy(x)), want: want{First: []velero.ResourceIdentifier{self}},
		},
		"ComposedInXR2": {
			reason: "A namespaced composed resource comes after its XR in the same namespace.",
			mapper: served,
			item:   xptest.NamespacedMR("b", xptest.ControlledBy(xptest.XRV2("x"))),
			want:   want{First: []velero.ResourceIdentifier{id("example.org", "orders", "team-a", "x")}},
		},
		"ClusterOwner": {
			reason: "A cluster-scoped owner has no namespace, even for a namespaced composed resource.",
			mapper: served, item: xptest.NamespacedMR("b", xptest.ControlledBy(x)), want: want{First: []velero.ResourceIdentifier{self}},
		},
		"Nested": {
			reason: "A nested XR comes after its parent and the objects that it needs.", mapper: served, item: xptest.XR("child", xptest.ControlledBy(x)),
			want: want{First: []velero.ResourceIdentifier{self, revision, composition, xrd}},
		},
		"XR": {
			reason: "An XR comes after the objects that it names itself.",
			mapper: served, item: x, want: want{First: []velero.ResourceIdentifier{revision, composition, xrd}},
		},
		"ModernXR": {
			reason: "A namespaced XR names them where Crossplane v2 keeps them.", mapper: served, item: xptest.XRV2("x"),
			want: want{First: []velero.ResourceIdentifier{revision, composition, id(xp.GroupAPIExtensions, "compositeresourcedefinitions", "", "orders.example.org")}},
		},
		"NewXR": {
			reason: "An XR that was never reconciled needs its XRD.",
			mapper: served, item: xptest.XR("x", xptest.NeverComposed(), xptest.Without("spec", "compositionRef")), want: want{First: []velero.ResourceIdentifier{xrd}},
		},
		"XRUnserved": {
			reason: "Without the served kind the XRD's name is unknown.",
			mapper: unserved, item: x, want: want{First: []velero.ResourceIdentifier{revision, composition}},
		},
		"XRWithTree": {
			reason: "The backup lists all objects that the XR needs.",
			mapper: failing, item: xptest.XR("x", tree), want: want{First: []velero.ResourceIdentifier{self, id("cloud.example.org", "buckets", "", "b")}},
		},
		"Claim": {
			reason: "A claim comes after its XR, the only object that it names.",
			mapper: served, item: xptest.Claim("o", xptest.OfXR(x)), want: want{First: []velero.ResourceIdentifier{self}},
		},
		"ClaimOfTree": {
			reason: "The backup lists the claim's whole tree.",
			mapper: failing,
			item:   xptest.Claim("o", xptest.OfXR(x), tree),
			want:   want{First: []velero.ResourceIdentifier{self, id("cloud.example.org", "buckets", "", "b")}},
		},
		"NewClaim": {reason: "A claim without an XR has nothing before it.", mapper: served, item: xptest.Claim("o")},
		"Secret": {
			reason: "A connection secret comes after its publisher.",
			mapper: served, item: xptest.Secret("s", xptest.ControlledBy(x)), want: want{First: []velero.ResourceIdentifier{self}},
		},
		"AllOwners": {
			reason: "An object comes after each owner, or its owner reference would be dropped.", mapper: served,
			item: xptest.NamespacedMR("b", xptest.ControlledBy(x), xptest.OwnedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "helper"})),
			want: want{First: []velero.ResourceIdentifier{self, id("", "configmaps", "team-a", "helper")}},
		},
		"OwnSecret": {
			reason: "A publisher comes before its connection secret, or the Secret would come back without a controller.", mapper: served,
			item: xptest.NamespacedMR("b", xptest.ControlledBy(x), xptest.Field("s", "spec", "writeConnectionSecretToRef", "name"),
				xptest.OwnedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "s"}),
				xptest.OwnedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "another"})),
			want: want{First: []velero.ResourceIdentifier{self, id("", "secrets", "team-a", "another")}},
		},
		"PackageRevision": {
			reason: "A package revision comes after its package, which decides whether the revision comes back.", mapper: served,
			item: xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p-1", xptest.ControlledBy(xptest.Object("pkg.crossplane.io/v1", "Provider", "", "p"))),
			want: want{First: []velero.ResourceIdentifier{id("pkg.crossplane.io", "providers", "", "p")}},
		},
		"Usage": {
			reason: "A Usage comes after the object that it protects, so Crossplane can label that object.", mapper: served,
			item: xptest.Object("apiextensions.crossplane.io/v1beta1", "Usage", "", "u", xptest.JSON(`{"spec":{
				"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","resourceRef":{"name":"b"}},
				"by":{"apiVersion":"example.org/v1alpha1","kind":"XOrder","resourceRef":{"name":"x"}}}}`)),
			want: want{First: []velero.ResourceIdentifier{id("cloud.example.org", "buckets", "", "b"), self}},
		},
		"ComposedUsage": {
			reason: "A composed Usage also comes after its XR.", mapper: served,
			item: xptest.Object("protection.crossplane.io/v1beta1", "Usage", "team-a", "u", xptest.ControlledBy(x), xptest.JSON(
				`{"spec":{"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"LocalBucket","resourceRef":{"name":"b"}}}}`)),
			want: want{First: []velero.ResourceIdentifier{self, id("cloud.example.org", "localbuckets", "team-a", "b")}},
		},
		"OtherSecret": {
			reason: "The plugin orders no other Secrets.",
			mapper: failing, item: xptest.Secret("s", xptest.ControlledBy(x), xptest.Field("Opaque", "type")),
		},
		"Unrelated": {
			reason: "The plugin orders no resources outside Crossplane.",
			mapper: failing, item: xptest.Object("example.org/v1", "Thing", "team-a", "t", xptest.Field(map[string]any{"a": "b"}, "spec")),
		},
		"MRWithTree": {
			reason: "An MR comes after the ProviderConfig that the backup found.", mapper: failing,
			item: xptest.MR("b", xptest.JSON(`{"spec":{"providerConfigRef":{"name":"default"}}}`), xptest.RestoreFirst("providerconfigs.example.org//default")),
			want: want{First: []velero.ResourceIdentifier{id("example.org", "providerconfigs", "", "default")}},
		},
		"MRWithPolicy": {
			reason: "The policy of a reference does not hide its name.", mapper: failing,
			item: xptest.MR("b", xptest.JSON(`{"spec":{"providerConfigRef":{"name":"default","policy":{"resolve":"Always"}}}}`), xptest.RestoreFirst("providerconfigs.example.org//default")),
			want: want{First: []velero.ResourceIdentifier{id("example.org", "providerconfigs", "", "default")}},
		},
		"FreeMR": {reason: "An MR without an XR has nothing before it.", mapper: failing, item: xptest.MR("b")},
		"Rebuilt": {
			reason: "An object that is not restored has nothing before it.",
			mapper: failing, item: xptest.Object("ops.crossplane.io/v1alpha1", "Operation", "", "o", xptest.ControlledBy(x)),
		},
		"Unserved": {
			reason: "The plugin names an owner that cannot be restored and does not wait for it.",
			mapper: unserved, item: xptest.MR("b", xptest.ControlledBy(x)), want: want{Warns: 1},
		},
		"ClaimOfUnservedXR": {reason: "The claim of an unserved XR still comes back.", mapper: unserved, item: xptest.Claim("o", xptest.OfXR(x)), want: want{Warns: 1}},
		"API": {
			reason: "A temporary API error must not change the order.",
			mapper: failing, item: xptest.MR("b", xptest.ControlledBy(x)), want: want{Err: errAPI},
		},
		"APIOfXRD": {reason: "A temporary API error about the XRD must not change the order.", mapper: failing, item: x, want: want{Err: errAPI}},
		"APIOfXR":  {reason: "A temporary API error about the claim's XR must not change the order.", mapper: failing, item: xptest.Claim("o", xptest.OfXR(x)), want: want{Err: errAPI}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, hook := logtest.NewNullLogger()
			before := tc.item.DeepCopy()
			out, err := NewOrder(Crossplane(), tc.mapper, log, Shared{}).Execute(inputFor(tc.item, &velerov1.Restore{}))
			got := want{Err: err, Warns: len(hook.AllEntries())}
			if out != nil {
				got.First = out.AdditionalItems
				if out.UpdatedItem != nil || out.SkipRestore || out.OperationID != "" {
					t.Errorf("Order must change only the order: %+v", out)
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
	out, err := NewOrder(Crossplane(), kindsFn(served), log, Shared{}).Execute(inputFor(claim, &velerov1.Restore{}))
	if err != nil {
		t.Fatal(err)
	}
	if len(out.AdditionalItems) != 1 || out.AdditionalItems[0].Name != "x" || len(hook.AllEntries()) != 1 {
		t.Errorf("the plugin must name a foreign list and still ask for the claim's XR: %+v, %d warnings", out.AdditionalItems, len(hook.AllEntries()))
	}
}

func TestOrderHasNoOperations(t *testing.T) {
	o := NewOrder(Crossplane(), nil, nil, Shared{})
	if _, err := o.Progress("id", nil); err == nil {
		t.Error("want an error for an operation that was never started")
	}
	if err := o.Cancel("id", nil); err != nil {
		t.Error(err)
	}
	if ready, err := o.AreAdditionalItemsReady(nil, nil); !ready || err != nil {
		t.Errorf("an existing item must be ready; got %v, %v", ready, err)
	}
}
