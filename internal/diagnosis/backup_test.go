package diagnosis

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// platform returns the XRD and the CompositionRevision of XRs of package xptest.
func platform(xr *unstructured.Unstructured) []*unstructured.Unstructured {
	xrd := xptest.XRD("xorders.example.org", xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XOrder"},"claimNames":{"kind":"OrderClaim"},`+
		`"versions":[{"name":"v1alpha1","served":true},{"name":"v1","served":false}]}}`))

	return []*unstructured.Unstructured{xrd, xptest.Revision(xptest.RevisionName, xr), xptest.Composition(xptest.CompositionName, xr)}
}

// customizedAccount is the ServiceAccount of the package revision p-1 with an added cloud role.
func customizedAccount(name string) *unstructured.Unstructured {
	return xptest.Object("v1", "ServiceAccount", "crossplane-system", name, xptest.Annotated("eks.amazonaws.com/role-arn", "r"),
		xptest.ControlledBy(xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p-1")))
}

func TestInspectBackup(t *testing.T) {
	x := xptest.XR("x")
	mr := xptest.MR("b", xptest.ControlledBy(x))
	publishing := xptest.MR("b", xptest.ControlledBy(x), xptest.PublishesTo("team-a", "s"))
	lists := xptest.With(x, xptest.Refs(mr))
	held := xptest.With(lists, xptest.Annotated(adoption.AnnotationHold, `{"restore":"velero/monday","reason":"waiting"}`))
	reads := xptest.JSON(`{"spec":{"forProvider":{"passwordSecretRef":{"namespace":"infra","name":"password"}}}}`)
	mrd := xptest.ManagedDefinition("buckets", mr)
	crd := xptest.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", mrd.GetName(),
		xptest.OwnedBy(metav1.OwnerReference{APIVersion: mrd.GetAPIVersion(), Kind: mrd.GetKind(), Name: mrd.GetName(), UID: mrd.GetUID()}),
		xptest.JSON(`{"spec":{"group":"cloud.example.org","names":{"kind":"Bucket","plural":"buckets"}}}`))
	noted := func(exists bool) *unstructured.Unstructured {
		u := xptest.MR("alone", reads)
		xp.SetInputs(u, []xp.Input{{Ref: xp.RefTo(xptest.Secret("password", xptest.In("infra"))), Exists: exists}})

		return u
	}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		want    []string
	}{
		"Healthy":  {reason: "All that a restore needs is there.", objects: []*unstructured.Unstructured{lists, mr}},
		"NoSecret": {reason: "A password may be nowhere else.", objects: []*unstructured.Unstructured{lists, publishing}, want: []string{"warning SecretMissing Secret team-a/s"}},
		"Secret":   {reason: "It is there.", objects: []*unstructured.Unstructured{lists, publishing, xptest.Secret("s", xptest.ControlledBy(publishing))}},
		"NoInput": {
			reason: "The provider may make another password.", want: []string{"warning InputMissing Secret infra/password"},
			objects: []*unstructured.Unstructured{lists, xptest.With(mr, reads), xptest.MR("alone", reads)},
		},
		"Input": {
			reason: "It is there.", objects: []*unstructured.Unstructured{lists, xptest.With(mr, reads), xptest.Secret("password", xptest.In("infra"))},
		},
		"LocalInput": {
			reason: "Those of what is in a namespace can be left out by their labels.", want: []string{"warning InputMissing Secret team-a/password"},
			objects: []*unstructured.Unstructured{xptest.NamespacedMR("alone", xptest.JSON(`{"spec":{"forProvider":{"passwordSecretRef":{"name":"password"}}}}`))},
		},
		"OptionalInput": {reason: "The source did not have it either, and a restore does not wait for it.", objects: []*unstructured.Unstructured{noted(false)}},
		"LostInput": {
			reason: "The source had it.", objects: []*unstructured.Unstructured{noted(true)}, want: []string{"warning InputMissing Secret infra/password"},
		},
		"Unnamed": {
			reason: "A person knows that the kind has no names.",
			objects: []*unstructured.Unstructured{
				xptest.MR("b", xptest.Without("metadata", "annotations"), xptest.Annotated(xp.AnnotationCreateSucceeded, ago(0)), xptest.Field(true, "metadata", xp.FieldUnnamed)),
			},
		},
		"CustomizedAccount": {
			reason: "Another revision of the package does not run with it.", objects: []*unstructured.Unstructured{customizedAccount("p-1"), customizedAccount("provider"), lists, mr},
			want: []string{"warning SettingsMisplaced ServiceAccount crossplane-system/p-1"},
		},
		"Activated": {
			reason:  "A restore brings the policy.",
			objects: []*unstructured.Unstructured{lists, mr, crd, mrd, xptest.ActivationPolicy("all", xptest.Activating("*.cloud.example.org"))},
		},
		"ByHand": {
			reason: "Where its provider has made it anew it is not active.", want: []string{"warning NotActivated ManagedResourceDefinition buckets.cloud.example.org"},
			objects: []*unstructured.Unstructured{lists, mr, crd, mrd, xptest.MR("another"), xptest.ActivationPolicy("other", xptest.Activating("queues.cloud.example.org"))},
		},
		"NoDefinition": {
			reason: "The policy alone activates what the provider brings.", objects: []*unstructured.Unstructured{lists, mr, crd},
			want: []string{"warning NotActivated ManagedResourceDefinition buckets.cloud.example.org"},
		},
		"NoDefinitionButPolicy": {
			reason:  "Then nothing is missing.",
			objects: []*unstructured.Unstructured{lists, mr, crd, xptest.ActivationPolicy("all", xptest.Activating("*"))},
		},
		"PlainCRD": {reason: "Not every kind has one.", objects: []*unstructured.Unstructured{lists, mr, xptest.With(crd, xptest.Without("metadata", "ownerReferences"))}},
		"NewerMark": {
			reason: "This version can't read what a newer one has put on.", want: []string{"problem Malformed XOrder x"},
			objects: []*unstructured.Unstructured{xptest.With(lists, xptest.Annotated(adoption.AnnotationHold, `{"format":2}`)), mr},
		},
		"NewerNotes": {
			reason: "Nor what it has backed up.", want: []string{"problem Malformed XOrder x"},
			objects: []*unstructured.Unstructured{xptest.With(lists, xptest.Field(float64(2), "metadata", xp.FieldFormat)), mr},
		},
		"Held": {reason: "It was backed up in the middle of a restore.", objects: []*unstructured.Unstructured{held, mr}, want: []string{"warning Held XOrder x"}},
		"HeldWithout": {
			reason: "What was held and had lost something is told with it.", objects: []*unstructured.Unstructured{held},
			want: []string{"problem Dangling Bucket b", "warning Held XOrder x"},
		},
		"NotAdopted": {
			reason: "What was held had not adopted anything yet.", objects: []*unstructured.Unstructured{held, xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x"))},
			want: []string{"warning Held XOrder x"},
		},
		"NoExternalName": {
			reason:  "What is being created when it is backed up is not being created when it is restored.",
			objects: []*unstructured.Unstructured{xptest.MR("b", xptest.Without("metadata", "annotations"), xptest.Annotated(xp.AnnotationCreateSucceeded, ago(0)), changed(0))},
			want:    []string{"problem IdentityMissing Bucket b"},
		},
		"BadMark": {
			reason:  "A mark that nobody can read is not this plugin's.",
			objects: []*unstructured.Unstructured{xptest.With(lists, xptest.Annotated(adoption.AnnotationHold, "me")), mr}, want: []string{"warning Malformed XOrder x"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, summaries(Inspect(objectsOf(append(tc.objects, platform(x)...)...)))); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReadingsInBackup(t *testing.T) {
	x, y := xptest.XR("x", xptest.Refs()), xptest.XR("y", xptest.Refs())
	reading := func(entries string) []*unstructured.Unstructured {
		all := platform(x)
		xptest.JSON(`{"spec":{"pipeline":[{"step":"env","input":{"environmentConfigs":[` + entries + `]}}]}}`)(all[1])

		return append(all, x, y)
	}
	environment := xptest.Object("apiextensions.crossplane.io/v1alpha1", "EnvironmentConfig", "", "e")
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		want    []string
	}{
		"Named":   {reason: "It is there.", objects: append(reading(`{"ref":{"name":"e"}}`), environment)},
		"Missing": {reason: "A function may leave out what it composed.", objects: reading(`{"ref":{"name":"e"}}`), want: []string{"warning EnvironmentMissing EnvironmentConfig e"}},
		"Selected": {
			reason: "Nobody knows which it is.", objects: append(reading(`{"selector":{}}`), environment),
			want: []string{"warning PipelineReads CompositionRevision " + xptest.RevisionName},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, summaries(Inspect(objectsOf(tc.objects...)))); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDanglingInBackup(t *testing.T) {
	x := xptest.XR("x")
	mr := xptest.MR("b", xptest.ControlledBy(x))
	lists := xptest.With(x, xptest.Refs(mr))
	told := Inspect(objectsOf(append(platform(x), xptest.With(lists, xptest.Dangling(mr)))...))
	lost := Inspect(objectsOf(append(platform(x), lists)...))
	if len(told) != 1 || len(lost) != 1 || told[0].Next == lost[0].Next {
		t.Errorf("A restore waits for what is missing, but not for what was missing when it was backed up; got %v and %v", told, lost)
	}
	o := objectsOf(append(platform(x), lists)...)
	o.AddMalformed(xp.RefTo(mr), report.Grave, "it is broken", "mend it")
	if diff := cmp.Diff([]string{"problem Malformed Bucket b"}, summaries(Inspect(o))); diff != "" {
		t.Errorf("What can't be read is not missing: %s", diff)
	}
}

func TestVersions(t *testing.T) {
	x := xptest.XR("x")
	native := xptest.With(xptest.Composition("old", x), xptest.Field([]any{}, "spec", "resources"))
	modern := xptest.ModernXR("m")
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		want    string
	}{
		"Either": {reason: "XRs with claims run on both.", objects: append(platform(x), x), want: "v1 or v2"},
		"Old":    {reason: "v2 composes by functions only.", objects: append(platform(x), native), want: "v1 only: Composition old composes without a pipeline"},
		"New":    {reason: "v1 does not know namespaced XRs.", objects: []*unstructured.Unstructured{modern}, want: "v2 only: Order team-a/m has the schema of v2"},
		"Both": {
			reason: "One cluster can't run both.", objects: []*unstructured.Unstructured{native, modern, xptest.ModernXR("n")},
			want: "no version runs all of it: Composition old composes without a pipeline; Order team-a/m has the schema of v2, and 1 more",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := objectsOf(tc.objects...).Versions()[0]; got.Name != "Crossplane" || got.Version != tc.want {
				t.Errorf("%s It says %q, not %q", tc.reason, got.Version, tc.want)
			}
		})
	}
	provider := xptest.Object(xp.GroupPackage+"/v1", "Provider", "", "provider-aws", xptest.Field("registry.example.org/provider-aws:v1.2.3", "spec", "package"))
	want := []report.Version{
		{Name: "Crossplane", Version: "v1 or v2"},
		{Name: "XRD xorders.example.org", Version: "XOrder and OrderClaim in v1alpha1, LegacyCluster scope"},
		{Name: "Provider provider-aws", Version: "registry.example.org/provider-aws:v1.2.3"},
	}
	if diff := cmp.Diff(want, objectsOf(append(platform(x), provider)...).Versions()); diff != "" {
		t.Errorf("packages and XRDs are named with what they are: -want, +got:\n%s", diff)
	}
}
