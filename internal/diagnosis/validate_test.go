package diagnosis

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestValidate(t *testing.T) {
	x, y := xptest.XR("x", xptest.Reconciled()), xptest.XR("y", xptest.Reconciled())
	composed := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.MR("b", append([]xptest.Option{xptest.Labelled(xp.LabelComposite, "x"), xptest.Annotated(xp.AnnotationResourceName, "b"), ready("True")}, o...)...)
	}
	mine := composed(xptest.ControlledBy(x))
	lists := xptest.With(x, xptest.Refs(mine))
	named := func(name, external string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.MR(name, append([]xptest.Option{xptest.Annotated(xp.AnnotationExternalName, external), ready("True")}, o...)...)
	}
	nameless := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.MR("b", append([]xptest.Option{xptest.Without("metadata", "annotations"), ready("True")}, o...)...)
	}
	claim := xptest.Claim("c", xptest.OfXR(x), xptest.Reconciled())
	bucket := mine.GroupVersionKind().GroupKind()
	all := func(u ...*unstructured.Unstructured) []*unstructured.Unstructured { return u }
	defines := xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XOrder"},"claimNames":{"kind":"OrderClaim"}}}`)
	cases{
		"Dangling": {reason: "Crossplane creates a listed resource again if it is missing.", objects: all(lists), want: []string{"problem Dangling Bucket b"}},
		"CopiedMark": {
			reason:  "A function can copy a hold's mark, and the copy holds nothing.",
			objects: all(lists, xptest.With(mine, xptest.Annotated(hold.Annotation, xp.Annotation(heldAs(x, hold.Hold{}), hold.Annotation)))),
		},
		"CopiedMarkPaused": {
			reason: "A user must check a copied mark on a paused resource.", want: []string{"problem Malformed Bucket b"},
			objects: all(lists, xptest.With(mine, xptest.Annotated(xp.AnnotationPaused, "true"),
				xptest.Annotated(hold.Annotation, xp.Annotation(heldAs(x, hold.Hold{}), hold.Annotation)))),
		},
		"DanglingYoung": {reason: "Crossplane lists a resource shortly before it creates it.", objects: all(xptest.With(lists, changed(time.Second))), want: []string{"warning Dangling Bucket b"}},
		"DanglingUnserved": {
			reason: "A resource of an unserved kind can't exist.", objects: all(xptest.With(lists, changed(time.Second))), change: func(o *Objects) { o.AddUnserved(bucket) },
			want: []string{"problem Dangling Bucket b"},
		},
		"Unread": {
			reason: "Without read access a resource may still exist.", objects: all(lists), change: func(o *Objects) { o.AddUnread(bucket, "forbidden") },
			want: []string{"warning NotRead Bucket *"},
		},
		"Broken": {
			reason: "A kind that the API server can't read must be a problem.", objects: all(lists), change: func(o *Objects) { o.AddBroken(bucket, "its webhook is down") },
			want: []string{"problem NotRead Bucket *"},
		},
		"BrokenGroup": {
			reason: "A group whose discovery fails must be a problem.", objects: all(lists),
			change: func(o *Objects) { o.AddBroken(schema.GroupKind{Group: bucket.Group, Kind: "*"}, "down") }, want: []string{"problem NotRead * *"},
		},
		"Elsewhere": {
			reason: "The state of a resource outside the requested namespace is unknown.", change: func(o *Objects) { o.Limit("team-b") },
			objects: all(xptest.With(x, xptest.Refs(xptest.NamespacedMR("far")))),
		},
		"Uncontrolled": {reason: "Crossplane has not adopted a resource without a controller.", objects: all(lists, composed()), want: []string{"problem Uncontrolled Bucket b"}},
		"ControlledByAnother": {
			reason: "The resource has another XR as its controller.", objects: all(lists, y, composed(xptest.ControlledBy(y))), want: []string{"problem ControlledByAnother Bucket b"},
		},
		"ControlledByDeleting": {
			reason:  "A resource that has moved up to the parent is controlled by its nested XR until that is gone.",
			objects: all(lists, xptest.With(y, deleted(time.Second)), composed(xptest.ControlledBy(y), xptest.Labelled(xp.LabelComposite, "x"))), want: []string{"problem ControlledByAnother Bucket b"},
		},
		"DeadController": {
			reason:  "The garbage collector deletes a resource whose only owner is gone.",
			objects: all(lists, composed(xptest.ControlledBy(xptest.With(x, xptest.UID("old"))))), want: []string{"problem DeadController Bucket b"},
		},
		"DeadControllerDeleting": {
			reason:  "The garbage collector is deleting the resource.",
			objects: all(lists, composed(xptest.ControlledBy(xptest.With(x, xptest.UID("old"))), deleted(time.Second))), want: []string{"problem DeadController Bucket b"},
		},
		"Orphaned": {reason: "No XR updates a resource that none lists.", objects: all(x, composed()), want: []string{"problem Orphaned Bucket b"}},
		"OrphanedUnread": {
			reason: "An XR that is not readable may list the resource.", objects: all(x, composed()),
			change: func(o *Objects) { o.AddUnread(schema.GroupKind{Group: "example.org", Kind: "XOther"}, "forbidden") },
			want:   []string{"warning Orphaned Bucket b", "warning NotRead XOther *"},
		},
		"OrphanedDead": {
			reason: "The XR disappears first when a tree is deleted.", objects: all(composed(xptest.ControlledBy(y))), want: []string{"warning Orphaned Bucket b"},
		},
		"OrphanedUnserved": {
			reason: "The garbage collector keeps a resource whose owner's kind is not served.", objects: all(composed(xptest.ControlledBy(y))),
			change: func(o *Objects) { o.AddUnserved(y.GroupVersionKind().GroupKind()) }, want: []string{"problem Orphaned Bucket b"},
		},
		"OrphanedByWitness": {
			reason: "An XR that is read only for its references must count too.", objects: all(composed()), change: func(o *Objects) { o.AddWitness(lists) },
		},
		"LeftoverPin": {
			reason: "A pinned update policy of a former hold keeps its effect.", want: []string{"problem LeakedHold XOrder x"},
			objects: all(xptest.With(x, xptest.Policy(xp.UpdateManual), xptest.JSON(`{"metadata":{"managedFields":[{"manager":"velero-plugin-for-crossplane","operation":"Update",
				"fieldsV1":{"f:spec":{"f:compositionUpdatePolicy":{}}}}]}}`))),
		},
		"OwnPin":  {reason: "A user's own update policy must stay unreported.", objects: all(xptest.With(x, xptest.Policy(xp.UpdateManual)))},
		"Dropped": {reason: "An unlisted resource is orphaned even if its XR still controls it.", objects: all(x, mine), want: []string{"problem Orphaned Bucket b"}},
		"MalformedRefs": {
			reason: "With unreadable references the XR may list the resource.", objects: all(xptest.With(x, xptest.Field("x", "spec", "resourceRefs")), mine),
			want: []string{"problem Malformed XOrder x"},
		},
		"MalformedMark": {
			reason: "An unreadable mark does not describe a hold.", objects: all(xptest.With(x, xptest.Annotated("velero.crossplane.x-k8s.io/hold", "x"))), want: []string{"problem Malformed XOrder x"},
		},
		"ClaimDangling": {reason: "A claim without its XR creates another XR.", objects: all(claim), want: []string{"problem Dangling OrderClaim team-a/c"}},
		"ClaimOneSided": {reason: "A claim can name any XR, so the XR must name it too.", objects: all(claim, x), want: []string{"problem OneSided OrderClaim team-a/c"}},
		"XROneSided":    {reason: "An XR without its claim has no user.", objects: all(xptest.With(x, xptest.ClaimedBy(claim))), want: []string{"warning OneSided XOrder x"}},
		"XRForged": {
			reason: "An XR can name any claim, so the claim must name it too.", objects: all(xptest.With(x, xptest.ClaimedBy(claim)), xptest.With(claim, xptest.OfXR(y)), xptest.With(y, xptest.ClaimedBy(claim))),
			want: []string{"problem OneSided XOrder x"},
		},
		"Duplicated": {
			reason:  "Two MRs with one external-name manage one external resource.",
			objects: all(named("a", "i-1"), named("b", "i-1")), want: []string{"problem Duplicated Bucket b"},
		},
		"DuplicatedAcrossFamilies": {
			reason: "A namespaced and a cluster-scoped MR can manage one external resource.",
			objects: all(named("a", "i-1"), xptest.Object("cloud.m.example.org/v1", "Bucket", "team-a", "b", xptest.Finalizers(xp.FinalizerManaged),
				xptest.Annotated(xp.AnnotationExternalName, "i-1"), ready("True"))),
			want: []string{"problem Duplicated Bucket team-a/b"},
		},
		"DuplicatedInRegions": {
			reason:  "External resources of two regions can have the same name.",
			objects: all(named("a", "i-1", xptest.JSON(`{"spec":{"forProvider":{"region":"eu"}}}`)), named("b", "i-1", xptest.JSON(`{"spec":{"forProvider":{"region":"us"}}}`))),
		},
		"DuplicatedOfOneID": {
			reason: "Two MRs with equal names may share the external resource, because the provider's id is equal.",
			objects: all(named("b", "b", xptest.In("team-a"), xptest.JSON(`{"status":{"atProvider":{"id":"b"}}}`)),
				named("b", "b", xptest.In("team-b"), xptest.JSON(`{"status":{"atProvider":{"id":"b"}}}`))),
			want: []string{"warning Duplicated Bucket team-b/b"},
		},
		"DuplicatedOfOneARN": {
			reason:  "An ARN is unique in all accounts.",
			objects: all(named("a", "db", xptest.In("team-a"), database("x")), named("b", "db", xptest.In("team-b"), database("x"))),
			want:    []string{"problem Duplicated Bucket team-b/b"},
		},
		"DuplicatedInAccounts": {
			reason: "An id can mean another external resource in another account.", want: []string{"warning Duplicated Bucket b"},
			objects: all(named("a", "db", xptest.JSON(`{"spec":{"providerConfigRef":{"name":"x"}},"status":{"atProvider":{"id":"db"}}}`)),
				named("b", "db", xptest.JSON(`{"spec":{"providerConfigRef":{"name":"y"}},"status":{"atProvider":{"id":"db"}}}`))),
		},
		"DuplicatedInAccountsWithPolicies": {
			reason: "The policy of a reference does not hide its name.", want: []string{"warning Duplicated Bucket b"},
			objects: all(named("a", "db", xptest.JSON(`{"spec":{"providerConfigRef":{"name":"x","policy":{"resolve":"Always"}}},"status":{"atProvider":{"id":"db"}}}`)),
				named("b", "db", xptest.JSON(`{"spec":{"providerConfigRef":{"name":"y","policy":{"resolve":"Always"}}},"status":{"atProvider":{"id":"db"}}}`))),
		},
		"InFlight": {
			reason:  "A provider that stopped during a create needs a user's decision.",
			objects: all(nameless(xptest.Annotated(xp.AnnotationCreatePending, ago(time.Hour)), xptest.Synced("False", "ReconcileError", "cannot determine creation result"))),
			want:    []string{"problem CreatePending Bucket b", "warning NotSynced Bucket b"},
		},
		"NoExternalName":      {reason: "The next provider would create the external resource again.", objects: all(nameless()), want: []string{"problem IdentityMissing Bucket b"}},
		"NoExternalNameNever": {reason: "The management policies forbid the provider to create.", objects: all(nameless(xptest.JSON(`{"spec":{"managementPolicies":["Observe","Update"]}}`)))},
		"NeverCreated":        {reason: "An external resource that never existed can be created.", objects: all(nameless(xptest.Without("status"), xptest.Without("metadata", "finalizers"), xptest.Annotated(xp.AnnotationCreateFailed, ago(time.Hour)), xptest.Synced("True", "", "")))},
		"NoExternalNameSlow": {
			reason: "A create that takes long may have failed.", want: []string{"warning IdentityMissing Bucket b", "warning NotReady Bucket b"},
			objects: all(nameless(xptest.Annotated(xp.AnnotationCreateSucceeded, ago(time.Hour)), ready("False"))),
		},
		"NoExternalNameRestored": {
			reason: "A restored MR is not being created.", want: []string{"problem IdentityMissing Bucket b"},
			objects: all(nameless(xptest.Labelled(xp.LabelRestore, "r"), xptest.Annotated(xp.AnnotationCreateSucceeded, ago(time.Second)), changed(time.Second), xptest.Without("status"))),
		},
		"XRDTerminating": {
			reason: "The XR is deleted with its XRD.", objects: all(x, xptest.XRD("orders", defines, deleted(time.Second))), want: []string{"problem XRDTerminating CompositeResourceDefinition orders"},
		},
		"XRDJustDeleted":    {reason: "An XRD without XRs disappears in a moment.", objects: all(xptest.XRD("orders", defines, deleted(time.Second)))},
		"XRDDeletedLongAgo": {reason: "An XRD that stays for long is stuck.", objects: all(xptest.XRD("orders", defines, deleted(time.Hour))), want: []string{"problem XRDTerminating CompositeResourceDefinition orders"}},
		"StuckNew":          {reason: "Crossplane has never reconciled the XR.", objects: all(xptest.XR("x")), want: []string{"problem Stuck XOrder x"}},
		"StuckOld": {
			reason: "Crossplane has not reconciled the latest change.", objects: all(xptest.With(x, xptest.Generation(3), xptest.OfGeneration(2), changed(2*time.Minute))), want: []string{"problem Stuck XOrder x"},
		},
		"StuckAtLast": {reason: "An XR is stuck as soon as its time is over.", objects: all(xptest.XR("x", changed(stuckAfter))), want: []string{"problem Stuck XOrder x"}},
		"StuckMRAtLast": {
			reason: "An MR is stuck as soon as its time is over.", objects: all(xptest.MR("b", changed(stuckAfterProvider))), want: []string{"problem Stuck Bucket b"},
		},
		"NoGeneration": {reason: "Crossplane v1 records no observed generation.", objects: all(xptest.With(x, xptest.Generation(3)))},
		"StuckPaused":  {reason: "The pause is over, and Crossplane has not reconciled the XR since.", objects: all(xptest.XR("x", xptest.SeenPaused())), want: []string{"problem Stuck XOrder x"}},
		"StuckMR":      {reason: "A busy provider may need longer.", objects: all(xptest.MR("b", changed(2*time.Minute))), want: []string{"warning Stuck Bucket b"}},
		"StuckMRLong":  {reason: "Even a busy provider does not need an hour.", objects: all(xptest.MR("b", changed(time.Hour))), want: []string{"problem Stuck Bucket b"}},
		"NotSynced":    {reason: "The Synced condition of the XR is False.", objects: all(xptest.XR("x", xptest.Synced("False", "ReconcileError", "no"))), want: []string{"warning NotSynced XOrder x"}},
		"NotReady":     {reason: "The Ready condition of the MR is False.", objects: all(xptest.MR("b", ready("False"))), want: []string{"warning NotReady Bucket b"}},
		"Quarantined": {
			reason: "The settings want the objects held.", objects: all(quarantined(xptest.With(lists, xptest.Without("status"))), quarantined(claim)),
			want: []string{"problem Quarantined OrderClaim team-a/c", "problem Quarantined XOrder x"},
		},
		"ByHand": {
			reason:  "A hold that waits for a user must stay visible.",
			objects: all(heldAs(xptest.With(lists, xptest.Without("status")), hold.Hold{ByHand: true}), heldAs(claim, hold.Hold{ByHand: true})),
			want:    []string{"problem Held OrderClaim team-a/c", "problem Held XOrder x"},
		},
		"ByHandNew": {
			reason: "A held MR may never have been reconciled.", objects: all(heldAs(xptest.Object(xptest.ManagedVersion, xptest.ManagedKind, "", "new"), hold.Hold{ByHand: true})),
			want: []string{"problem Held Bucket new"},
		},
		"QuarantinedNew": {
			reason: "An MR in quarantine may never have been reconciled.", objects: all(quarantined(xptest.Object(xptest.ManagedVersion, xptest.ManagedKind, "", "new"))),
			want: []string{"problem Quarantined Bucket new"},
		},
		"Held": {
			reason: "The hold of an XR must cover its other problems.", objects: all(held(xptest.With(lists, xptest.Without("status"))), held(claim)),
			want: []string{"problem LeakedHold OrderClaim team-a/c", "problem LeakedHold XOrder x"},
		},
	}.check(t, validated)
}

// An external-name that many MRs share is no identity, and comparing all pairs would take too long.
func TestManyMRsWithOneName(t *testing.T) {
	for _, n := range []int{maxShared, maxShared + 1, maxShared + 9} {
		var objects []*unstructured.Unstructured
		for i := range n {
			objects = append(objects, xptest.MR(fmt.Sprint("b", i), xptest.Annotated(xp.AnnotationExternalName, "default"), ready("True")))
		}
		// The first one duplicates none before it.
		if got := len(Validate(objectsOf(objects...), ClusterState{Now: now})); got != maxShared-1 {
			t.Errorf("of %d MRs with one name the report names %d, not %d", n, got, maxShared-1)
		}
	}
}

func TestUsages(t *testing.T) {
	x := xptest.XR("x", xptest.Reconciled())
	of, by := xptest.MR("of", xptest.ControlledBy(x), ready("True")), xptest.MR("by", xptest.ControlledBy(x), ready("True"))
	usage := xptest.Object(xp.GroupAPIExtensions+"/v1beta1", "Usage", "", "u", xptest.ControlledBy(x), xptest.JSON(`{"spec":{
		"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","resourceRef":{"name":"of"}},
		"by":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","resourceRef":{"name":"by"}}}}`))
	left := []string{"problem UsageLeftBehind Usage u"}
	cases := map[string]struct {
		reason string
		lists  bool
		by     *unstructured.Unstructured
		usage  *unstructured.Unstructured
		want   []string
	}{
		"Listed":       {reason: "The XR lists the Usage.", lists: true, by: by, usage: usage},
		"Left":         {reason: "The XR does not list the Usage any more.", by: by, usage: usage, want: left},
		"OfAUser":      {reason: "A user created the Usage.", by: by, usage: xptest.With(usage, xptest.Without("metadata", "labels"))},
		"JustDeleted":  {reason: "The deletion of the Usage may end in a moment.", by: by, usage: xptest.With(usage, deleted(time.Second))},
		"Deleted":      {reason: "The Usage waits for a resource that is not being deleted.", by: by, usage: xptest.With(usage, deleted(time.Hour)), want: left},
		"DeletedUser":  {reason: "The Usage waits for a resource that is being deleted.", by: xptest.With(by, deleted(time.Hour)), usage: xptest.With(usage, deleted(time.Hour))},
		"WithoutOwner": {reason: "The restored Usage has lost its owner.", by: by, usage: xptest.With(usage, xptest.Without("metadata", "ownerReferences")), want: left},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			refs := []*unstructured.Unstructured{of, by}
			if tc.lists {
				refs = append(refs, usage)
			}
			o := objectsOf(xptest.With(x, xptest.Refs(refs...)), of, tc.by, tc.usage)
			problems := Validate(o, ClusterState{Now: now})
			if diff := cmp.Diff(tc.want, summaries(problems)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			for _, p := range problems {
				if len(p.Others) != 1 || p.Others[0] != xp.RefTo(x) {
					t.Errorf("The problem must name the former XR; got %v", p.Others)
				}
			}
		})
	}
}
