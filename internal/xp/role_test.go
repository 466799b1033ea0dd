package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// roles are the results of all predicates for an object.
type roles struct {
	Composite, Claim, Managed, Composed, ConnectionSecret, Revision, Usage, ProviderConfig, Schedule, PackageRevision, Platform bool
}

func TestRoles(t *testing.T) {
	never := xptest.Without("metadata", "finalizers")
	document := func(namespace, doc string) *unstructured.Unstructured {
		return xptest.Object("example.org/v1", "Thing", namespace, "a", xptest.JSON(doc))
	}
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   roles
	}{
		"XR":          {reason: "The finalizer marks an XR of v1.", object: xptest.XR("a"), want: roles{Composite: true}},
		"V2XR":        {reason: "The finalizer marks an XR of v2.", object: xptest.XRV2("a"), want: roles{Composite: true}},
		"NewModernXR": {reason: "The fields mark an XR that Crossplane has not seen yet.", object: xptest.XRV2("a", never), want: roles{Composite: true}},
		"NewXR": {
			reason: "The claimRef marks an XR that a claim has just created.",
			object: xptest.XR("a", never, xptest.ClaimedBy(xptest.Claim("c"))), want: roles{Composite: true},
		},
		"NewRefsXR": {reason: "The resourceRefs mark an XR.", object: xptest.XR("a", never, xptest.Refs(xptest.MR("b"))), want: roles{Composite: true}},
		"XRWithOtherFinalizer": {
			reason: "Other finalizers have no effect.",
			object: xptest.XR("a", xptest.Finalizers("x", xp.FinalizerComposite)), want: roles{Composite: true},
		},
		"Claim":      {reason: "The finalizer marks a claim.", object: xptest.Claim("a"), want: roles{Claim: true}},
		"BoundClaim": {reason: "The finalizer marks a bound claim.", object: xptest.Claim("a", xptest.OfXR(xptest.XR("x"))), want: roles{Claim: true}},
		"NewClaim":   {reason: "The reference to an XR marks a new claim.", object: xptest.Claim("a", never, xptest.OfXR(xptest.XR("x"))), want: roles{Claim: true}},
		"ClusterClaim": {
			reason: "A claim is never cluster-scoped.",
			object: xptest.Claim("a", xptest.Without("metadata", "namespace"), xptest.OfXR(xptest.XR("x"))),
		},
		"MR":    {reason: "The finalizer marks an MR.", object: xptest.MR("a"), want: roles{Managed: true}},
		"NewMR": {reason: "The external-name and the fields mark an MR that no provider has seen yet.", object: xptest.MR("a", never), want: roles{Managed: true}},
		"NamelessNewMR": {
			reason: "Any kind can have a forProvider, and no provider has seen an object without name and finalizer.",
			object: xptest.MR("a", never, xptest.Without("metadata", "annotations"), xptest.JSON(`{"spec":{"forProvider":{}}}`)),
		},
		"NamelessMR": {
			reason: "The finalizer marks an MR even without an external-name.",
			object: xptest.MR("a", xptest.Without("metadata", "annotations")), want: roles{Managed: true},
		},
		"ComposedMR": {
			reason: "The object carries the metadata of a composed resource.",
			object: xptest.MR("a", xptest.ControlledBy(xptest.XR("x"))), want: roles{Managed: true, Composed: true},
		},
		"StrippedMR": {
			reason: "The annotation marks a composed resource that has lost its owner.",
			object: xptest.MR("a", xptest.ControlledBy(xptest.XR("x")), xptest.Without("metadata", "ownerReferences")), want: roles{Managed: true, Composed: true},
		},
		"OnlyLabelled": {
			reason: "An XR carries the label of its own tree, so the label alone marks no composed resource.",
			object: xptest.XR("a", xptest.Labelled(xp.LabelComposite, "a")), want: roles{Composite: true},
		},
		"NestedXR":     {reason: "A nested XR is an XR and a composed resource.", object: xptest.XR("a", xptest.ControlledBy(xptest.XR("x"))), want: roles{Composite: true, Composed: true}},
		"Secret":       {reason: "The type marks a connection Secret.", object: xptest.Secret("s"), want: roles{ConnectionSecret: true}},
		"OpaqueSecret": {reason: "A Secret of another type is no connection Secret.", object: xptest.Secret("s", xptest.Field("Opaque", "type"))},
		"TypedThing":   {reason: "Only a Secret is a connection Secret.", object: document("a", `{"type":"connection.crossplane.io/v1alpha1"}`)},
		"Revision":     {reason: "The revision belongs to a Composition.", object: xptest.Revision("r", xptest.XR("x")), want: roles{Revision: true, Platform: true}},
		"FakeRevision": {reason: "A kind of the same name in another group is no revision.", object: xptest.Object("example.org/v1", "CompositionRevision", "", "r")},

		"UpboundControlPlane": {
			reason: "A ControlPlane of Upbound Spaces has a spec.crossplane and is no XR: no controller would release it.",
			object: document("team-a", `{"spec":{"crossplane":{"version":"1.20.0","autoUpgrade":{"channel":"Rapid"}}}}`),
		},
		"EmptyCrossplane":  {reason: "An empty spec.crossplane selects no Composition.", object: document("team-a", `{"spec":{"crossplane":{}}}`)},
		"CrossplaneString": {reason: "A string is not Crossplane's field.", object: document("team-a", `{"spec":{"crossplane":"v2"}}`)},
		"CrossplaneNull":   {reason: "A null is not Crossplane's field.", object: document("team-a", `{"spec":{"crossplane":null}}`)},
		"Volume": {
			reason: "A PersistentVolume has a claimRef too.",
			object: document("", `{"spec":{"claimRef":{"kind":"PersistentVolumeClaim","name":"p"}}}`),
		},
		"ResourceRef": {
			reason: "Many kinds have a resourceRef.",
			object: document("team-a", `{"spec":{"resourceRef":{"apiVersion":"v1","kind":"K","name":"n"}}}`),
		},
		"SpecIsList":      {reason: "A malformed spec gives no role.", object: document("team-a", `{"spec":[]}`)},
		"FinalizersIsMap": {reason: "Malformed metadata gives no role.", object: document("team-a", `{"metadata":{"finalizers":{},"annotations":7,"labels":[]}}`)},
		"Empty":           {reason: "An empty object has no role.", object: &unstructured.Unstructured{}},

		"Usage":           {reason: "Crossplane v1 has this Usage.", object: xptest.Object("apiextensions.crossplane.io/v1beta1", "Usage", "", "u"), want: roles{Usage: true}},
		"NamespacedUsage": {reason: "Crossplane v2 has this Usage.", object: xptest.Object("protection.crossplane.io/v1beta1", "Usage", "a", "u"), want: roles{Usage: true}},
		"ClusterUsage": {
			reason: "Crossplane v2 has this ClusterUsage.",
			object: xptest.Object("protection.crossplane.io/v1beta1", "ClusterUsage", "", "u"), want: roles{Usage: true},
		},
		"OldClusterUsage":     {reason: "The group of v1 has no ClusterUsage.", object: xptest.Object("apiextensions.crossplane.io/v1", "ClusterUsage", "", "u")},
		"UsageOfAnotherGroup": {reason: "A Usage of another group does not belong to Crossplane.", object: xptest.Object("example.org/v1", "Usage", "", "u")},
		"ProviderConfig": {
			reason: "The group of a ProviderConfig depends on the provider.",
			object: xptest.Object("aws.example.org/v1", "ProviderConfig", "", "default"), want: roles{ProviderConfig: true},
		},
		"ClusterConfig": {
			reason: "Providers for Crossplane v2 have a ClusterProviderConfig.",
			object: xptest.Object("aws.m.example.org/v1", "ClusterProviderConfig", "", "default"), want: roles{ProviderConfig: true},
		},
		"CoreConfig": {reason: "Kubernetes has no ProviderConfig.", object: xptest.Object("v1", "ProviderConfig", "", "default")},
		"CronOperation": {
			reason: "A CronOperation starts Operations.",
			object: xptest.Object("ops.crossplane.io/v1alpha1", "CronOperation", "", "o"), want: roles{Schedule: true},
		},
		"WatchOperation": {
			reason: "A WatchOperation starts Operations.",
			object: xptest.Object("ops.crossplane.io/v1alpha1", "WatchOperation", "", "o"), want: roles{Schedule: true},
		},
		"CronOfAnotherGroup": {reason: "A CronOperation of another group does not belong to Crossplane.", object: xptest.Object("example.org/v1", "CronOperation", "", "o")},
		"ProviderRevision": {
			reason: "A ProviderRevision belongs to a package.",
			object: xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p"), want: roles{PackageRevision: true},
		},
		"Provider":    {reason: "A package is not its own revision.", object: xptest.Object("pkg.crossplane.io/v1", "Provider", "", "p")},
		"XRD":         {reason: "All XRs of a kind share the XRD.", object: xptest.XRD("xorders.example.org"), want: roles{Platform: true}},
		"Composition": {reason: "All XRs of a kind share the Composition.", object: xptest.Composition("c", xptest.XR("x")), want: roles{Platform: true}},
		"XRDOfAnotherGroup": {
			reason: "A kind of the same name in another group does not belong to Crossplane.",
			object: xptest.Object("example.org/v1", "CompositeResourceDefinition", "", "x"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := tc.object
			got := roles{
				Composite: xp.IsComposite(u), Claim: xp.IsClaim(u), Managed: xp.IsManaged(u), Composed: xp.IsComposed(u),
				ConnectionSecret: xp.IsConnectionSecret(u), Revision: xp.IsRevision(u), Usage: xp.IsUsage(u), ProviderConfig: xp.IsProviderConfig(u),
				Schedule: xp.IsSchedule(u), PackageRevision: xp.IsPackageRevision(u), Platform: xp.IsPlatform(u),
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPublishes(t *testing.T) {
	to := xptest.PublishesTo("infra", "s")
	for name, tc := range map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   bool
	}{
		"MR":         {reason: "A provider publishes the details of an MR.", object: xptest.MR("b", to), want: true},
		"Namespaced": {reason: "A namespaced MR publishes in its own namespace.", object: xptest.NamespacedMR("b", xptest.PublishesTo("", "s")), want: true},
		"NeverReconciled": {
			reason: "An MR that its provider has not seen yet will publish soon.", object: xptest.MR("b", xptest.Without("metadata", "finalizers"), to), want: true,
		},
		"Silent":      {reason: "Most MRs publish nothing.", object: xptest.MR("b")},
		"NoNamespace": {reason: "A cluster-scoped MR without a namespace can't publish.", object: xptest.MR("b", xptest.PublishesTo("", "s"))},
		"XR":          {reason: "Crossplane publishes for an XR, and the hold of an XR waits for more.", object: xptest.XR("x", to)},
		"Claim":       {reason: "Crossplane publishes for a claim too.", object: xptest.Claim("o", xptest.PublishesTo("", "s"))},
		"Other":       {reason: "An object that is no MR has no provider.", object: xptest.Object("example.org/v1", "Thing", "team-a", "t", to)},
		"NestedXRWithAnExternalName": {
			reason: "An XR can look like an MR.",
			object: xptest.XR("x", to, xptest.Annotated(xp.AnnotationExternalName, "x"), xptest.JSON(`{"spec":{"forProvider":{}}}`)),
		},
	} {
		if got := xp.Publishes(tc.object); got != tc.want {
			t.Errorf("%s: %s\nPublishes: got %v, want %v", name, tc.reason, got, tc.want)
		}
	}
}
