package diagnosis

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
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
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		change  func(o *Objects)
		want    []string
	}{
		"Dangling": {reason: "What an XR lists and is not there Crossplane makes anew.", objects: all(lists), want: []string{"problem Dangling Bucket b"}},
		"CopiedMark": {
			reason:  "What a function has copied onto what it composes holds nothing.",
			objects: all(lists, xptest.With(mine, xptest.Annotated(adoption.AnnotationHold, xp.Annotation(heldAs(x, adoption.Hold{}), adoption.AnnotationHold)))),
		},
		"CopiedMarkPaused": {
			reason: "What is paused besides is somebody's to look at.", want: []string{"problem Malformed Bucket b"},
			objects: all(lists, xptest.With(mine, xptest.Annotated(xp.AnnotationPaused, "true"),
				xptest.Annotated(adoption.AnnotationHold, xp.Annotation(heldAs(x, adoption.Hold{}), adoption.AnnotationHold)))),
		},
		"DanglingYoung": {reason: "Crossplane lists what it is about to make.", objects: all(xptest.With(lists, changed(time.Second))), want: []string{"warning Dangling Bucket b"}},
		"DanglingUnserved": {
			reason: "Of a kind that is not served nothing is there.", objects: all(xptest.With(lists, changed(time.Second))), change: func(o *Objects) { o.AddUnserved(bucket) },
			want: []string{"problem Dangling Bucket b"},
		},
		"Unread": {
			reason: "Of a kind that may not be read nothing is known.", objects: all(lists), change: func(o *Objects) { o.AddUnread(bucket, "forbidden") },
			want: []string{"warning NotRead Bucket *"},
		},
		"Broken": {
			reason: "A kind that nobody can read is a problem.", objects: all(lists), change: func(o *Objects) { o.AddBroken(bucket, "its webhook is down") },
			want: []string{"problem NotRead Bucket *"},
		},
		"BrokenGroup": {
			reason: "So is a group of which it is not even known what it serves.", objects: all(lists),
			change: func(o *Objects) { o.AddBroken(schema.GroupKind{Group: bucket.Group, Kind: "*"}, "down") }, want: []string{"problem NotRead * *"},
		},
		"Elsewhere": {
			reason: "Of what is in another namespace than the one that was asked for nothing is known.", change: func(o *Objects) { o.Limit("team-b") },
			objects: all(xptest.With(x, xptest.Refs(xptest.NamespacedMR("far")))),
		},
		"Uncontrolled": {reason: "What nobody controls Crossplane has not adopted.", objects: all(lists, composed()), want: []string{"problem Uncontrolled Bucket b"}},
		"NotItsOwn": {
			reason: "What another XR controls is not this one's.", objects: all(lists, y, composed(xptest.ControlledBy(y))), want: []string{"problem NotItsOwn Bucket b"},
		},
		"DeadController": {
			reason:  "The garbage collector deletes what has only a dead owner.",
			objects: all(lists, composed(xptest.ControlledBy(xptest.With(x, xptest.UID("old"))))), want: []string{"problem DeadController Bucket b"},
		},
		"DeadControllerDeleting": {
			reason:  "Also while it is doing so.",
			objects: all(lists, composed(xptest.ControlledBy(xptest.With(x, xptest.UID("old"))), deleted(time.Second))), want: []string{"problem DeadController Bucket b"},
		},
		"Orphaned": {reason: "What no XR lists nobody updates.", objects: all(x, composed()), want: []string{"problem Orphaned Bucket b"}},
		"OrphanedUnread": {
			reason: "One that may not be read may list it.", objects: all(x, composed()),
			change: func(o *Objects) { o.AddUnread(schema.GroupKind{Group: "example.org", Kind: "XOther"}, "forbidden") },
			want:   []string{"warning Orphaned Bucket b", "warning NotRead XOther *"},
		},
		"OrphanedDead": {
			reason: "Its XR is gone, as it goes first when a tree is deleted.", objects: all(composed(xptest.ControlledBy(y))), want: []string{"warning Orphaned Bucket b"},
		},
		"OrphanedUnserved": {
			reason: "The garbage collector deletes nothing whose owner it can't look up.", objects: all(composed(xptest.ControlledBy(y))),
			change: func(o *Objects) { o.AddUnserved(y.GroupVersionKind().GroupKind()) }, want: []string{"problem Orphaned Bucket b"},
		},
		"OrphanedByWitness": {
			reason: "An XR that is no subject counts as one that lists.", objects: all(composed()), change: func(o *Objects) { o.AddWitness(lists) },
		},
		"LeftoverPin": {
			reason: "What a hold has left keeps its own effect.", want: []string{"problem LeakedHold XOrder x"},
			objects: all(xptest.With(x, xptest.Policy(xp.UpdateManual), xptest.JSON(`{"metadata":{"managedFields":[{"manager":"velero-plugin-for-crossplane","operation":"Update",
				"fieldsV1":{"f:spec":{"f:compositionUpdatePolicy":{}}}}]}}`))),
		},
		"OwnPin":  {reason: "A person's own does too, as it should.", objects: all(xptest.With(x, xptest.Policy(xp.UpdateManual)))},
		"Dropped": {reason: "Also if its XR still controls it.", objects: all(x, mine), want: []string{"problem Orphaned Bucket b"}},
		"MalformedRefs": {
			reason: "If what an XR lists can't be read, nothing is an orphan of it.", objects: all(xptest.With(x, xptest.Field("x", "spec", "resourceRefs")), mine),
			want: []string{"problem Malformed XOrder x"},
		},
		"MalformedMark": {
			reason: "A mark that can't be read says nothing.", objects: all(xptest.With(x, xptest.Annotated("velero.crossplane.x-k8s.io/hold", "x"))), want: []string{"problem Malformed XOrder x"},
		},
		"ClaimDangling": {reason: "A claim whose XR is gone makes another.", objects: all(claim), want: []string{"problem Dangling OrderClaim team-a/c"}},
		"ClaimOneSided": {reason: "A claim can name any XR.", objects: all(claim, x), want: []string{"problem OneSided OrderClaim team-a/c"}},
		"XROneSided":    {reason: "An XR whose claim is gone has no user.", objects: all(xptest.With(x, xptest.ClaimedBy(claim))), want: []string{"warning OneSided XOrder x"}},
		"XRForged": {
			reason: "An XR can name any claim.", objects: all(xptest.With(x, xptest.ClaimedBy(claim)), xptest.With(claim, xptest.OfXR(y)), xptest.With(y, xptest.ClaimedBy(claim))),
			want: []string{"problem OneSided XOrder x"},
		},
		"Duplicated": {
			reason:  "Two MRs with one name that was not made of theirs have one external resource.",
			objects: all(named("a", "i-1"), named("b", "i-1")), want: []string{"problem Duplicated Bucket b"},
		},
		"DuplicatedAcrossFamilies": {
			reason: "So have a namespaced and a cluster-scoped one.",
			objects: all(named("a", "i-1"), xptest.Object("cloud.m.example.org/v1", "Bucket", "team-a", "b", xptest.Finalizers(xp.FinalizerManaged),
				xptest.Annotated(xp.AnnotationExternalName, "i-1"), ready("True"))),
			want: []string{"problem Duplicated Bucket team-a/b"},
		},
		"DuplicatedInRegions": {
			reason:  "In another region it is another one.",
			objects: all(named("a", "i-1", xptest.JSON(`{"spec":{"forProvider":{"region":"eu"}}}`)), named("b", "i-1", xptest.JSON(`{"spec":{"forProvider":{"region":"us"}}}`))),
		},
		"DuplicatedOfOneID": {
			reason: "Names that were made of the MRs' own can be of two, but what the provider calls them is the same.",
			objects: all(named("b", "b", xptest.In("team-a"), xptest.JSON(`{"status":{"atProvider":{"id":"b"}}}`)),
				named("b", "b", xptest.In("team-b"), xptest.JSON(`{"status":{"atProvider":{"id":"b"}}}`))),
			want: []string{"warning Duplicated Bucket team-b/b"},
		},
		"DuplicatedOfOneARN": {
			reason:  "What the cloud calls it is the same everywhere.",
			objects: all(named("a", "db", xptest.In("team-a"), database("x")), named("b", "db", xptest.In("team-b"), database("x"))),
			want:    []string{"problem Duplicated Bucket team-b/b"},
		},
		"DuplicatedInAccounts": {
			reason: "What only looks like an identifier can be another's in another account.", want: []string{"warning Duplicated Bucket b"},
			objects: all(named("a", "db", xptest.JSON(`{"spec":{"providerConfigRef":{"name":"x"}},"status":{"atProvider":{"id":"db"}}}`)),
				named("b", "db", xptest.JSON(`{"spec":{"providerConfigRef":{"name":"y"}},"status":{"atProvider":{"id":"db"}}}`))),
		},
		"InFlight": {
			reason:  "A provider that has stopped in the middle of creating does not go on by itself.",
			objects: all(nameless(xptest.Annotated(xp.AnnotationCreatePending, ago(time.Hour)), xptest.Synced("False", "ReconcileError", "cannot determine creation result"))),
			want:    []string{"problem IdentityInFlight Bucket b", "warning NotSynced Bucket b"},
		},
		"NoExternalName":      {reason: "What is there and has no name is made anew by the next provider.", objects: all(nameless()), want: []string{"problem IdentityMissing Bucket b"}},
		"NoExternalNameNever": {reason: "Unless its provider may not.", objects: all(nameless(xptest.JSON(`{"spec":{"managementPolicies":["Observe","Update"]}}`)))},
		"NeverCreated":        {reason: "What never was can be made.", objects: all(nameless(xptest.Without("status"), xptest.Without("metadata", "finalizers"), xptest.Annotated(xp.AnnotationCreateFailed, ago(time.Hour)), xptest.Synced("True", "", "")))},
		"NoExternalNameSlow": {
			reason: "A create that takes long may have gone wrong.", want: []string{"warning IdentityMissing Bucket b", "warning NotReady Bucket b"},
			objects: all(nameless(xptest.Annotated(xp.AnnotationCreateSucceeded, ago(time.Hour)), ready("False"))),
		},
		"NoExternalNameRestored": {
			reason: "What was restored is not being created.", want: []string{"problem IdentityMissing Bucket b"},
			objects: all(nameless(xptest.Labelled(xp.LabelRestore, "r"), xptest.Annotated(xp.AnnotationCreateSucceeded, ago(time.Second)), changed(time.Second), xptest.Without("status"))),
		},
		"XRDTerminating": {
			reason: "With its XRD an XR goes.", objects: all(x, xptest.XRD("orders", defines, deleted(time.Second))), want: []string{"problem DefinitionDying CompositeResourceDefinition orders"},
		},
		"XRDJustDeleted":    {reason: "An XRD without XRs is gone in a moment.", objects: all(xptest.XRD("orders", defines, deleted(time.Second)))},
		"XRDDeletedLongAgo": {reason: "Unless it can't.", objects: all(xptest.XRD("orders", defines, deleted(time.Hour))), want: []string{"problem DefinitionDying CompositeResourceDefinition orders"}},
		"StuckNew":          {reason: "Nobody has ever reconciled it.", objects: all(xptest.XR("x")), want: []string{"problem Stuck XOrder x"}},
		"StuckOld": {
			reason: "Nobody has since it was changed.", objects: all(xptest.With(x, xptest.Generation(3), xptest.OfGeneration(2), changed(2*time.Minute))), want: []string{"problem Stuck XOrder x"},
		},
		"StuckAtLast": {reason: "It has had the time that it may take.", objects: all(xptest.XR("x", changed(stuckAfter))), want: []string{"problem Stuck XOrder x"}},
		"StuckMRAtLast": {
			reason: "So has an MR.", objects: all(xptest.MR("b", changed(stuckAfterProvider))), want: []string{"problem Stuck Bucket b"},
		},
		"NoGeneration": {reason: "Crossplane v1 does not say as of when it has reconciled something.", objects: all(xptest.With(x, xptest.Generation(3)))},
		"StuckPaused":  {reason: "It is not paused any more.", objects: all(xptest.XR("x", xptest.SeenPaused())), want: []string{"problem Stuck XOrder x"}},
		"StuckMR":      {reason: "A provider can have much to do.", objects: all(xptest.MR("b", changed(2*time.Minute))), want: []string{"warning Stuck Bucket b"}},
		"StuckMRLong":  {reason: "But not for ever.", objects: all(xptest.MR("b", changed(time.Hour))), want: []string{"problem Stuck Bucket b"}},
		"NotSynced":    {reason: "It says so itself.", objects: all(xptest.XR("x", xptest.Synced("False", "ReconcileError", "no"))), want: []string{"warning NotSynced XOrder x"}},
		"NotReady":     {reason: "It says so itself.", objects: all(xptest.MR("b", ready("False"))), want: []string{"warning NotReady Bucket b"}},
		"Quarantined": {
			reason: "Somebody wants it held.", objects: all(quarantined(xptest.With(lists, xptest.Without("status"))), quarantined(claim)),
			want: []string{"problem Quarantined OrderClaim team-a/c", "problem Quarantined XOrder x"},
		},
		"ByHand": {
			reason:  "It waits for a person, and is not forgotten.",
			objects: all(heldAs(xptest.With(lists, xptest.Without("status")), adoption.Hold{ByHand: true}), heldAs(claim, adoption.Hold{ByHand: true})),
			want:    []string{"problem Held OrderClaim team-a/c", "problem Held XOrder x"},
		},
		"ByHandNew": {
			reason: "Nobody had reconciled it yet.", objects: all(heldAs(xptest.Object(xptest.ManagedVersion, xptest.ManagedKind, "", "new"), adoption.Hold{ByHand: true})),
			want: []string{"problem Held Bucket new"},
		},
		"QuarantinedNew": {
			reason: "Nobody had reconciled it yet.", objects: all(quarantined(xptest.Object(xptest.ManagedVersion, xptest.ManagedKind, "", "new"))),
			want: []string{"problem Quarantined Bucket new"},
		},
		"Exchanging": {
			reason:  "Nobody may forget that it composes nothing.",
			objects: all(xptest.With(x, xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Annotated(xp.AnnotationExchange, "now"))),
			want:    []string{"problem Exchanging XOrder x"},
		},
		"ExchangedByGit": {
			reason: "Git has said that it is not paused.", objects: all(xptest.With(x, xptest.Annotated(xp.AnnotationPaused, "false"), xptest.Annotated(xp.AnnotationExchange, "now"))),
		},
		"Held": {
			reason: "Of what is held the hold says what is wrong.", objects: all(held(xptest.With(lists, xptest.Without("status"))), held(claim)),
			want: []string{"problem LeakedHold OrderClaim team-a/c", "problem LeakedHold XOrder x"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := objectsOf(tc.objects...)
			if tc.change != nil {
				tc.change(o)
			}
			if diff := cmp.Diff(tc.want, summaries(Validate(o, ClusterState{Now: now}))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
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
			t.Errorf("of %d MRs with one name %d are told of, not %d", n, got, maxShared-1)
		}
	}
}
