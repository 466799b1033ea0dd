package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// roles are what an object is taken for.
type roles struct {
	Composite, Claim, Managed, Composed, ConnectionSecret, Revision, Rebuilt bool
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
		"ModernXR":    {reason: "By its finalizer.", object: xptest.ModernXR("a"), want: roles{Composite: true}},
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
		"Revision":     {reason: "A revision of a Composition.", object: xptest.Revision("r", xptest.XR("x")), want: roles{Revision: true}},
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

		"Lock": {
			reason: "A restored Lock hides missing packages.",
			object: xptest.Object("pkg.crossplane.io/v1beta1", "Lock", "", "lock"), want: roles{Rebuilt: true},
		},
		"ProviderRevision": {
			reason: "Its Provider makes it.",
			object: xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p"), want: roles{Rebuilt: true},
		},
		"Provider":      {reason: "Nothing makes a Provider.", object: xptest.Object("pkg.crossplane.io/v1", "Provider", "", "p")},
		"Operation":     {reason: "It would run again.", object: xptest.Object("ops.crossplane.io/v1alpha1", "Operation", "", "o"), want: roles{Rebuilt: true}},
		"CronOperation": {reason: "Nothing makes a CronOperation.", object: xptest.Object("ops.crossplane.io/v1alpha1", "CronOperation", "", "o")},
		"SomebodysUsage": {
			reason: "A kind of that name without Crossplane's label is somebody else's.",
			object: xptest.Object("example.org/v1", "ProviderConfigUsage", "", "u"),
		},
		"SomebodysLock": {reason: "A Lock of another group is somebody else's.", object: xptest.Object("example.org/v1", "Lock", "", "l")},
		"ProviderConfigUse": {
			reason: "Its MR makes it.",
			object: xptest.Object("aws.example.org/v1", "ProviderConfigUsage", "", "u", xptest.Labelled("crossplane.io/provider-config", "default")),
			want:   roles{Rebuilt: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := tc.object
			got := roles{
				Composite: xp.IsComposite(u), Claim: xp.IsClaim(u), Managed: xp.IsManaged(u), Composed: xp.IsComposed(u),
				ConnectionSecret: xp.IsConnectionSecret(u), Revision: xp.IsRevision(u), Rebuilt: xp.Rebuilt(u) != "",
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCustom(t *testing.T) {
	include, exclude := xp.Custom()
	if len(include) == 0 || len(exclude) == 0 {
		t.Error("An action without an include list applies to everything, and without an exclude list to CRDs, which can exceed a plugin call.")
	}
	include[0] = "changed"
	if again, _ := xp.Custom(); again[0] == "changed" {
		t.Error("The lists belong to whoever asked: an action appends to them.")
	}
}
