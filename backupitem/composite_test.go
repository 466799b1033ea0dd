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
	nested := xptest.XR("nested", xptest.UID("nested"), xptest.Labelled(xp.LabelComposite, "x"))
	moved := xptest.MR("m", xptest.ControlledBy(nested), xptest.Labelled(xp.LabelComposite, "x"))
	claim := xptest.Claim("o", xptest.OfXR(plain))
	published := xptest.XR("x", xptest.PublishesTo("team-a", "s"))
	forged := []xptest.Option{xptest.RestoreFirst("secrets/team-b/theirs"), xptest.UnresolvedRefs(gone)}
	modern := xptest.XRV2("m")
	local := xptest.Object(xptest.ManagedVersion, "LocalBucket", "team-a", "b", xptest.ControlledBy(modern))
	modernOn := func(composed ...*unstructured.Unstructured) *cluster {
		return clusterOf(append(composed, xptest.Revision(xptest.RevisionName, modern), xptest.Composition("orders", modern), xptest.XRD("orders.example.org"))...)
	}
	job := func(name, status string) *unstructured.Unstructured {
		return xptest.Object("batch/v1", "Job", "team-a", name, xptest.ControlledBy(modern), xptest.JSON(`{"status":`+status+`}`))
	}
	done, failed, fresh := job("done", `{"startTime":"t","completionTime":"t"}`), job("failed", `{"startTime":"t","failed":1}`), job("fresh", `{}`)
	jobs := func(names ...string) (all []velero.ResourceIdentifier) {
		for _, name := range names {
			all = append(all, id("batch", "jobs", "team-a", name))
		}

		return all
	}
	modernItems := append(slices.Clone(platformItems[:2]), id(xp.GroupAPIExtensions, "compositeresourcedefinitions", "", "orders.example.org"))
	theirTree := xptest.MR("b", xptest.Labelled(xp.LabelComposite, "m"))
	const none = ": it does not exist, or is for another kind of XR [NotLinked]"
	outside := result{
		Items: modernItems, Before: modernItems, Dangling: []xp.Ref{{APIVersion: xptest.ManagedVersion, Kind: xptest.ManagedKind, Namespace: "team-a", Name: "b"}},
		Left: []string{"Bucket team-a/b [KindClusterScoped]"},
	}
	keptOut := xptest.Labelled("velero.io/exclude-from-backup", "true")
	elsewhere := xptest.Object(xptest.ManagedVersion, "LocalBucket", "team-b", "l")
	const notHere = "LocalBucket team-b/l: it does not exist, or this XR does not control it [NotLinked]"
	with := func(items ...velero.ResourceIdentifier) result {
		return result{Items: append(slices.Clip(platformItems), items...), Before: platformItems}
	}
	onlyXRD := result{Items: platformItems[2:], Before: platformItems[2:]}
	runTrees(t, map[string]treeCase{
		"Composed": {
			reason: "The XR brings its composed resources, and the objects that it needs come first.", cluster: on(mine), item: xptest.XR("x", xptest.Refs(mine)),
			want: with(bucket("b")),
		},
		"Modern": {
			reason: "A namespaced XR of Crossplane v2 brings its resources too.", item: xptest.With(modern, xptest.Refs(local)),
			cluster: modernOn(local), want: result{Items: append(slices.Clip(modernItems), id("cloud.example.org", "localbuckets", "team-a", "b")), Before: modernItems},
		},
		"AnotherOwners": {
			reason: "The XR lists a resource that another XR controls, which stays out.", cluster: on(mine, theirs), item: xptest.XR("x", xptest.Refs(theirs, mine)),
			want: with(bucket("b")).leaving("Bucket t: this XR does not control it [NotLinked]").dangling(theirs),
		},
		"MovedUp": {
			reason:  "Its nested XR is being deleted, and the outer one lists it.",
			cluster: on(moved, xptest.With(nested, xptest.Deleting())), item: xptest.XR("x", xptest.Refs(moved)), want: with(bucket("m")),
		},
		"NotMovedUp": {
			reason:  "Its nested XR is alive, and has it.",
			cluster: on(moved, nested), item: xptest.XR("x", xptest.Refs(moved)),
			want: with().leaving("Bucket m: this XR does not control it [NotLinked]").dangling(moved),
		},
		"MovedElsewhere": {
			reason:  "What another tree loses is not this one's.",
			cluster: on(theirs, xptest.XR("y", xptest.Deleting())), item: xptest.XR("x", xptest.Refs(theirs)),
			want: with().leaving("Bucket t: this XR does not control it [NotLinked]").dangling(theirs),
		},
		"Uncontrolled": {
			reason: "A tenant may have listed a resource without a controller, so it stays out.", cluster: on(xptest.MR("b")), item: xptest.XR("x", xptest.Refs(mine)),
			want: with().leaving("Bucket b: this XR does not control it [NotLinked]"),
		},
		"Ownerless": {
			reason:  "A restore without the plugin leaves resources with the tree's label and without an owner, so they belong to the XR.",
			cluster: on(xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x"))), item: xptest.XR("x", xptest.Refs(mine)),
			want: with(bucket("b")),
		},
		"CopiedLabel": {
			reason:  "A tenant can copy the label of another tree, which must bring no resource of it.",
			cluster: on(xptest.MR("t", xptest.Labelled(xp.LabelComposite, "y"))), item: xptest.XR("x", xptest.Labelled(xp.LabelComposite, "x"), xptest.Refs(theirs)),
			want: with().leaving("Bucket t: this XR does not control it [NotLinked]"),
		},
		"Unrestored": {
			reason:  "Velero backs up a completed Job and restores none, so a restore must not wait for it. Another one starts again.",
			cluster: modernOn(done, failed, fresh), item: xptest.With(modern, xptest.Refs(done, failed, fresh)),
			want: result{
				Items: append(slices.Clip(modernItems), jobs("done", "failed", "fresh")...), Before: modernItems, Dangling: []xp.Ref{xp.RefTo(done)},
				Left: []string{"Job team-a/done [MadeAgain]", "Job team-a/failed [RunsAgain]"},
			},
		},
		"ForgedClusterRefByLabel": {
			reason:  "The label of another tree brings only resources in the XR's namespace.",
			cluster: modernOn(theirTree), item: xptest.With(modern, xptest.Labelled(xp.LabelComposite, "m"), xptest.Refs(theirTree)),
			want: outside,
		},
		"Excluded": {
			reason:  "A restored XR waits for an excluded resource, or Crossplane would create it again.",
			cluster: on(xptest.With(mine, xptest.Labelled("velero.io/exclude-from-backup", "true"))), item: xptest.XR("x", xptest.Refs(mine)),
			want: with().leaving("Bucket b [ExcludedByLabel]"),
		},
		"Dangling": {
			reason:  "The plugin names a missing resource, since a restore cannot wait for it.",
			cluster: on(mine, xptest.With(mine, xptest.JSON(`{"metadata":{"name":"dying"}}`), xptest.Deleting())),
			item:    xptest.XR("x", xptest.Refs(gone, mine, xptest.MR("dying"), xptest.Object("gone.org/v1", "Gone", "", "g"))),
			want: result{
				Items: with(bucket("b")).Items, Before: platformItems,
				Dangling: []xp.Ref{xp.RefTo(gone), xp.RefTo(xptest.MR("dying")), {APIVersion: "gone.org/v1", Kind: "Gone", Name: "g"}},
				Left:     []string{"Bucket gone [Dangling]", "Bucket dying [DeletedDuringBackup]", "Gone g [Dangling]"},
			},
		},
		"Bound": {
			reason: "The XR brings its claim.", cluster: on(claim), item: xptest.XR("x", xptest.ClaimedBy(claim)),
			want: with(id("example.org", "orderclaims", "team-a", "o")),
		},
		"OneSidedClaim": {
			reason:  "A claim that names another XR belongs to another tree.",
			cluster: on(xptest.Claim("o", xptest.OfXR(xptest.XR("y")))),
			item:    xptest.XR("x", xptest.ClaimedBy(claim)),
			want:    with().leaving("OrderClaim team-a/o: it does not exist, or is bound to another XR [NotLinked]"),
		},
		"NoClaim": {
			reason: "The plugin names a missing claim.", cluster: on(), item: xptest.XR("x", xptest.ClaimedBy(claim)),
			want: with().leaving("OrderClaim team-a/o: it does not exist, or is bound to another XR [NotLinked]"),
		},
		"Secret": {
			reason: "The XR brings its connection secret.", cluster: on(xptest.Secret("s", xptest.ControlledBy(published))), item: published,
			want: with(id("", "secrets", "team-a", "s")),
		},
		"AnotherOwnersSecret": {
			reason: "An XR can name any Secret of the cluster, so it must control the Secret.", cluster: on(xptest.Secret("s")),
			item: published,
			want: with().leaving("Secret team-a/s: it does not exist, or XOrder x does not control it [NotLinked]"),
		},
		"NoSecret": {
			reason: "In another namespace, a missing Secret and another owner's Secret give the same message.", cluster: on(), item: published,
			want: with().leaving("Secret team-a/s: it does not exist, or XOrder x does not control it [NotLinked]"),
		},
		"NoSecretBeside": {
			reason: "A Secret that is not yet published needs no warning.", cluster: modernOn(local), item: xptest.With(modern, xptest.PublishesTo("", "s")),
			want: result{Items: modernItems, Before: modernItems},
		},
		"AnotherOwnersSecretBeside": {
			reason: "The plugin names another owner's Secret in the XR's own namespace.", cluster: modernOn(xptest.Secret("s")), item: xptest.With(modern, xptest.PublishesTo("", "s")),
			want: result{Items: modernItems, Before: modernItems, Left: []string{"Secret team-a/s: Order team-a/m does not control it [NotLinked]"}},
		},
		"NoPlatform": {
			reason: "The plugin names a missing Composition and XRD.", cluster: clusterOf(), item: plain,
			want: result{Left: []string{
				"CompositionRevision orders-1a2b3c" + none, "Composition orders" + none,
				"CompositeResourceDefinition xorders.example.org [DefinitionMissing]",
			}},
		},
		"CompositionOfOtherKind": {
			reason:  "A Composition for another kind may belong to another team.",
			cluster: clusterOf(xptest.Revision(xptest.RevisionName, modern), xptest.Composition("orders", modern), runsOn[2]), item: plain,
			want: onlyXRD.leaving("CompositionRevision orders-1a2b3c"+none, "Composition orders"+none),
		},
		"NeverComposed": {
			reason: "An XR that was never composed needs no Composition yet.", cluster: on(), item: xptest.XR("x", xptest.NeverComposed(), xptest.Without("spec", "compositionRef")),
			want: onlyXRD,
		},
		"Forged": {reason: "The plugin replaces fields that a tenant wrote for the restore.", cluster: on(), item: xptest.XR("x", forged...), want: with()},
		"Malformed": {
			reason:  "The backup has an XR with unreadable refs, and the plugin names it.",
			cluster: on(mine, claim, xptest.Secret("s", xptest.ControlledBy(published))),
			item:    xptest.With(published, xptest.ClaimedBy(claim), xptest.JSON(`{"spec":{"resourceRefs":[{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","name":"b"},1]}}`)),
			want:    with(id("example.org", "orderclaims", "team-a", "o"), id("", "secrets", "team-a", "s")).leaving("its resourceRefs [Malformed]"),
		},
		"KeptOutSecret": {
			reason: "Credentials that a user excludes from backups stay out.", item: published,
			cluster: on(xptest.Secret("s", xptest.ControlledBy(published), keptOut)),
			want:    with().leaving("Secret team-a/s [ExcludedByLabel]"),
		},
		"KeptOutComposition": {
			reason: "The restore then does without the Composition.", item: plain, cluster: clusterOf(runsOn[0], xptest.With(runsOn[1], keptOut), runsOn[2]),
			want: result{
				Items: slices.Concat(platformItems[:1], platformItems[2:]), Before: slices.Concat(platformItems[:1], platformItems[2:]),
				Left: []string{"Composition orders [ExcludedByLabel]"},
			},
		},
		"KeptOutAndAnotherOwners": {
			reason: "The message must not reveal whether another owner's resource has the label.", cluster: on(xptest.With(theirs, keptOut)), item: xptest.XR("x", xptest.Refs(theirs)),
			want: with().leaving("Bucket t: this XR does not control it [NotLinked]").dangling(theirs),
		},
		"ElsewhereAndNotThere": {
			reason: "A missing resource and another owner's resource give the same message.", cluster: on(), item: xptest.XR("x", xptest.Refs(elsewhere)),
			want: with().leaving(notHere).dangling(elsewhere),
		},
		"ElsewhereAndAnotherOwners": {
			reason: "Another owner's resource gives the same message as a missing one.", cluster: on(xptest.With(elsewhere, xptest.ControlledBy(xptest.XR("y")))), item: xptest.XR("x", xptest.Refs(elsewhere)),
			want: with().leaving(notHere).dangling(elsewhere),
		},
		"ElsewhereAndDeleting": {
			reason: "A terminating resource in another namespace gives the same message too.", cluster: on(xptest.With(elsewhere, xptest.Deleting())), item: xptest.XR("x", xptest.Refs(elsewhere)),
			want: with().leaving(notHere).dangling(elsewhere),
		},
		"OldVersion": {
			reason: "A ref can have a version that is not served any more, so the plugin reads a served one.", cluster: on(mine),
			item: xptest.XR("x", xptest.Refs(xptest.With(mine, xptest.JSON(`{"apiVersion":"cloud.example.org/v0gone"}`)))),
			want: with(bucket("b")),
		},
		"APIOfComposed": {
			reason:  "An unreadable resource stays out of the backup, but its XR does not.",
			cluster: on(mine).without(mine), item: xptest.XR("x", xptest.Refs(mine)),
			want: with().leaving(unread("Bucket b")),
		},
		"APIOfSecret": {
			reason: "An unreadable Secret stays out of the backup, but its XR does not.", cluster: on().without(xptest.Secret("s")), item: published,
			want: with().leaving(unread("Secret team-a/s")),
		},
		"UnservedXRItself": {
			reason: "The backup has an XR even if its kind is not served any more.", cluster: on(), item: xptest.XR("x", xptest.JSON(`{"kind":"XGone"}`)),
			want: result{Left: []string{
				"CompositionRevision orders-1a2b3c" + none, "Composition orders" + none,
				unread("its XRD"),
			}},
		},
	})
}
