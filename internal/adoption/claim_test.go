package adoption

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestNextForTheClaimOfAnXR(t *testing.T) {
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	plain := xptest.XR("x", xptest.ClaimedBy(claim))
	xr := held(plain, unpaused(), xptest.Reconciled())
	ready := held(claim, xptest.SeenPaused())
	paused := heldFor(xptest.With(claim, xptest.Annotated(xp.AnnotationPaused, "true")), Hold{Status: []string{"conditions"}})
	wait := func(why string) outcome { return outcome{Moving: true, Waiting: []string{why}} }
	const unseen = "OrderClaim team-a/o: Crossplane has not reported yet that it is paused [AwaitingPauseReport]"
	stranger := xptest.Claim("o", xptest.OfXR(xptest.XR("theirs")))
	runPlans(t, map[string]planCase{
		"Release": {
			reason:   "The claim is released first, while its XR is still marked.",
			snapshot: snapshot(xr, ready), ref: xp.RefTo(xr), want: outcome{Step: stepClaim, Target: "OrderClaim team-a/o"},
		},
		"NotBeforeTheXR": {
			reason:   "A claim is not released before its XR has been reconciled.",
			snapshot: snapshot(xptest.With(xr, xptest.SeenPaused()), ready), ref: xp.RefTo(xr), want: wait("XOrder x: Crossplane has not reconciled it yet [AwaitingCrossplane]"),
		},
		"NotSeen": {
			reason:   "Crossplane must have seen the claim's pause.",
			snapshot: snapshot(xr, held(claim)), ref: xp.RefTo(xr), want: wait(unseen),
		},
		"StaysPaused": {
			reason:   "Crossplane does not reconcile a claim that the user has paused, so nothing has to prove a reconcile.",
			snapshot: snapshot(xr, xptest.With(paused, xptest.Reconciled())), ref: xp.RefTo(xr),
			want: outcome{Step: stepClaim, Target: "OrderClaim team-a/o"},
		},
		"StaysPausedWithoutStatus": {
			reason:   "Nobody writes the status of a claim that the user has paused.",
			snapshot: snapshot(xr, paused), ref: xp.RefTo(xr),
			want: outcome{Waiting: []string{
				"OrderClaim team-a/o: status.conditions did not come back. Write it with kubectl edit --subresource=status, or, if nothing reads it, release this: " +
					xp.Program + " release --force team-a/o [StatusMissing]",
			}},
		},
		"PauseTakenOff": {
			reason:   "Crossplane reports no unpaused claim as paused, so a reconcile with its XR is enough proof.",
			snapshot: snapshot(xr, xptest.With(ready, xptest.Without("metadata", "annotations", xp.AnnotationPaused), xptest.Reconciled())), ref: xp.RefTo(xr),
			want: outcome{Step: stepClaim, Target: "OrderClaim team-a/o"},
		},
		"PauseTakenOffNotReconciled": {
			reason: "Crossplane is about to reconcile the claim.", snapshot: snapshot(xr, xptest.With(ready, xptest.Annotated(xp.AnnotationPaused, "false"))), ref: xp.RefTo(xr),
			want: wait("OrderClaim team-a/o: Crossplane has not reconciled it yet [AwaitingCrossplane]"),
		},
		"NotReconciled": {
			reason:   "Crossplane must have reconciled the claim before its XR loses its mark.",
			snapshot: snapshot(xr, xptest.With(claim, xptest.SeenPaused())), ref: xp.RefTo(xr), want: wait("OrderClaim team-a/o: Crossplane has not reconciled it yet [AwaitingCrossplane]"),
		},
		"Failing": {
			reason:   "The report quotes Crossplane's own message.",
			snapshot: snapshot(xr, xptest.With(claim, xptest.Synced("False", "ReconcileError", "no XRD"))), ref: xp.RefTo(xr),
			want: wait("OrderClaim team-a/o: Crossplane can't reconcile it: no XRD [CrossplaneFailing]"),
		},
		"Reconciled": {
			reason:   "The XR is released after its claim.",
			snapshot: snapshot(xr, xptest.With(claim, xptest.Reconciled())), ref: xp.RefTo(xr), want: outcome{Step: stepRelease, Target: "XOrder x"},
		},
		"PausedByThePerson": {
			reason:   "Crossplane never reconciles a claim that the user has paused.",
			snapshot: snapshot(xr, xptest.With(claim, xptest.Annotated(xp.AnnotationPaused, "true"))), ref: xp.RefTo(xr),
			want: outcome{Step: stepRelease, Target: "XOrder x"},
		},
		"Missing": {
			reason:   "An XR does not wait for a missing claim.",
			snapshot: snapshot(xr), ref: xp.RefTo(xr), want: outcome{Step: stepRelease, Target: "XOrder x"},
		},
		"NotRead": {
			reason: "An unreadable claim may exist and be held.",
			snapshot: func() *Snapshot {
				w := snapshot(xr)
				w.AddUnreadable(claim.GroupVersionKind(), "down")

				return w
			}(), ref: xp.RefTo(xr),
			want: outcome{Waiting: []string{"OrderClaim team-a/o: it can't be read: down. Check that the API server serves its kind, and that the user who runs this may list and " +
				"patch OrderClaim.example.org [NotRead]"}},
		},
		"Unreadable": {
			reason:   "A user must correct a mark that can't be read.",
			snapshot: snapshot(xr, xptest.With(claim, xptest.Annotated(AnnotationHold, "?"))), ref: xp.RefTo(xr),
			want: outcome{Waiting: []string{
				"cannot read the annotation velero.crossplane.x-k8s.io/hold of OrderClaim team-a/o: invalid character '?' looking for beginning of value; " +
					"remove the annotation, then run release, or restore again [MarkUnreadable]",
			}},
		},
		"XRReleased": {
			reason:   "An XR without a hold lets its claim be released.",
			snapshot: snapshot(plain, ready), ref: xp.RefTo(xr), want: outcome{Step: stepClaim, Target: "OrderClaim team-a/o"},
		},
		"XRReleasedClaimNotSeen": {
			reason:   "The adoption is done only when neither is held.",
			snapshot: snapshot(plain, held(claim)), ref: xp.RefTo(xr), want: wait(unseen),
		},
		"BothReleased": {
			reason:   "The plugin does not judge a claim that it never held.",
			snapshot: snapshot(plain, claim), ref: xp.RefTo(xr), want: outcome{Done: true},
		},
		"ClaimOfAnother": {
			reason:   "Any XR can name any claim, so another XR's claim stays held for that XR, which may come later.",
			snapshot: snapshot(plain, held(stranger, xptest.SeenPaused())), ref: xp.RefTo(xr), want: outcome{Done: true},
		},
		"ClaimOfAnotherAndHeldXR": {
			reason:   "A held XR does not release the claim of another XR either.",
			snapshot: snapshot(xr, held(stranger, xptest.SeenPaused())), ref: xp.RefTo(xr), want: outcome{Step: stepRelease, Target: "XOrder x"},
		},
	})
}

func TestNextForAClaim(t *testing.T) {
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	xr := xptest.XR("x", xptest.ClaimedBy(claim))
	runPlans(t, map[string]planCase{
		"Gone": {
			reason:   "A claim that did not come back can't be adopted.",
			snapshot: snapshot(), ref: xp.RefTo(claim),
			want: outcome{Failed: "OrderClaim team-a/o: it was not restored, or was deleted since. See the errors of the restore. " + howObserved},
		},
		"NotHeld": {reason: "A claim without a hold needs nothing.", snapshot: snapshot(claim), ref: xp.RefTo(claim), want: outcome{Done: true}},
		"XRMissing": {
			reason:   "Crossplane would build a second tree for the claim.",
			snapshot: snapshot(held(claim)), ref: xp.RefTo(claim),
			want: outcome{Failed: "OrderClaim team-a/o stays held, so that Crossplane composes no second XR for it: its XR x was not restored. " +
				"Restore again from a backup that has the XR, without --include-cluster-resources=false [ClaimWithoutXR]"},
		},
		"XRCameLater": {
			reason:   "Once the XR is back, the claim follows the XR's plan.",
			snapshot: snapshot(held(claim, xptest.SeenPaused()), xr), ref: xp.RefTo(claim), want: outcome{Step: stepClaim, Target: "OrderClaim team-a/o"},
		},
		"XROfAnotherClaim": {
			reason:   "The plan of another claim's XR would end while this claim is held.",
			snapshot: snapshot(held(claim, xptest.SeenPaused()), xptest.XR("x", xptest.ClaimedBy(xptest.Claim("p")))), ref: xp.RefTo(claim),
			want: outcome{Failed: "OrderClaim team-a/o stays held, so that Crossplane composes no second XR for it: its XR x is not bound to it. " +
				"Correct the claimRef of XOrder x or the resourceRef of the claim, then restore again [ClaimWithoutXR]"},
		},
		"NoXRYet": {
			reason:   "A claim that had no XR in the backup has no tree that could be built twice.",
			snapshot: snapshot(held(xptest.Claim("o"), xptest.SeenPaused())), ref: xp.RefTo(claim),
			want: outcome{Step: "it had no XR in the backup; give its own settings back", Target: "OrderClaim team-a/o"},
		},
		"Unreadable": {
			reason:   "A user must correct a mark that can't be read.",
			snapshot: snapshot(xptest.With(claim, xptest.Annotated(AnnotationHold, "?")), xr), ref: xp.RefTo(claim),
			want: outcome{Failed: "cannot read the annotation velero.crossplane.x-k8s.io/hold of OrderClaim team-a/o: " +
				"invalid character '?' looking for beginning of value; " +
				"remove the annotation, then run release, or restore again [MarkUnreadable]"},
		},
	})
}
