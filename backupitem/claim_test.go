package backupitem

import (
	"testing"

	"github.com/vmware-tanzu/velero/pkg/plugin/velero"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestTreeOfAClaim(t *testing.T) {
	plain := xptest.Claim("o")
	x := xptest.XR("x")
	mine := xptest.MR("b", xptest.ControlledBy(x))
	bound := xptest.Claim("o", xptest.OfXR(x))
	xr := xptest.XR("x", xptest.ClaimedBy(bound), xptest.Refs(mine))

	child := xptest.XR("child", xptest.ControlledBy(x))
	grandchild := xptest.XR("grandchild", xptest.ControlledBy(child))
	deep, deeper := xptest.MR("deep", xptest.ControlledBy(child)), xptest.MR("deeper", xptest.ControlledBy(grandchild))
	child, grandchild = xptest.With(child, xptest.Refs(grandchild, deep)), xptest.With(grandchild, xptest.Refs(deeper))
	parent := xptest.XR("x", xptest.ClaimedBy(bound), xptest.Refs(child, mine))

	back := xptest.XR("back", xptest.ControlledBy(x))
	loop := xptest.XR("x", xptest.ClaimedBy(bound), xptest.ControlledBy(back), xptest.Refs(back))
	back = xptest.With(back, xptest.Refs(loop))

	const none = "XOrder x: it does not exist, or is not bound to this claim. If it is the claim's XR, correct its spec.claimRef [NotLinked]"

	runTrees(t, map[string]treeCase{
		"Tree": {
			reason: "The XR brings its own resources, and the claim's list for the restore has the whole tree.", cluster: clusterOf(xr, mine), item: bound,
			want: result{Items: []velero.ResourceIdentifier{xorder("x")}, Before: []velero.ResourceIdentifier{xorder("x"), bucket("b")}},
		},
		"Nested": {
			reason: "Each XR comes before its composed resources.", cluster: clusterOf(parent, child, grandchild, deep, deeper, mine), item: bound,
			want: result{
				Items:  []velero.ResourceIdentifier{xorder("x")},
				Before: []velero.ResourceIdentifier{xorder("x"), bucket("b"), xorder("child"), bucket("deep"), xorder("grandchild"), bucket("deeper")},
			},
		},
		"Cycle": {
			reason: "XRs that compose each other must not cause a loop.", cluster: clusterOf(loop, back), item: bound,
			want: result{Items: []velero.ResourceIdentifier{xorder("x")}, Before: []velero.ResourceIdentifier{xorder("x"), xorder("back")}},
		},
		"AnotherOwners": {
			reason: "A claim can name any XR, so the XR of another claim stays out with its tree.", item: bound,
			cluster: clusterOf(xptest.XR("x", xptest.ClaimedBy(xptest.Claim("o", xptest.In("team-b"))), xptest.Refs(mine)), mine),
			want:    result{Left: []string{none}},
		},
		"NoXR": {reason: "A missing XR and another claim's XR give the same message, which reveals nothing.", cluster: clusterOf(), item: bound, want: result{Left: []string{none}}},
		"DeletingXR": {
			reason:  "Velero does not back up an XR that is being deleted, so its tree must stay out too.",
			cluster: clusterOf(xptest.With(xr, xptest.Deleting()), mine),
			item:    bound,
			want:    result{Left: []string{"XOrder x [DeletedDuringBackup]"}},
		},
		"Secret": {
			reason:  "The claim brings its connection secret, which its namespace also brings in a restore.",
			item:    xptest.With(bound, xptest.PublishesTo("", "s")),
			cluster: clusterOf(xr, mine, xptest.Secret("s", xptest.ControlledBy(plain))),
			want: result{
				Items:  []velero.ResourceIdentifier{id("", "secrets", "team-a", "s"), xorder("x")},
				Before: []velero.ResourceIdentifier{xorder("x"), bucket("b")},
			},
		},
		"SecretElsewhere": {
			reason: "A claim publishes only to its own namespace.", item: xptest.With(plain, xptest.PublishesTo("team-b", "s")),
			cluster: clusterOf(xptest.Secret("s", xptest.In("team-b"), xptest.ControlledBy(plain))),
		},
		"Dangling": {
			reason: "The list leaves out missing resources, which the XR's own copy names.", cluster: clusterOf(xr), item: bound,
			want: result{Items: []velero.ResourceIdentifier{xorder("x")}, Before: []velero.ResourceIdentifier{xorder("x")}},
		},
		"API": {
			reason: "An unreadable XR stays out of the backup, but its claim does not.", cluster: clusterOf(xr).without(xr), item: bound,
			want: result{Left: []string{unread("XOrder x")}},
		},
		"APIBelow": {
			reason: "An unreadable nested XR stays out of the backup, but its claim does not.", cluster: clusterOf(parent, child, mine).without(deep), item: bound, want: result{
				Items: []velero.ResourceIdentifier{xorder("x")}, Before: []velero.ResourceIdentifier{xorder("x"), bucket("b"), xorder("child")},
				Left: []string{unread("Bucket deep")},
			},
		},
		"ExcludedXR": {
			reason: "An object that a user excludes stays out, and its composed resources too.", item: bound,
			cluster: clusterOf(xptest.With(xr, xptest.Labelled("velero.io/exclude-from-backup", "true")), mine),
			want:    result{Left: []string{"XOrder x [ExcludedByLabel]"}},
		},
		"MalformedBelow": {
			reason: "A nested XR with unreadable refs comes too, and its own backup names it.", item: bound,
			want:    result{Items: []velero.ResourceIdentifier{xorder("x")}, Before: []velero.ResourceIdentifier{xorder("x"), xorder("child")}},
			cluster: clusterOf(parent, xptest.XR("child", xptest.ControlledBy(x), xptest.JSON(`{"spec":{"resourceRefs":7}}`))),
		},
	})
}
