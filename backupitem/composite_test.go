package backupitem

import (
	"slices"
	"testing"

	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestTreeOfAComposite(t *testing.T) {
	plain := xptest.XR("x")
	runsOn, platformItems := platform()
	on := func(objects ...*unstructured.Unstructured) *cluster { return clusterOf(append(objects, runsOn...)...) }
	mine, theirs, gone := xptest.MR("b", xptest.ControlledBy(plain)), xptest.MR("t", xptest.ControlledBy(xptest.XR("y"))), xptest.MR("gone")
	claim := xptest.Claim("o", xptest.OfXR(plain))
	published := xptest.XR("x", xptest.PublishesTo("team-a", "s"))
	forged := []xptest.Option{xptest.Tree("secrets/team-b/theirs"), xptest.Dangling(gone)}
	modern := xptest.ModernXR("m")
	local := xptest.Object(xptest.ManagedVersion, "LocalBucket", "team-a", "b", xptest.ControlledBy(modern))
	modernOn := func(composed *unstructured.Unstructured) *cluster {
		return clusterOf(composed, xptest.Revision(xptest.RevisionName, modern), xptest.Composition("orders", modern), xptest.XRD("orders.example.org"))
	}
	modernItems := append(slices.Clone(platformItems[:2]), id(xp.GroupAPIExtensions, "compositeresourcedefinitions", "", "orders.example.org"))
	theirTree := xptest.MR("b", xptest.Labelled(xp.LabelComposite, "m"))
	const again = "; it is stored as it is, without what it composes, and a restore refuses it. Have its spec list references again, then back up again"
	const none = ": it does not exist, or is for another kind of XR"
	const label = "its label velero.io/exclude-from-backup keeps it out of backups; if a restore needs it, take that label off, then back up again"
	outside := result{
		Items: modernItems, Before: modernItems, Dangling: []xp.Ref{{APIVersion: xptest.ManagedVersion, Kind: xptest.ManagedKind, Namespace: "team-a", Name: "b"}},
		Left: []string{"Bucket team-a/b: its kind is cluster-scoped, and an XR in a namespace composes nothing outside of it"},
	}
	keptOut := xptest.Labelled("velero.io/exclude-from-backup", "true")
	elsewhere := xptest.Object(xptest.ManagedVersion, "LocalBucket", "team-b", "l")
	const notHere = "LocalBucket team-b/l: it does not exist, or is not controlled by this XR"
	with := func(items ...velero.ResourceIdentifier) []velero.ResourceIdentifier {
		return append(slices.Clip(platformItems), items...)
	}
	runTrees(t, map[string]treeCase{
		"Composed": {
			reason: "What it composes comes with it, and what it runs on goes before it.", cluster: on(mine), item: xptest.XR("x", xptest.Refs(mine)),
			want: result{Items: with(bucket("b")), Before: platformItems},
		},
		"Modern": {
			reason: "The same for Crossplane v2, whose XRs are namespaced.", item: xptest.With(modern, xptest.Refs(local)),
			cluster: modernOn(local), want: result{Items: append(slices.Clip(modernItems), id("cloud.example.org", "localbuckets", "team-a", "b")), Before: modernItems},
		},
		"AnotherOwners": {
			reason: "A resource that another XR controls stays out, though the XR lists it.", cluster: on(mine, theirs), item: xptest.XR("x", xptest.Refs(theirs, mine)),
			want: result{
				Items: with(bucket("b")), Before: platformItems, Dangling: []xp.Ref{xp.RefTo(theirs)}, Left: []string{"Bucket t: it is not controlled by this XR"},
			},
		},
		"Uncontrolled": {
			reason: "Nor does what nobody controls: a tenant may have listed it.", cluster: on(xptest.MR("b")), item: xptest.XR("x", xptest.Refs(mine)),
			want: result{Items: platformItems, Before: platformItems, Left: []string{"Bucket b: it is not controlled by this XR"}},
		},
		"Ownerless": {
			reason:  "What has the label of the tree and no owner is its own: a restore without this plugin left it so.",
			cluster: on(xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x"))), item: xptest.XR("x", xptest.Refs(mine)),
			want: result{Items: with(bucket("b")), Before: platformItems},
		},
		"CopiedLabel": {
			reason:  "A label that a tenant has copied from another's tree brings nothing of the other's.",
			cluster: on(xptest.MR("t", xptest.Labelled(xp.LabelComposite, "y"))), item: xptest.XR("x", xptest.Labelled(xp.LabelComposite, "x"), xptest.Refs(theirs)),
			want: result{Items: platformItems, Before: platformItems, Left: []string{"Bucket t: it is not controlled by this XR"}},
		},
		"ForgedClusterRef": {
			reason:  "A namespaced XR of the name of another's tree brings nothing that is not in its namespace.",
			cluster: modernOn(theirTree), item: xptest.With(modern, xptest.Refs(theirTree)),
			want: outside,
		},
		"ForgedClusterRefByLabel": {
			reason:  "Nor does one that has the label of the tree.",
			cluster: modernOn(theirTree), item: xptest.With(modern, xptest.Labelled(xp.LabelComposite, "m"), xptest.Refs(theirTree)),
			want: outside,
		},
		"Excluded": {
			reason:  "What a person keeps out of backups is named; a restore waits for it, or else Crossplane would make it anew.",
			cluster: on(xptest.With(mine, xptest.Labelled("velero.io/exclude-from-backup", "true"))), item: xptest.XR("x", xptest.Refs(mine)),
			want: result{
				Items: platformItems, Before: platformItems,
				Left: []string{"Bucket b: its label velero.io/exclude-from-backup keeps it out of backups; a restored XR waits for it"},
			},
		},
		"NotExcluded": {
			reason:  "Only the value true keeps it out.",
			cluster: on(xptest.With(mine, xptest.Labelled("velero.io/exclude-from-backup", "false"))), item: xptest.XR("x", xptest.Refs(mine)),
			want: result{Items: with(bucket("b")), Before: platformItems},
		},
		"Dangling": {
			reason:  "What is not there can't be waited for in a restore, and is named.",
			cluster: on(mine, xptest.With(mine, xptest.JSON(`{"metadata":{"name":"dying"}}`), xptest.Deleting())),
			item:    xptest.XR("x", xptest.Refs(gone, mine, xptest.MR("dying"), xptest.Object("gone.org/v1", "Gone", "", "g"))),
			want: result{
				Items: with(bucket("b")), Before: platformItems,
				Dangling: []xp.Ref{xp.RefTo(gone), xp.RefTo(xptest.MR("dying")), {APIVersion: "gone.org/v1", Kind: "Gone", Name: "g"}},
				Left:     []string{"Bucket gone: it does not exist", "Bucket dying: it is being deleted, so Velero does not back it up", "Gone g: it does not exist"},
			},
		},
		"Bound": {
			reason: "Its claim comes with it.", cluster: on(claim), item: xptest.XR("x", xptest.ClaimedBy(claim)),
			want: result{Items: with(id("example.org", "orderclaims", "team-a", "o")), Before: platformItems},
		},
		"OneSidedClaim": {
			reason:  "A claim that names another XR is somebody else's.",
			cluster: on(xptest.Claim("o", xptest.OfXR(xptest.XR("y")))),
			item:    xptest.XR("x", xptest.ClaimedBy(claim)),
			want:    result{Items: platformItems, Before: platformItems, Left: []string{"OrderClaim team-a/o: it does not exist, or is bound to another XR"}},
		},
		"NoClaim": {
			reason: "A claim that is gone is named.", cluster: on(), item: xptest.XR("x", xptest.ClaimedBy(claim)),
			want: result{Items: platformItems, Before: platformItems, Left: []string{"OrderClaim team-a/o: it does not exist, or is bound to another XR"}},
		},
		"Secret": {
			reason: "Its connection secret comes with it.", cluster: on(xptest.Secret("s", xptest.ControlledBy(published))), item: published,
			want: result{Items: with(id("", "secrets", "team-a", "s")), Before: platformItems},
		},
		"AnotherOwnersSecret": {
			reason: "A Secret that the XR names and does not control can be any Secret of the cluster.", cluster: on(xptest.Secret("s")),
			item: published,
			want: result{Items: platformItems, Before: platformItems, Left: []string{"Secret team-a/s: it does not exist, or is not controlled by it"}},
		},
		"NoSecret": {
			reason: "A Secret in another namespace that is not there is not told from another's.", cluster: on(), item: published,
			want: result{Items: platformItems, Before: platformItems, Left: []string{"Secret team-a/s: it does not exist, or is not controlled by it"}},
		},
		"NoSecretBeside": {
			reason: "A Secret that was not published yet is nothing to warn of.", cluster: modernOn(local), item: xptest.With(modern, xptest.PublishesTo("", "s")),
			want: result{Items: modernItems, Before: modernItems},
		},
		"AnotherOwnersSecretBeside": {
			reason: "Beside it another's is named.", cluster: modernOn(xptest.Secret("s")), item: xptest.With(modern, xptest.PublishesTo("", "s")),
			want: result{Items: modernItems, Before: modernItems, Left: []string{"Secret team-a/s: it is not controlled by it"}},
		},
		"NoPlatform": {
			reason: "What it should run on and does not exist is named.", cluster: clusterOf(), item: plain,
			want: result{Left: []string{
				"CompositionRevision orders-1a2b3c" + none, "Composition orders" + none,
				"CompositeResourceDefinition xorders.example.org: it does not exist, so a restore has nothing that reconciles the XR",
			}},
		},
		"AnothersPlatform": {
			reason:  "A Composition that is for another kind can be anybody's.",
			cluster: clusterOf(xptest.Revision(xptest.RevisionName, modern), xptest.Composition("orders", modern), runsOn[2]), item: plain,
			want: result{
				Items: platformItems[2:], Before: platformItems[2:],
				Left: []string{"CompositionRevision orders-1a2b3c" + none, "Composition orders" + none},
			},
		},
		"NeverComposed": {
			reason: "It runs on nothing yet.", cluster: on(), item: xptest.XR("x", xptest.NeverComposed(), xptest.Without("spec", "compositionRef")),
			want: result{Items: platformItems[2:], Before: platformItems[2:]},
		},
		"Forged": {
			reason: "What a tenant wrote for the restore is written over.", cluster: on(), item: xptest.XR("x", forged...),
			want: result{Items: platformItems, Before: platformItems},
		},
		"ForgedOnNothing": {
			reason:  "And taken off if there is nothing to write.",
			cluster: clusterOf(),
			item:    xptest.XR("x", append(forged, xptest.NeverComposed(), xptest.Without("spec", "compositionRef"))...),
			want:    result{Left: []string{"CompositeResourceDefinition xorders.example.org: it does not exist, so a restore has nothing that reconciles the XR"}},
		},
		"Malformed": {
			reason:  "An XR whose refs can't be read is stored, and named.",
			cluster: on(mine, claim, xptest.Secret("s", xptest.ControlledBy(published))),
			item:    xptest.With(published, xptest.ClaimedBy(claim), xptest.JSON(`{"spec":{"resourceRefs":[{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","name":"b"},1]}}`)),
			want: result{
				Items: with(id("example.org", "orderclaims", "team-a", "o"), id("", "secrets", "team-a", "s")), Before: platformItems,
				Left: []string{"its resourceRefs: " + "cannot read resourceRef 1 of XOrder x: it is a int64, not an object" + again},
			},
		},
		"MalformedList": {
			reason: "Also if they are no list.", cluster: on(), item: xptest.XR("x", xptest.JSON(`{"spec":{"resourceRefs":"b"}}`)),
			want: result{
				Items: platformItems, Before: platformItems, Left: []string{"its resourceRefs: cannot read the resourceRefs of XOrder x: they are a string, not a list" + again},
			},
		},
		"KeptOutClaim": {
			reason: "The label counts for all that it is on.", cluster: on(xptest.With(claim, keptOut)), item: xptest.XR("x", xptest.ClaimedBy(claim)),
			want: result{Items: platformItems, Before: platformItems, Left: []string{"OrderClaim team-a/o: " + label}},
		},
		"KeptOutSecret": {
			reason: "Credentials that a person keeps out of backups stay out.", item: published,
			cluster: on(xptest.Secret("s", xptest.ControlledBy(published), keptOut)),
			want:    result{Items: platformItems, Before: platformItems, Left: []string{"Secret team-a/s: " + label}},
		},
		"KeptOutComposition": {
			reason: "A restore does without it then.", item: plain, cluster: clusterOf(runsOn[0], xptest.With(runsOn[1], keptOut), runsOn[2]),
			want: result{
				Items: slices.Concat(platformItems[:1], platformItems[2:]), Before: slices.Concat(platformItems[:1], platformItems[2:]),
				Left: []string{"Composition orders: " + label},
			},
		},
		"KeptOutAndAnotherOwners": {
			reason: "Whether another's has the label is not told.", cluster: on(xptest.With(theirs, keptOut)), item: xptest.XR("x", xptest.Refs(theirs)),
			want: result{
				Items: platformItems, Before: platformItems, Dangling: []xp.Ref{xp.RefTo(theirs)}, Left: []string{"Bucket t: it is not controlled by this XR"},
			},
		},
		"ElsewhereAndNotThere": {
			reason: "What is in a namespace and not there is not told from what is another's.", cluster: on(), item: xptest.XR("x", xptest.Refs(elsewhere)),
			want: result{Items: platformItems, Before: platformItems, Dangling: []xp.Ref{xp.RefTo(elsewhere)}, Left: []string{notHere}},
		},
		"ElsewhereAndAnotherOwners": {
			reason: "The same words.", cluster: on(xptest.With(elsewhere, xptest.ControlledBy(xptest.XR("y")))), item: xptest.XR("x", xptest.Refs(elsewhere)),
			want: result{Items: platformItems, Before: platformItems, Dangling: []xp.Ref{xp.RefTo(elsewhere)}, Left: []string{notHere}},
		},
		"ElsewhereAndDeleting": {
			reason: "The same words.", cluster: on(xptest.With(elsewhere, xptest.Deleting())), item: xptest.XR("x", xptest.Refs(elsewhere)),
			want: result{Items: platformItems, Before: platformItems, Dangling: []xp.Ref{xp.RefTo(elsewhere)}, Left: []string{notHere}},
		},
		"OldVersion": {
			reason: "A kind of which a ref has a version that is not served any more is read in one that is.", cluster: on(mine),
			item: xptest.XR("x", xptest.Refs(xptest.With(mine, xptest.JSON(`{"apiVersion":"cloud.example.org/v0gone"}`)))),
			want: result{Items: with(bucket("b")), Before: platformItems},
		},
		"APIOfComposed": {
			reason:  "That something could not be read costs the backup that, and not the XR.",
			cluster: on(mine).without(mine), item: xptest.XR("x", xptest.Refs(mine)),
			want: result{Items: platformItems, Before: platformItems, Left: []string{unreadableWarning("Bucket b", "Bucket.cloud.example.org")}},
		},
		"APIOfClaim": {
			reason:  "The same for the claim.",
			cluster: on(claim).without(claim), item: xptest.XR("x", xptest.ClaimedBy(claim)),
			want: result{Items: platformItems, Before: platformItems, Left: []string{unreadableWarning("OrderClaim team-a/o", "OrderClaim.example.org")}},
		},
		"APIOfSecret": {
			reason: "The same for the Secret.", cluster: on().without(xptest.Secret("s")), item: published,
			want: result{Items: platformItems, Before: platformItems, Left: []string{unreadableWarning("Secret team-a/s", "Secret")}},
		},
		"APIOfRevision": {
			reason: "The same for the revision.", cluster: on().without(runsOn[0]), item: plain,
			want: result{
				Items: platformItems[1:], Before: platformItems[1:],
				Left: []string{unreadableWarning("CompositionRevision orders-1a2b3c", "CompositionRevision.apiextensions.crossplane.io")},
			},
		},
		"APIOfXRD": {
			reason: "The same for the XRD.", cluster: on().without(runsOn[2]), item: plain,
			want: result{
				Items: platformItems[:2], Before: platformItems[:2],
				Left: []string{unreadableWarning("CompositeResourceDefinition xorders.example.org", "CompositeResourceDefinition.apiextensions.crossplane.io")},
			},
		},
		"UnservedXRItself": {
			reason: "An XR is stored even if nobody knows its kind any more.", cluster: on(), item: xptest.XR("x", xptest.JSON(`{"kind":"XGone"}`)),
			want: result{Left: []string{
				"CompositionRevision orders-1a2b3c" + none, "Composition orders" + none,
				`its XRD: no matches for kind "XGone" in group "example.org"` + ". It is stored without what defines it, as Velero alone would. Have the API server answer for its kind, " +
					"then back up again",
			}},
		},
	})
}
