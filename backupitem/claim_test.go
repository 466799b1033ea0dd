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

	const none = "XOrder x: it does not exist, or is not bound to this claim; if it should be, correct its spec.claimRef"

	runTrees(t, map[string]treeCase{
		"Tree": {
			reason: "Its XR brings itself what it composes; the list for the restore has it all.", cluster: clusterOf(xr, mine), item: bound,
			want: result{Items: []velero.ResourceIdentifier{xorder("x")}, Before: []velero.ResourceIdentifier{xorder("x"), bucket("b")}},
		},
		"Nested": {
			reason: "Each XR stands ahead of what it composes.", cluster: clusterOf(parent, child, grandchild, deep, deeper, mine), item: bound,
			want: result{
				Items:  []velero.ResourceIdentifier{xorder("x")},
				Before: []velero.ResourceIdentifier{xorder("x"), xorder("child"), xorder("grandchild"), bucket("deeper"), bucket("deep"), bucket("b")},
			},
		},
		"Cycle": {
			reason: "XRs that compose each other end.", cluster: clusterOf(loop, back), item: bound,
			want: result{Items: []velero.ResourceIdentifier{xorder("x")}, Before: []velero.ResourceIdentifier{xorder("x"), xorder("back")}},
		},
		"AnotherOwners": {
			reason: "A claim can name any XR; one that belongs to another claim stays out, with its whole tree.", item: bound,
			cluster: clusterOf(xptest.XR("x", xptest.ClaimedBy(xptest.Claim("o", xptest.In("team-b"))), xptest.Refs(mine)), mine),
			want:    result{Left: []string{none}},
		},
		"NoXR":   {reason: "An XR that is gone is named, with the same words as another's.", cluster: clusterOf(), item: bound, want: result{Left: []string{none}}},
		"NewOne": {reason: "A claim without an XR has nothing.", cluster: clusterOf(), item: plain},
		"DeletingXR": {
			reason:  "An XR that is being deleted is not in the backup, nor must its tree come back without it.",
			cluster: clusterOf(xptest.With(xr, xptest.Deleting()), mine),
			item:    bound,
			want:    result{Left: []string{"XOrder x: it is being deleted, so Velero does not back it up"}},
		},
		"Secret": {
			reason:  "Its connection secret comes with it; the restore needs no order for it, since it is in the claim's namespace.",
			item:    xptest.With(bound, xptest.PublishesTo("", "s")),
			cluster: clusterOf(xr, mine, xptest.Secret("s", xptest.ControlledBy(plain))),
			want: result{
				Items:  []velero.ResourceIdentifier{id("", "secrets", "team-a", "s"), xorder("x")},
				Before: []velero.ResourceIdentifier{xorder("x"), bucket("b")},
			},
		},
		"SecretElsewhere": {
			reason: "A claim publishes in its own namespace only, whatever it says.", item: xptest.With(plain, xptest.PublishesTo("team-b", "s")),
			cluster: clusterOf(xptest.Secret("s", xptest.In("team-b"), xptest.ControlledBy(plain))),
		},
		"Forged": {
			reason:  "What a tenant wrote for the restore is taken off.",
			cluster: clusterOf(),
			item:    xptest.With(plain, xptest.Tree("secrets/team-b/theirs")),
		},
		"Dangling": {
			reason: "What the XR references and is not there is not in the list; the XR's own copy says so.", cluster: clusterOf(xr), item: bound,
			want: result{Items: []velero.ResourceIdentifier{xorder("x")}, Before: []velero.ResourceIdentifier{xorder("x")}},
		},
		"API": {
			reason: "That an XR could not be read costs the backup the XR, and not the claim.", cluster: clusterOf(xr).without(xr), item: bound,
			want: result{Left: []string{unreadableWarning("XOrder x", "XOrder.example.org")}},
		},
		"APIOfSecret": {
			reason:  "The same for the Secret.",
			cluster: clusterOf().without(xptest.Secret("s")), item: xptest.With(plain, xptest.PublishesTo("", "s")),
			want: result{Left: []string{unreadableWarning("Secret team-a/s", "Secret")}},
		},
		"APIBelow": {
			reason: "The same for anything below.", cluster: clusterOf(parent, child, mine).without(deep), item: bound, want: result{
				Items: []velero.ResourceIdentifier{xorder("x")}, Before: []velero.ResourceIdentifier{xorder("x"), xorder("child"), bucket("b")},
				Left: []string{unreadableWarning("Bucket deep", "Bucket.cloud.example.org")},
			},
		},
		"ExcludedXR": {
			reason: "What a person keeps out of backups stays out, with what would come back without it.", item: bound,
			cluster: clusterOf(xptest.With(xr, xptest.Labelled("velero.io/exclude-from-backup", "true")), mine),
			want:    result{Left: []string{"XOrder x: its label velero.io/exclude-from-backup keeps it out of backups; if a restore needs it, take that label off, then back up again"}},
		},
		"MalformedBelow": {
			reason: "An XR below whose refs can't be read comes with the others, and its own backup names it.", item: bound,
			want:    result{Items: []velero.ResourceIdentifier{xorder("x")}, Before: []velero.ResourceIdentifier{xorder("x"), xorder("child")}},
			cluster: clusterOf(parent, xptest.XR("child", xptest.ControlledBy(x), xptest.JSON(`{"spec":{"resourceRefs":7}}`))),
		},
	})
}
