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
		"XR":          {reason: "By its finalizer.", object: xptest.XR("a"), want: roles{Composite: true}},
		"V2XR":        {reason: "By its finalizer.", object: xptest.ModernXR("a"), want: roles{Composite: true}},
		"NewModernXR": {reason: "By its fields, before Crossplane has seen it.", object: xptest.ModernXR("a", never), want: roles{Composite: true}},
		"NewXR": {
			reason: "By its fields, as a claim makes it.",
			object: xptest.XR("a", never, xptest.ClaimedBy(xptest.Claim("c"))), want: roles{Composite: true},
		},
		"NewRefsXR": {reason: "By its fields.", object: xptest.XR("a", never, xptest.Refs(xptest.MR("b"))), want: roles{Composite: true}},
		"XRWithDogear": {
			reason: "Other finalizers don't matter.",
			object: xptest.XR("a", xptest.Finalizers("x", xp.FinalizerComposite)), want: roles{Composite: true},
		},
		"Claim":      {reason: "By its finalizer.", object: xptest.Claim("a"), want: roles{Claim: true}},
		"BoundClaim": {reason: "By its finalizer.", object: xptest.Claim("a", xptest.OfXR(xptest.XR("x"))), want: roles{Claim: true}},
		"NewClaim":   {reason: "By its fields, if an XR is named.", object: xptest.Claim("a", never, xptest.OfXR(xptest.XR("x"))), want: roles{Claim: true}},
		"ClusterClaim": {
			reason: "There is no cluster-scoped claim.",
			object: xptest.Claim("a", xptest.Without("metadata", "namespace"), xptest.OfXR(xptest.XR("x"))),
		},
		"MR":    {reason: "By its finalizer.", object: xptest.MR("a"), want: roles{Managed: true}},
		"NewMR": {reason: "By its external-name and fields.", object: xptest.MR("a", never), want: roles{Managed: true}},
		"NamelessNewMR": {
			reason: "Anybody's kind can have a forProvider, and what has neither name nor finalizer no provider has seen.",
			object: xptest.MR("a", never, xptest.Without("metadata", "annotations"), xptest.JSON(`{"spec":{"forProvider":{}}}`)),
		},
		"NamelessMR": {
			reason: "Its finalizer is enough, though it has no external-name.",
			object: xptest.MR("a", xptest.Without("metadata", "annotations")), want: roles{Managed: true},
		},
		"ComposedMR": {
			reason: "It carries what Crossplane gives to composed resources.",
			object: xptest.MR("a", xptest.ControlledBy(xptest.XR("x"))), want: roles{Managed: true, Composed: true},
		},
		"StrippedMR": {
			reason: "Without its owner it still has the annotation.",
			object: xptest.MR("a", xptest.ControlledBy(xptest.XR("x")), xptest.Without("metadata", "ownerReferences")), want: roles{Managed: true, Composed: true},
		},
		"OnlyLabelled": {
			reason: "An XR has the label itself; the label alone composes nothing.",
			object: xptest.XR("a", xptest.Labelled(xp.LabelComposite, "a")), want: roles{Composite: true},
		},
		"NestedXR":     {reason: "It is both.", object: xptest.XR("a", xptest.ControlledBy(xptest.XR("x"))), want: roles{Composite: true, Composed: true}},
		"Secret":       {reason: "By its type.", object: xptest.Secret("s"), want: roles{ConnectionSecret: true}},
		"OpaqueSecret": {reason: "Any other Secret is nobody's.", object: xptest.Secret("s", xptest.Field("Opaque", "type"))},
		"TypedThing":   {reason: "Only a Secret is a connection secret.", object: document("a", `{"type":"connection.crossplane.io/v1alpha1"}`)},
		"Revision":     {reason: "A revision of a Composition.", object: xptest.Revision("r", xptest.XR("x")), want: roles{Revision: true, Platform: true}},
		"FakeRevision": {reason: "A kind of that name in another group is no revision.", object: xptest.Object("example.org/v1", "CompositionRevision", "", "r")},

		"UpboundControlPlane": {
			reason: "A ControlPlane of Upbound Spaces has a spec.crossplane and is no XR: nothing would ever lift a hold on it.",
			object: document("team-a", `{"spec":{"crossplane":{"version":"1.20.0","autoUpgrade":{"channel":"Rapid"}}}}`),
		},
		"EmptyCrossplane":  {reason: "An empty spec.crossplane chooses nothing.", object: document("team-a", `{"spec":{"crossplane":{}}}`)},
		"CrossplaneString": {reason: "A string is not Crossplane's field.", object: document("team-a", `{"spec":{"crossplane":"v2"}}`)},
		"CrossplaneNull":   {reason: "Null is not Crossplane's field.", object: document("team-a", `{"spec":{"crossplane":null}}`)},
		"Volume": {
			reason: "A PersistentVolume has a claimRef too.",
			object: document("", `{"spec":{"claimRef":{"kind":"PersistentVolumeClaim","name":"p"}}}`),
		},
		"ResourceRef": {
			reason: "Many kinds have a resourceRef.",
			object: document("team-a", `{"spec":{"resourceRef":{"apiVersion":"v1","kind":"K","name":"n"}}}`),
		},
		"SpecIsList":      {reason: "Malformed is nothing.", object: document("team-a", `{"spec":[]}`)},
		"FinalizersIsMap": {reason: "Malformed is nothing.", object: document("team-a", `{"metadata":{"finalizers":{},"annotations":7,"labels":[]}}`)},
		"Empty":           {reason: "Nothing is nothing.", object: &unstructured.Unstructured{}},

		"Usage":           {reason: "Of Crossplane v1.", object: xptest.Object("apiextensions.crossplane.io/v1beta1", "Usage", "", "u"), want: roles{Usage: true}},
		"NamespacedUsage": {reason: "Of Crossplane v2.", object: xptest.Object("protection.crossplane.io/v1beta1", "Usage", "a", "u"), want: roles{Usage: true}},
		"ClusterUsage": {
			reason: "Of Crossplane v2.",
			object: xptest.Object("protection.crossplane.io/v1beta1", "ClusterUsage", "", "u"), want: roles{Usage: true},
		},
		"OldClusterUsage":     {reason: "There is none in that group.", object: xptest.Object("apiextensions.crossplane.io/v1", "ClusterUsage", "", "u")},
		"UsageOfAnotherGroup": {reason: "A Usage of another group is somebody else's.", object: xptest.Object("example.org/v1", "Usage", "", "u")},
		"ProviderConfig": {
			reason: "Which group has one is up to the provider.",
			object: xptest.Object("aws.example.org/v1", "ProviderConfig", "", "default"), want: roles{ProviderConfig: true},
		},
		"ClusterConfig": {
			reason: "The same of a provider for Crossplane v2.",
			object: xptest.Object("aws.m.example.org/v1", "ClusterProviderConfig", "", "default"), want: roles{ProviderConfig: true},
		},
		"CoreConfig": {reason: "Kubernetes has none.", object: xptest.Object("v1", "ProviderConfig", "", "default")},
		"CronOperation": {
			reason: "It starts Operations.",
			object: xptest.Object("ops.crossplane.io/v1alpha1", "CronOperation", "", "o"), want: roles{Schedule: true},
		},
		"WatchOperation": {
			reason: "It starts Operations.",
			object: xptest.Object("ops.crossplane.io/v1alpha1", "WatchOperation", "", "o"), want: roles{Schedule: true},
		},
		"CronOfAnotherGroup": {reason: "One of another group is somebody else's.", object: xptest.Object("example.org/v1", "CronOperation", "", "o")},
		"ProviderRevision": {
			reason: "A revision of a package.",
			object: xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p"), want: roles{PackageRevision: true},
		},
		"Provider":    {reason: "A package is not its own revision.", object: xptest.Object("pkg.crossplane.io/v1", "Provider", "", "p")},
		"XRD":         {reason: "All XRs of a kind share it.", object: xptest.XRD("xorders.example.org"), want: roles{Platform: true}},
		"Composition": {reason: "All XRs of a kind share it.", object: xptest.Composition("c", xptest.XR("x")), want: roles{Platform: true}},
		"XRDOfAnotherGroup": {
			reason: "A kind of that name in another group is somebody else's.",
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
		"MR":         {reason: "A provider publishes for it.", object: xptest.MR("b", to), want: true},
		"Namespaced": {reason: "In its own namespace.", object: xptest.NamespacedMR("b", xptest.PublishesTo("", "s")), want: true},
		"NeverReconciled": {
			reason: "An MR that its provider has not seen yet publishes soon.", object: xptest.MR("b", xptest.Without("metadata", "finalizers"), to), want: true,
		},
		"Silent":      {reason: "Most MRs publish nothing.", object: xptest.MR("b")},
		"NoNamespace": {reason: "A cluster-scoped one that does not say where can't.", object: xptest.MR("b", xptest.PublishesTo("", "s"))},
		"XR":          {reason: "Crossplane publishes for an XR, which is held for more.", object: xptest.XR("x", to)},
		"Claim":       {reason: "The same for a claim.", object: xptest.Claim("o", xptest.PublishesTo("", "s"))},
		"Other":       {reason: "What is no MR has no provider.", object: xptest.Object("example.org/v1", "Thing", "team-a", "t", to)},
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
