package adoption

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// An object that is deleted during its hold stays held, and the message explains both ways out.
func TestNextOfDeleted(t *testing.T) {
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	revision := xptest.Revision(xptest.RevisionName, x)
	paused := held(xptest.XR("x", xptest.Refs(bucket)), xptest.SeenPaused(), xptest.Deleting())
	claim := xptest.Claim("o", xptest.OfXR(x))
	claimed := xptest.XR("x", xptest.ClaimedBy(claim), xptest.Refs(bucket))
	going := held(claim, xptest.SeenPaused(), xptest.Deleting())
	unpausedClaim := xptest.With(going, unpaused())
	mr := func(o ...xptest.Option) *unstructured.Unstructured {
		return heldFor(unnamed(o...), Hold{Identity: xp.Unknown}, xptest.Deleting(), xptest.Annotated(xp.AnnotationExternalName, "b"))
	}
	const (
		code = " [DeletedWhileHeld]"
		ofXR = "XOrder x is being deleted, and its hold stops Crossplane from that; to delete it with all that it composes, remove its annotation " +
			"crossplane.io/paused" + keepExternalNext
		ofClaim = "OrderClaim team-a/o is being deleted, and its hold stops Crossplane from deleting XOrder x too; to delete both, with all that they compose, " +
			"remove the annotation crossplane.io/paused of both; to keep XOrder x, remove the finalizers of OrderClaim team-a/o, and restore it again when it is " +
			`gone: docs/gitops.md, "It was deleted while it was held"` + code
		ofMR = "Bucket b is being deleted, and its hold stops its provider from that; to delete it with its external resource, remove its annotation " +
			"crossplane.io/paused; to keep that, first remove Delete from its managementPolicies (on v1 set deletionPolicy: Orphan), and restore it again when it is " +
			"gone" + code
	)
	runPlans(t, map[string]planCase{
		"XR": {
			reason: "Crossplane would resume the deletion and delete all composed resources.", ref: xp.RefTo(x),
			snapshot: snapshot(paused, bucket, revision), want: outcome{Failed: ofXR + code},
		},
		"Foreground": {
			reason: "Foreground deletion removes composed resources first, and the message names the lost ones.", ref: xp.RefTo(x),
			snapshot: snapshot(paused, xptest.With(bucket, xptest.Deleting()), revision),
			want:     outcome{Failed: ofXR + "; these are being deleted too, with their external resources: Bucket b" + code},
		},
		"ForegroundOver": {
			reason: "Composed resources that are gone before the first check can't be kept either.", ref: xp.RefTo(x), snapshot: snapshot(paused, revision),
			want: outcome{Failed: ofXR + "; these were deleted before it, with their external resources, or never restored: Bucket b" + code},
		},
		"Claim": {
			reason: "Crossplane deletes the XR when the claim is released.", ref: xp.RefTo(x),
			snapshot: snapshot(held(claimed, xptest.SeenPaused()), going, bucket, revision), want: outcome{Failed: ofClaim},
		},
		"ClaimOfAdopted": {
			reason: "The risk also exists for an XR that was adopted before.", ref: xp.RefTo(x), snapshot: snapshot(xptest.With(claimed, xptest.Reconciled()), going, bucket, revision),
			want: outcome{Failed: ofClaim, Adopted: 1, Total: 1},
		},
		"ByTheClaim": {
			reason: "Without a restored XR the claim has its own operation.", ref: xp.RefTo(claim),
			snapshot: snapshot(held(claimed, xptest.SeenPaused()), going, bucket, revision), want: outcome{Failed: ofClaim},
		},
		"ClaimLetGo": {
			reason: "The user has released the claim.", ref: xp.RefTo(x), snapshot: snapshot(held(claimed, xptest.SeenPaused()), unpausedClaim, bucket, revision),
			want: outcome{Failed: "OrderClaim team-a/o is being deleted, and so is XOrder x" + restoreAgainNext + " [BeingDeleted]"},
		},
		"ClaimOfAnother": {
			reason: "Any XR can name any claim.", ref: xp.RefTo(x),
			snapshot: snapshot(held(claimed, xptest.SeenPaused()), held(xptest.Claim("o", xptest.OfXR(xptest.XR("other"))), xptest.Deleting()), bucket, revision),
			want:     outcome{Step: stepUnpause, Target: "XOrder x", Adopted: 1, Total: 1},
		},
		"MR": {
			reason: "The provider would delete the external resource after the release.", ref: xp.RefTo(mr()), snapshot: snapshot(mr()), want: outcome{Failed: ofMR},
		},
		"ObservingMR": {
			reason: "The release would restore the MR's own policies.", ref: xp.RefTo(mr()), snapshot: snapshot(xptest.With(mr(), unpaused())),
			want: outcome{Failed: "Bucket b is being deleted" + restoreAgainNext + " [BeingDeleted]"},
		},
	})
}
