package xp_test

import (
	"testing"

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
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, roles]{
		"XR":          {Reason: "The finalizer marks an XR of v1.", In: xptest.XR("a"), Want: roles{Composite: true}},
		"NewModernXR": {Reason: "The fields mark an XR that Crossplane has not seen yet.", In: xptest.XRV2("a", never), Want: roles{Composite: true}},
		"NewXR": {
			Reason: "The claimRef marks an XR that a claim has just created.",
			In:     xptest.XR("a", never, xptest.ClaimedBy(xptest.Claim("c"))), Want: roles{Composite: true},
		},
		"NewRefsXR": {Reason: "The resourceRefs mark an XR.", In: xptest.XR("a", never, xptest.Refs(xptest.MR("b"))), Want: roles{Composite: true}},
		"Claim":     {Reason: "The finalizer marks a claim.", In: xptest.Claim("a"), Want: roles{Claim: true}},
		"NewClaim":  {Reason: "The reference to an XR marks a new claim.", In: xptest.Claim("a", never, xptest.OfXR(xptest.XR("x"))), Want: roles{Claim: true}},
		"ClusterClaim": {
			Reason: "A claim is never cluster-scoped.",
			In:     xptest.Claim("a", xptest.Without("metadata", "namespace"), xptest.OfXR(xptest.XR("x"))),
		},
		"NewMR": {Reason: "The external-name and the fields mark an MR that no provider has seen yet.", In: xptest.MR("a", never), Want: roles{Managed: true}},
		"NamelessNewMR": {
			Reason: "Any kind can have a forProvider, and no provider has seen an object without name and finalizer.",
			In:     xptest.MR("a", never, xptest.Without("metadata", "annotations"), xptest.JSON(`{"spec":{"forProvider":{}}}`)),
		},
		"NamelessMR": {
			Reason: "The finalizer marks an MR even without an external-name.",
			In:     xptest.MR("a", xptest.Without("metadata", "annotations")), Want: roles{Managed: true},
		},
		"StrippedMR": {
			Reason: "The annotation marks a composed resource that has lost its owner.",
			In:     xptest.MR("a", xptest.ControlledBy(xptest.XR("x")), xptest.Without("metadata", "ownerReferences")), Want: roles{Managed: true, Composed: true},
		},
		"OnlyLabelled": {
			Reason: "An XR carries the label of its own tree, so the label alone marks no composed resource.",
			In:     xptest.XR("a", xptest.Labelled(xp.LabelComposite, "a")), Want: roles{Composite: true},
		},
		"NestedXR":     {Reason: "A nested XR is an XR and a composed resource.", In: xptest.XR("a", xptest.ControlledBy(xptest.XR("x"))), Want: roles{Composite: true, Composed: true}},
		"Secret":       {Reason: "The type marks a connection Secret.", In: xptest.Secret("s"), Want: roles{ConnectionSecret: true}},
		"OpaqueSecret": {Reason: "A Secret of another type is no connection Secret.", In: xptest.Secret("s", xptest.Field("Opaque", "type"))},
		"TypedThing":   {Reason: "Only a Secret is a connection Secret.", In: document("a", `{"type":"connection.crossplane.io/v1alpha1"}`)},
		"Revision":     {Reason: "The revision belongs to a Composition.", In: xptest.Revision("r", xptest.XR("x")), Want: roles{Revision: true, Platform: true}},
		"FakeRevision": {Reason: "A kind of the same name in another group is no revision.", In: xptest.Object("example.org/v1", "CompositionRevision", "", "r")},

		"UpboundControlPlane": {
			Reason: "A ControlPlane of Upbound Spaces has a spec.crossplane and is no XR: no controller would release it.",
			In:     document("team-a", `{"spec":{"crossplane":{"version":"1.20.0","autoUpgrade":{"channel":"Rapid"}}}}`),
		},
		"EmptyCrossplane": {Reason: "An empty spec.crossplane selects no Composition.", In: document("team-a", `{"spec":{"crossplane":{}}}`)},
		"Volume":          {Reason: "A PersistentVolume has a claimRef too.", In: document("", `{"spec":{"claimRef":{"kind":"PersistentVolumeClaim","name":"p"}}}`)},
		"ResourceRef":     {Reason: "Many kinds have a resourceRef.", In: document("team-a", `{"spec":{"resourceRef":{"apiVersion":"v1","kind":"K","name":"n"}}}`)},

		"Usage":           {Reason: "Crossplane v1 has this Usage.", In: xptest.Object("apiextensions.crossplane.io/v1beta1", "Usage", "", "u"), Want: roles{Usage: true}},
		"NamespacedUsage": {Reason: "Crossplane v2 has this Usage.", In: xptest.Object("protection.crossplane.io/v1beta1", "Usage", "a", "u"), Want: roles{Usage: true}},
		"ClusterUsage": {
			Reason: "Crossplane v2 has this ClusterUsage.",
			In:     xptest.Object("protection.crossplane.io/v1beta1", "ClusterUsage", "", "u"), Want: roles{Usage: true},
		},
		"OldClusterUsage":     {Reason: "The group of v1 has no ClusterUsage.", In: xptest.Object("apiextensions.crossplane.io/v1", "ClusterUsage", "", "u")},
		"UsageOfAnotherGroup": {Reason: "A Usage of another group does not belong to Crossplane.", In: xptest.Object("example.org/v1", "Usage", "", "u")},
		"ProviderConfig": {
			Reason: "The group of a ProviderConfig depends on the provider.",
			In:     xptest.Object("aws.example.org/v1", "ProviderConfig", "", "default"), Want: roles{ProviderConfig: true},
		},
		"ClusterConfig": {
			Reason: "Providers for Crossplane v2 have a ClusterProviderConfig.",
			In:     xptest.Object("aws.m.example.org/v1", "ClusterProviderConfig", "", "default"), Want: roles{ProviderConfig: true},
		},
		"CoreConfig": {Reason: "Kubernetes has no ProviderConfig.", In: xptest.Object("v1", "ProviderConfig", "", "default")},
		"CronOperation": {
			Reason: "A CronOperation starts Operations.",
			In:     xptest.Object("ops.crossplane.io/v1alpha1", "CronOperation", "", "o"), Want: roles{Schedule: true},
		},
		"WatchOperation": {
			Reason: "A WatchOperation starts Operations.",
			In:     xptest.Object("ops.crossplane.io/v1alpha1", "WatchOperation", "", "o"), Want: roles{Schedule: true},
		},
		"CronOfAnotherGroup": {Reason: "A CronOperation of another group does not belong to Crossplane.", In: xptest.Object("example.org/v1", "CronOperation", "", "o")},
		"ProviderRevision": {
			Reason: "A ProviderRevision belongs to a package.",
			In:     xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p"), Want: roles{PackageRevision: true},
		},
		"Provider":    {Reason: "A package is not its own revision.", In: xptest.Object("pkg.crossplane.io/v1", "Provider", "", "p")},
		"XRD":         {Reason: "All XRs of a kind share the XRD.", In: xptest.XRD("xorders.example.org"), Want: roles{Platform: true}},
		"Composition": {Reason: "All XRs of a kind share the Composition.", In: xptest.Composition("c", xptest.XR("x")), Want: roles{Platform: true}},
		"XRDOfAnotherGroup": {
			Reason: "A kind of the same name in another group does not belong to Crossplane.",
			In:     xptest.Object("example.org/v1", "CompositeResourceDefinition", "", "x"),
		},
	}, func(in *unstructured.Unstructured) roles {
		return roles{
			Composite: xp.IsComposite(in), Claim: xp.IsClaim(in), Managed: xp.IsManaged(in), Composed: xp.IsComposed(in),
			ConnectionSecret: xp.IsConnectionSecret(in), Revision: xp.IsRevision(in), Usage: xp.IsUsage(in), ProviderConfig: xp.IsProviderConfig(in),
			Schedule: xp.IsSchedule(in), PackageRevision: xp.IsPackageRevision(in), Platform: xp.IsPlatform(in),
		}
	})
}

func TestPublishes(t *testing.T) {
	to := xptest.PublishesTo("infra", "s")
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, bool]{
		"MR": {Reason: "A provider publishes the details of an MR.", In: xptest.MR("b", to), Want: true},
		"NeverReconciled": {
			Reason: "An MR that its provider has not seen yet will publish soon.", In: xptest.MR("b", xptest.Without("metadata", "finalizers"), to), Want: true,
		},
		"Silent":      {Reason: "Most MRs publish nothing.", In: xptest.MR("b")},
		"NoNamespace": {Reason: "A cluster-scoped MR without a namespace can't publish.", In: xptest.MR("b", xptest.PublishesTo("", "s"))},
		"XR":          {Reason: "Crossplane publishes for an XR, and the hold of an XR waits for more.", In: xptest.XR("x", to)},
		"Other":       {Reason: "An object that is no MR has no provider.", In: xptest.Object("example.org/v1", "Thing", "team-a", "t", to)},
	}, xp.Publishes)
}
