package restoreitem

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var errAPI, errAny = errors.New("the API server is on holiday"), errors.New("any error")

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
	first := func(items ...velero.ResourceIdentifier) ordering { return ordering{First: items} }
	runOrders(t, map[string]orderCase{
		"Composed": {reason: "A composed resource comes after its XR.", item: xptest.MR("b", xptest.ControlledBy(x)), want: first(self)},
		"Nested": {
			reason: "A nested XR comes after its parent and the objects that it needs.", item: xptest.XR("child", xptest.ControlledBy(x)),
			want: first(self, revision, composition, xrd),
		},
		"XR": {reason: "An XR comes after the objects that it names itself.", item: x, want: first(revision, composition, xrd)},
		"ModernXR": {
			reason: "A namespaced XR names them where Crossplane v2 keeps them.", item: xptest.XRV2("x"),
			want: first(revision, composition, id(xp.GroupAPIExtensions, "compositeresourcedefinitions", "", "orders.example.org")),
		},
		"NewXR": {
			reason: "An XR that was never reconciled needs its XRD.",
			item:   xptest.XR("x", xptest.NeverComposed(), xptest.Without("spec", "compositionRef")), want: first(xrd),
		},
		"XRUnserved": {reason: "Without the served kind the XRD's name is unknown.", kinds: unserved, item: x, want: first(revision, composition)},
		"XRWithTree": {
			reason: "The backup lists all objects that the XR needs.",
			kinds:  failing, item: xptest.XR("x", tree), want: first(self, id("cloud.example.org", "buckets", "", "b")),
		},
		"Claim": {reason: "A claim comes after its XR, the only object that it names.", item: xptest.Claim("o", xptest.OfXR(x)), want: first(self)},
		"MalformedTree": {
			reason: "A list that another writer wrote is named, and the claim's XR still comes first.",
			item:   xptest.Claim("o", xptest.OfXR(x), xptest.Field([]any{int64(1)}, "metadata", xp.FieldRestoreFirst)),
			want:   ordering{First: []velero.ResourceIdentifier{self}, Warned: []string{string(reason.BackupTampered)}},
		},
		"NewClaim": {reason: "A claim without an XR has nothing before it.", item: xptest.Claim("o")},
		"Secret":   {reason: "A connection secret comes after its publisher.", item: xptest.Secret("s", xptest.ControlledBy(x)), want: first(self)},
		"AllOwners": {
			reason: "An object comes after each owner, or its owner reference would be dropped.",
			item:   xptest.NamespacedMR("b", xptest.ControlledBy(x), xptest.OwnedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "helper"})),
			want:   first(self, id("", "configmaps", "team-a", "helper")),
		},
		"OwnSecret": {
			reason: "A publisher comes before its connection secret, or the Secret would come back without a controller.",
			item: xptest.NamespacedMR("b", xptest.ControlledBy(x), xptest.Field("s", "spec", "writeConnectionSecretToRef", "name"),
				xptest.OwnedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "s"}),
				xptest.OwnedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "another"})),
			want: first(self, id("", "secrets", "team-a", "another")),
		},
		"PackageRevision": {
			reason: "A package revision comes after its package, which decides whether the revision comes back.",
			item:   xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p-1", xptest.ControlledBy(xptest.Object("pkg.crossplane.io/v1", "Provider", "", "p"))),
			want:   first(id("pkg.crossplane.io", "providers", "", "p")),
		},
		"Usage": {
			reason: "A Usage comes after the object that it protects, so Crossplane can label that object.",
			item: xptest.Object("apiextensions.crossplane.io/v1beta1", "Usage", "", "u", xptest.JSON(`{"spec":{
				"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","resourceRef":{"name":"b"}},
				"by":{"apiVersion":"example.org/v1alpha1","kind":"XOrder","resourceRef":{"name":"x"}}}}`)),
			want: first(id("cloud.example.org", "buckets", "", "b"), self),
		},
		"ComposedUsage": {
			reason: "A composed Usage also comes after its XR.",
			item: xptest.Object("protection.crossplane.io/v1beta1", "Usage", "team-a", "u", xptest.ControlledBy(x), xptest.JSON(
				`{"spec":{"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"LocalBucket","resourceRef":{"name":"b"}}}}`)),
			want: first(self, id("cloud.example.org", "localbuckets", "team-a", "b")),
		},
		"OtherSecret": {
			reason: "The plugin orders no other Secrets.", kinds: failing, item: xptest.Secret("s", xptest.ControlledBy(x), xptest.Field("Opaque", "type")),
		},
		"Unrelated": {
			reason: "The plugin orders no resources outside Crossplane.",
			kinds:  failing, item: xptest.Object("example.org/v1", "Thing", "team-a", "t", xptest.Field(map[string]any{"a": "b"}, "spec")),
		},
		"MRWithTree": {
			reason: "An MR comes after the ProviderConfig that the backup found.", kinds: failing,
			item: xptest.MR("b", xptest.JSON(`{"spec":{"providerConfigRef":{"name":"default"}}}`), xptest.RestoreFirst("providerconfigs.example.org//default")),
			want: first(id("example.org", "providerconfigs", "", "default")),
		},
		"Rebuilt": {
			reason: "An object that is not restored has nothing before it.",
			kinds:  failing, item: xptest.Object("ops.crossplane.io/v1alpha1", "Operation", "", "o", xptest.ControlledBy(x)),
		},
		"Unserved": {
			reason: "The plugin names an owner that cannot be restored and does not wait for it.",
			kinds:  unserved, item: xptest.MR("b", xptest.ControlledBy(x)), want: warned(reason.KindNotServed),
		},
		"ClaimOfUnservedXR": {reason: "The claim of an unserved XR still comes back.", kinds: unserved, item: xptest.Claim("o", xptest.OfXR(x)), want: warned(reason.KindNotServed)},
		"API": {
			reason: "A temporary API error must not change the order.", kinds: failing, item: xptest.MR("b", xptest.ControlledBy(x)), want: ordering{Err: errAPI},
		},
		"APIOfXRD": {reason: "A temporary API error about the XRD must not change the order.", kinds: failing, item: x, want: ordering{Err: errAPI}},
		"APIOfXR":  {reason: "A temporary API error about the claim's XR must not change the order.", kinds: failing, item: xptest.Claim("o", xptest.OfXR(x)), want: ordering{Err: errAPI}},
	})
}

func TestOrderRequestsUntilLive(t *testing.T) {
	xr := xptest.XRV2("orders", xptest.UID("old"), xptest.Refs(xptest.NamespacedMR("a"), xptest.NamespacedMR("b")))
	a, b := xptest.NamespacedMR("a", xptest.ControlledBy(xr)), xptest.NamespacedMR("b", xptest.ControlledBy(xr))
	mapped := velerov1.RestoreSpec{NamespaceMapping: map[string]string{xptest.Namespace: "team-b"}}
	there, here := id("example.org", "orders", xptest.Namespace, "orders"), xptest.With(xr, xptest.UID("new"))
	for name, tc := range map[string]struct {
		reason string
		live   *cluster
		spec   velerov1.RestoreSpec
		// then is what the restore comes to after the composed resource a.
		then *unstructured.Unstructured
		want []velero.ResourceIdentifier
	}{
		"Live":    {reason: "Velero has restored the live XR for one composed resource, so the next need not ask.", live: live(here), then: b},
		"NotLive": {reason: "The XR's restore may have failed, so the next composed resource asks again.", live: live(), then: b, want: []velero.ResourceIdentifier{there}},
		"LiveElsewhere": {
			reason: "An XR of the same name in another namespace is another XR.", live: live(here), then: xptest.With(b, xptest.In("team-c")),
			want: []velero.ResourceIdentifier{id("example.org", "orders", "team-c", "orders")},
		},
		"LiveWhereItIsMappedTo": {
			reason: "With a namespace mapping the plugin looks in the mapped namespace.", live: live(xptest.With(here, xptest.In("team-b"))), spec: mapped, then: b,
		},
		"LiveWhereItIsMappedFrom": {
			reason: "A live object in the original namespace does not count with a mapping.",
			live:   live(here), spec: mapped, then: b, want: []velero.ResourceIdentifier{there},
		},
	} {
		t.Run(name, func(t *testing.T) {
			shared, restore := Shared{Requested: &RequestedItems{}}, restoreWith(tc.spec)
			order := newOrder(shared)
			first := execute(t, order, a, restore)
			if diff := cmp.Diff([]velero.ResourceIdentifier{there}, first.AdditionalItems); diff != "" {
				t.Fatalf("the first item that names an XR must ask for it\n-want, +got:\n%s", diff)
			}
			execute(t, newAdopt(tc.live, shared), a, restore)
			then := execute(t, order, tc.then, restore)
			if diff := cmp.Diff(tc.want, then.AdditionalItems, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Without a warning, an XR would stay held for what the resource filters exclude.
func TestOrderWarnsOfExcludedResources(t *testing.T) {
	mr := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")))
	local := xptest.Object(xptest.ManagedVersion, "LocalBucket", "team-a", "l")
	gone := xptest.MR("gone")
	xr := xptest.XR("x", xptest.Refs(mr, local, gone), xptest.UnresolvedRefs(gone))
	claim := xptest.Claim("o", xptest.OfXR(xr), xptest.RestoreFirst("xorders.example.org//x", "buckets.cloud.example.org//b"))
	infra, other := xptest.MR("b", xptest.PublishesTo("infra", "s")), xptest.MR("c", xptest.PublishesTo("infra", "t"))
	items := func(all ...*unstructured.Unstructured) []*unstructured.Unstructured { return all }
	for name, tc := range map[string]struct {
		reason             string
		items              []*unstructured.Unstructured
		included, excluded []string
		// want is the object with a warning, and what is left out of its.
		want string
	}{
		"Nothing":  {reason: "A restore without filters leaves nothing out.", items: items(claim, xr, mr)},
		"Composed": {reason: "The XR stays held for it.", items: items(xr), excluded: []string{"buckets"}, want: "XOrder x: buckets.cloud.example.org//b"},
		"Included": {
			reason: "A resource that is not included is left out.", items: items(xr), included: []string{"xorders", "*.apiextensions.crossplane.io", "buckets"},
			want: "XOrder x: localbuckets.cloud.example.org/team-a/l",
		},
		"OfClaim": {reason: "The claim names it, and its XR does not repeat it.", items: items(claim, xr), excluded: []string{"buckets"}, want: "OrderClaim team-a/o: buckets.cloud.example.org//b"},
		"Owner": {
			reason: "Two resources of one owner report it once.", items: items(mr, xptest.With(mr, xptest.Field("c", "metadata", "name"))), excluded: []string{"xorders"},
			want: "Bucket b: xorders.example.org//x",
		},
		"Excluded": {reason: "An exclusion takes precedence.", items: items(mr), included: []string{"*"}, excluded: []string{"*"}, want: "Bucket b: xorders.example.org//x"},
		"Secret": {
			reason: "The provider creates another Secret, without data that the cloud returns only once.", items: items(infra, other), excluded: []string{"secrets"},
			want: "Bucket b: secrets/infra/s, as all Secrets",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, got := newOrder(Shared{}), ""
			for _, item := range tc.items {
				out := execute(t, o, item, restoreWith(velerov1.RestoreSpec{IncludedResources: tc.included, ExcludedResources: tc.excluded}))
				if _, left, ok := strings.Cut(out.OperationID, "belongs with: "); ok {
					left, _, _ = strings.Cut(left, ". ")
					got += xp.String(item) + ": " + left //nolint:perfsprint // There are two or three.
				}
			}
			if got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
