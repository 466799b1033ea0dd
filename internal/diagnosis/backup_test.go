package diagnosis

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
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
	unresolved := xptest.With(lists, xptest.UnresolvedRefs(mr))
	held := xptest.With(lists, xptest.Annotated(hold.Annotation, `{"restore":"velero/monday","reason":"waiting"}`))
	reads := xptest.JSON(`{"spec":{"forProvider":{"passwordSecretRef":{"namespace":"infra","name":"password"}}}}`)
	mrd := xptest.ManagedDefinition("buckets", mr)
	crd := xptest.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", mrd.GetName(),
		xptest.OwnedBy(metav1.OwnerReference{APIVersion: mrd.GetAPIVersion(), Kind: mrd.GetKind(), Name: mrd.GetName(), UID: mrd.GetUID()}),
		xptest.JSON(`{"spec":{"group":"cloud.example.org","names":{"kind":"Bucket","plural":"buckets"}}}`))
	const uidOfXR, uidOfClaim = "0a0a0a0a-1111-4222-8333-444444444444", "0b0b0b0b-1111-4222-8333-444444444444"
	uidClaim := xptest.Claim("o", xptest.UID(uidOfClaim), xptest.OfXR(x))
	uidXR := xptest.XR("x", xptest.UID(uidOfXR), xptest.ClaimedBy(uidClaim))
	noted := func(exists bool) *unstructured.Unstructured {
		u := xptest.MR("alone", reads)
		xp.SetInputs(u, []xp.Input{{Ref: xp.RefTo(xptest.Secret("password", xptest.In("infra"))), Exists: exists}})

		return u
	}
	job := func(name, status string) *unstructured.Unstructured {
		return xptest.Object("batch/v1", "Job", "team-a", name, xptest.ControlledBy(x), xptest.JSON(`{"status":`+status+`}`))
	}
	done, failed, fresh := job("done", `{"startTime":"t","completionTime":"t"}`), job("failed", `{"startTime":"t","failed":1}`), job("fresh", `{}`)
	reading := func(entries string) *unstructured.Unstructured {
		return xptest.With(platform(x)[1], xptest.JSON(`{"spec":{"pipeline":[{"step":"env","input":{"environmentConfigs":[`+entries+`]}}]}}`))
	}
	environment := xptest.Object("apiextensions.crossplane.io/v1alpha1", "EnvironmentConfig", "", "e")
	cases{
		"Reads": {reason: "The backup has the EnvironmentConfig.", objects: []*unstructured.Unstructured{reading(`{"ref":{"name":"e"}}`), environment, lists, mr}},
		"NoEnvironment": {
			reason: "Without the EnvironmentConfig a function may leave out composed resources.", want: []string{"warning EnvironmentMissing EnvironmentConfig e"},
			objects: []*unstructured.Unstructured{reading(`{"ref":{"name":"e"}}`), lists, mr},
		},
		"Selects": {
			reason: "The selector does not show which EnvironmentConfig the pipeline reads.", want: []string{"warning PipelineReads CompositionRevision " + xptest.RevisionName},
			objects: []*unstructured.Unstructured{reading(`{"selector":{}}`), environment, lists, mr},
		},
		"Healthy":  {reason: "The backup has everything that a restore needs.", objects: []*unstructured.Unstructured{lists, mr}},
		"NoSecret": {reason: "The Secret may hold the only copy of a password.", objects: []*unstructured.Unstructured{lists, publishing}, want: []string{"warning SecretMissing Secret team-a/s"}},
		"Secret":   {reason: "The backup has the Secret.", objects: []*unstructured.Unstructured{lists, publishing, xptest.Secret("s", xptest.ControlledBy(publishing))}},
		"NoInput": {
			reason: "Without its input the provider may generate another password.", want: []string{"warning InputMissing Secret infra/password"},
			objects: []*unstructured.Unstructured{lists, xptest.With(mr, reads), xptest.MR("alone", reads)},
		},
		"Input": {
			reason: "The backup has the input.", objects: []*unstructured.Unstructured{lists, xptest.With(mr, reads), xptest.Secret("password", xptest.In("infra"))},
		},
		"LocalInput": {
			reason: "Labels of a Secret in a namespace can exclude it from a backup.", want: []string{"warning InputMissing Secret team-a/password"},
			objects: []*unstructured.Unstructured{xptest.NamespacedMR("alone", xptest.JSON(`{"spec":{"forProvider":{"passwordSecretRef":{"name":"password"}}}}`))},
		},
		"OptionalInput": {reason: "The source had no such Secret, so a restore does not wait for it.", objects: []*unstructured.Unstructured{noted(false)}},
		"LostInput": {
			reason: "The source had the Secret, and the backup lacks it.", objects: []*unstructured.Unstructured{noted(true)}, want: []string{"warning InputMissing Secret infra/password"},
		},
		"Unnamed": {
			reason: "The backup notes that the kind has no external-names.",
			objects: []*unstructured.Unstructured{
				xptest.MR("b", xptest.Without("metadata", "annotations"), xptest.Annotated(xp.AnnotationCreateSucceeded, ago(0)), xptest.Field(true, "metadata", xp.FieldUnnamed)),
			},
		},
		"CustomizedAccount": {
			reason: "Another revision of the package runs with another ServiceAccount.", objects: []*unstructured.Unstructured{customizedAccount("p-1"), customizedAccount("provider"), lists, mr},
			want: []string{"warning SettingsMisplaced ServiceAccount crossplane-system/p-1"},
		},
		"UIDs": {
			reason: "A name inside the cluster is carried over. An external-name, a name from the claim's UID, and a selector are not.",
			objects: []*unstructured.Unstructured{
				xptest.With(uidXR, xptest.Refs(mr)), uidClaim, xptest.MR("b", xptest.ControlledBy(uidXR), xptest.PublishesTo("team-a", uidOfXR)),
				xptest.MR("named", xptest.ControlledBy(uidXR), xptest.Annotated(xp.AnnotationExternalName, uidOfXR)),
				xptest.MR("claimed", xptest.ControlledBy(uidXR), xptest.PublishesTo("team-a", uidOfClaim)),
				xptest.Object("apps/v1", "Deployment", "team-a", "d", xptest.ControlledBy(uidXR), xptest.JSON(`{"spec":{"selector":{"matchLabels":{"i":"`+uidOfXR+`"}}}}`)),
				xptest.Secret(uidOfXR, xptest.In("team-a")), xptest.Secret(uidOfClaim, xptest.In("team-a")),
			},
			want: []string{
				"warning Orphaned Deployment team-a/d", "warning Orphaned Bucket claimed", "warning Orphaned Bucket named", "warning UIDInIdentity Bucket claimed",
				"warning UIDInIdentity Bucket named", "warning UIDInImmutable Deployment team-a/d",
			},
		},
		"Activated": {
			reason:  "The backup has the policy that activates the kind.",
			objects: []*unstructured.Unstructured{lists, mr, crd, mrd, xptest.ActivationPolicy("all", xptest.Activating("*.cloud.example.org"))},
		},
		"ByHand": {
			reason: "A definition that the provider creates is inactive by default.", want: []string{"warning NotActivated ManagedResourceDefinition buckets.cloud.example.org"},
			objects: []*unstructured.Unstructured{lists, mr, crd, mrd, xptest.MR("another"), xptest.ActivationPolicy("other", xptest.Activating("queues.cloud.example.org"))},
		},
		"NoDefinition": {
			reason: "Only a policy can activate a definition that the provider brings.", objects: []*unstructured.Unstructured{lists, mr, crd},
			want: []string{"warning NotActivated ManagedResourceDefinition buckets.cloud.example.org"},
		},
		"NoDefinitionButPolicy": {
			reason:  "The policy activates the definition that the provider brings.",
			objects: []*unstructured.Unstructured{lists, mr, crd, xptest.ActivationPolicy("all", xptest.Activating("*"))},
		},
		"PlainCRD": {reason: "A CRD without an owner needs no activation.", objects: []*unstructured.Unstructured{lists, mr, xptest.With(crd, xptest.Without("metadata", "ownerReferences"))}},
		"NewerMark": {
			reason: "This version can't read a mark of a newer format.", want: []string{"problem Malformed XOrder x"},
			objects: []*unstructured.Unstructured{xptest.With(lists, xptest.Annotated(hold.Annotation, `{"format":2}`)), mr},
		},
		"NewerNotes": {
			reason: "This version can't read the notes of a newer format.", want: []string{"problem Malformed XOrder x"},
			objects: []*unstructured.Unstructured{xptest.With(lists, xptest.Field(float64(2), "metadata", xp.FieldFormat)), mr},
		},
		"Held": {reason: "The backup was made in the middle of a restore.", objects: []*unstructured.Unstructured{held, mr}, want: []string{"warning Held XOrder x"}},
		"HeldWithout": {
			reason: "The report must name the lost resource of a held XR too.", objects: []*unstructured.Unstructured{held},
			want: []string{"problem Dangling Bucket b", "warning Held XOrder x"},
		},
		"NotAdopted": {
			reason: "A held XR has not adopted its resources yet.", objects: []*unstructured.Unstructured{held, xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x"))},
			want: []string{"warning Held XOrder x"},
		},
		"Unrestored": {
			reason: "Velero skips a completed Job, and Crossplane makes it again. A failed one comes back and runs.",
			objects: []*unstructured.Unstructured{
				xptest.With(x, xptest.Refs(done, failed, fresh, mr, xptest.Object("v1", "Event", "team-a", "gone"))), mr, done, failed, fresh,
			},
			want: []string{"warning MadeAgain Job team-a/done", "warning RunsAgain Job team-a/failed"},
		},
		"UnrestoredElsewhere": {
			reason: "An XR makes only its own Job again.", want: []string{"problem ControlledByAnother Job team-a/done"},
			objects: []*unstructured.Unstructured{xptest.With(x, xptest.Refs(mr, done)), mr, xptest.With(done, xptest.Without("metadata", "ownerReferences"), xptest.ControlledBy(xptest.XR("y")))},
		},
		"MovedUp": {
			reason: "The nested XR was being deleted, so it is not in the backup. A restore makes the XR that lists the resource its controller.",
			objects: []*unstructured.Unstructured{lists, xptest.With(mr, xptest.Without("metadata", "ownerReferences"), xptest.ControlledBy(xptest.XR("nested")),
				xptest.Labelled(xp.LabelComposite, "x"))},
			want: []string{"warning Uncontrolled Bucket b"},
		},
		"OfAnotherTree": {
			reason: "A restore ignores a link to the resource of another tree.",
			objects: []*unstructured.Unstructured{lists, xptest.With(mr, xptest.Without("metadata", "ownerReferences"), xptest.ControlledBy(xptest.XR("y")),
				xptest.Labelled(xp.LabelComposite, "y"))},
			want: []string{"problem ControlledByAnother Bucket b"},
		},
		"NotResolved": {
			reason: "A restore ignores a link that the backup has noted as ignored.",
			objects: []*unstructured.Unstructured{unresolved, xptest.With(mr, xptest.Without("metadata", "ownerReferences"), xptest.ControlledBy(xptest.XR("nested")),
				xptest.Labelled(xp.LabelComposite, "x"))},
			want: []string{"problem ControlledByAnother Bucket b"},
		},
		"NoExternalName": {
			reason:  "A create that was running during the backup is over at the restore.",
			objects: []*unstructured.Unstructured{xptest.MR("b", xptest.Without("metadata", "annotations"), xptest.Annotated(xp.AnnotationCreateSucceeded, ago(0)), changed(0))},
			want:    []string{"problem IdentityMissing Bucket b"},
		},
		"BadMark": {
			reason:  "The plugin did not write a mark that is unreadable.",
			objects: []*unstructured.Unstructured{xptest.With(lists, xptest.Annotated(hold.Annotation, "me")), mr}, want: []string{"warning Malformed XOrder x"},
		},
	}.check(t, func(o *Objects) []report.Problem {
		for _, u := range platform(x) {
			o.Add(u)
		}

		return Inspect(o)
	})
}

func TestDanglingInBackup(t *testing.T) {
	x := xptest.XR("x")
	mr := xptest.MR("b", xptest.ControlledBy(x))
	lists := xptest.With(x, xptest.Refs(mr))
	told := Inspect(objectsOf(append(platform(x), xptest.With(lists, xptest.UnresolvedRefs(mr)))...))
	lost := Inspect(objectsOf(append(platform(x), lists)...))
	if len(told) != 1 || len(lost) != 1 || told[0].Next == lost[0].Next {
		t.Errorf("The next step must differ: a restore does not wait for a resource that the source lacked; got %v and %v", told, lost)
	}
	o := objectsOf(append(platform(x), lists)...)
	o.AddMalformed(xp.RefTo(mr), report.Error, "it is broken", "mend it")
	if diff := cmp.Diff([]string{"problem Malformed Bucket b"}, summaries(Inspect(o))); diff != "" {
		t.Errorf("An unreadable object must not count as missing: %s", diff)
	}
}

func TestVersions(t *testing.T) {
	x := xptest.XR("x")
	native := xptest.With(xptest.Composition("old", x), xptest.Field([]any{}, "spec", "resources"))
	modern := xptest.XRV2("m")
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		want    string
	}{
		"Either": {reason: "Both versions run XRs with claims.", objects: append(platform(x), x), want: "v1 or v2"},
		"Old":    {reason: "Crossplane v2 composes only with pipelines.", objects: append(platform(x), native), want: "v1 only: Composition old composes without a pipeline"},
		"New":    {reason: "Crossplane v1 has no namespaced XRs.", objects: []*unstructured.Unstructured{modern}, want: "v2 only: Order team-a/m has the schema of v2"},
		"Both": {
			reason: "No version runs objects of both schemas.", objects: []*unstructured.Unstructured{native, modern, xptest.XRV2("n")},
			want: "no version runs all of it: Composition old composes without a pipeline; Order team-a/m has the schema of v2, and 1 more",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := objectsOf(tc.objects...).Versions()[0]; got.Name != "Crossplane" || got.Version != tc.want {
				t.Errorf("%s got %q, want %q", tc.reason, got.Version, tc.want)
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
		t.Errorf("the versions of packages and XRDs: -want, +got:\n%s", diff)
	}
}

// An MR without an external-name is a warning only if a restore can derive the name. The message
// states the source.
func TestInspectKnowsKinds(t *testing.T) {
	vpc := func(name string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.MR(name, append([]xptest.Option{
			xptest.JSON(`{"apiVersion":"ec2.aws.upbound.io/v1beta1","kind":"VPC","status":{"atProvider":{"id":"vpc-1"}}}`), xptest.Without("metadata", "annotations"),
		}, o...)...)
	}
	const known = "a restore gives it vpc-1, as is known of its kind from provider-upjet-aws v"
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		want    string
		says    string
	}{
		"Known": {reason: "The id of a VPC is its external-name.", objects: []*unstructured.Unstructured{vpc("b")}, want: "warning IdentityMissing MR b", says: known},
		"Taken": {
			reason: "Another MR has that external-name, so the id is ambiguous.", objects: []*unstructured.Unstructured{vpc("b"), vpc("o", xptest.Annotated(xp.AnnotationExternalName, "vpc-1"))},
			want: "problem IdentityMissing MR b",
		},
		"Doubted": {
			reason: "The backup notes that the id is doubtful.", objects: []*unstructured.Unstructured{vpc("b", xptest.Field(true, "metadata", xp.FieldDoubted))}, want: "problem IdentityMissing MR b",
		},
		"NotKnown": {
			reason: "For some kinds the id may not be the external-name.", want: "problem IdentityMissing MR b",
			objects: []*unstructured.Unstructured{vpc("b", xptest.JSON(`{"apiVersion":"iam.aws.upbound.io/v1beta1","kind":"Policy"}`))},
		},
		"InFlight": {
			reason: "During a create the id may be of an earlier external resource.", objects: []*unstructured.Unstructured{vpc("b", xptest.Annotated(xp.AnnotationCreatePending, ago(0)))},
			want: "problem CreatePending MR b",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range Inspect(objectsOf(tc.objects...)) {
				if p.Code != reason.IdentityMissing && p.Code != reason.CreatePending {
					continue
				}
				got = append(got, string(p.Severity)+" "+string(p.Code)+" MR "+p.Object.Name)
				if !strings.Contains(p.Reason, tc.says) {
					t.Errorf("%s\nit says %q, and not %q", tc.reason, p.Reason, tc.says)
				}
			}
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// In a backup an MR that upjet has not observed is a warning, and an observed one is not.
func TestInspectNamesUnfound(t *testing.T) {
	upjets := func(name string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.MR(name, append([]xptest.Option{xptest.JSON(`{"spec":{"initProvider":{}}}`)}, o...)...)
	}
	objects := []*unstructured.Unstructured{
		upjets("unfound"), upjets("found", xptest.JSON(`{"status":{"atProvider":{"id":"found"}}}`)), xptest.MR("other"),
	}
	var said []string
	for _, p := range Inspect(objectsOf(objects...)) {
		if p.Code == reason.NotObserved {
			said = append(said, string(p.Severity)+" "+p.Object.Name)
		}
	}
	if diff := cmp.Diff([]string{"warning unfound"}, said); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
