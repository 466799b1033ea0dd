package adoption

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Times of the backup, the restore and another writer's change.
const (
	saved   = "2026-01-01T09:00:00Z"
	cameAt  = "2026-01-02T11:00:00Z"
	laterAt = "2026-01-02T11:05:00Z"
)

// ofRestore is the option of an object that the polling Restore created.
func ofRestore() xptest.Option {
	return func(u *unstructured.Unstructured) {
		xptest.Labelled(xp.LabelRestore, "monday")(u)
		xptest.Created(cameAt)(u)
	}
}

// reconciledAt is the Synced condition of a reconciled object, with its transition time.
func reconciledAt(at string) xptest.Option {
	return xptest.Field([]any{map[string]any{"type": xp.ConditionSynced, "status": "True", "reason": "ReconcileSuccess", "lastTransitionTime": at}}, "status", "conditions")
}

// investigated returns the Snapshot with an Investigation that requests the given objects.
// Everything was listed.
func investigated(w *Snapshot, asked ...*unstructured.Unstructured) *Snapshot {
	all := func(xp.Ref) bool { return true }
	w.Investigate(Investigation{
		Requester: Requester{Restore: restoreName}, Label: "monday", Listed: all, Whole: all,
		Released: func(types.UID) bool { return false }, Unmarked: func(types.UID) bool { return false },
		Requested: func(id xp.ID) bool {
			for _, u := range asked {
				if xp.RefTo(u).ID() == id {
					return true
				}
			}

			return false
		},
	})

	return w
}

// lostTree returns an XR, the restored MR that it no longer lists (back), and the MR that it lists
// in its place (replacement).
func lostTree(o ...xptest.Option) (xr, back, replacement *unstructured.Unstructured) {
	x := xptest.XR("x")
	resource := xptest.Annotated(xp.AnnotationResourceName, "bucket")
	back = xptest.MR("b", xptest.ControlledBy(x), ofRestore(), resource)
	replacement = xptest.MR("b-new", xptest.ControlledBy(x), xptest.Created(laterAt), resource)
	xr = xptest.XR("x", append([]xptest.Option{
		ofRestore(), xptest.Refs(replacement), reconciledAt(laterAt), xptest.Managed("argocd-controller", "Apply", laterAt), xptest.Managed("kubectl-client-side-apply", "Update", saved),
		xptest.Managed("apiextensions.crossplane.io/composite", "Apply", "2026-01-02T11:09:00Z"),
	}, o...)...)

	return xr, back, replacement
}

const (
	lostWhy = "XOrder x was reconciled without its hold before it was adopted: the last to write it was \"argocd-controller\" (Apply, 2026-01-02T11:05:00Z). Crossplane " +
		"has composed: Bucket b-new; in place of what was restored: Bucket b; " + lostNext + " [ComposedAgain]"
)

func TestNextJudgesAnUnheldXR(t *testing.T) {
	xr, back, replacement := lostTree()
	policyPath := xp.Instance{Unstructured: xr}.UpdatePolicyPath()
	pinned := xptest.With(xr, xptest.Policy(xp.UpdateManual), xptest.Managed(hold.FieldManager, "Update", cameAt, policyPath))
	calm := xptest.With(xr, xptest.Refs(back))
	drop := xptest.Without("metadata", "ownerReferences")
	child := xptest.XR("child", ofRestore(), xptest.ControlledBy(xr), reconciledAt(laterAt))
	runPlans(t, xr, map[string]planCase{
		"Lost": {
			reason: "A replacement can look adopted, although the restored resource is lost.", want: "failed: ComposedAgain", says: lostWhy,
			snapshot: investigated(withRestored(snapshot(replacement), xr, back), xr),
		},
		"LostWithoutController": {
			reason: "The MR came back after its XR had dropped it.", want: "failed: ComposedAgain",
			snapshot: investigated(withRestored(snapshot(replacement), xr, xptest.With(back, drop)), xr),
		},
		"LostByAnEarlierLife": {
			reason: "The controller of the MR is an earlier XR that is gone.", want: "failed: ComposedAgain",
			snapshot: investigated(withRestored(snapshot(replacement), xr, xptest.With(back, drop, xptest.ControlledBy(xptest.XR("x", xptest.UID("old"))), xptest.Annotated(xp.AnnotationResourceName, "bucket"))), xr),
		},
		"LostAndPinned": {
			reason: "The XR must not stay pinned.", want: "free XOrder x; failed: ComposedAgain", snapshot: investigated(withRestored(snapshot(replacement), pinned, back), xr),
		},
		"NotRequested": {reason: "Only an operation requests this check.", want: "1/1; done", snapshot: withRestored(snapshot(replacement), xr, back)},
		"NotRestored": {
			reason: "The plugin does not judge an XR that was live before the restore.", want: "1/1; done", snapshot: investigated(withRestored(snapshot(replacement, xr), back), xr),
		},
		"Dropped": {
			reason: "The Composition has lost a resource, and Crossplane is deleting it.", want: "1/1; done",
			snapshot: investigated(withRestored(snapshot(replacement), xr, xptest.With(back, xptest.Deleting())), xr),
		},
		"Orphan": {
			reason: "An orphan from the backup has another resource name in the Composition, so nothing replaced it.", want: "1/1; done",
			snapshot: investigated(withRestored(snapshot(replacement), xr, xptest.With(back, drop, xptest.Annotated(xp.AnnotationResourceName, "other"))), xr),
		},
		"Adopted": {
			reason: "A resource from before the restore is older and not a replacement.", want: "1/1; done",
			snapshot: investigated(withRestored(snapshot(xptest.With(replacement, xptest.Created(saved))), xr, back), xr),
		},
		"AnothersChild": {
			reason: "Another XR in the tree lists the resource.", want: "2/2; done",
			snapshot: investigated(withRestored(snapshot(replacement), xptest.With(xr, xptest.Refs(replacement, child)), xptest.With(child, xptest.Refs(back)), xptest.With(back, drop)), xr),
		},
		"AnotherKind": {
			reason: "A replacement has the same kind.", want: "1/1; done",
			snapshot: investigated(withRestored(snapshot(xptest.Secret("s")), xptest.With(xr, xptest.Refs(xptest.Secret("s"))), back), xr),
		},
		"Pinned": {
			reason: "The pin of a removed hold must be removed too.", want: "1/1; moving; free XOrder x",
			snapshot: investigated(withRestored(snapshot(), xptest.With(pinned, xptest.Refs(back)), back), xr),
		},
		"PinnedByItsPerson": {
			reason: "The user's own policy stays.", want: "1/1; done",
			snapshot: investigated(withRestored(snapshot(), xptest.With(calm, xptest.Policy(xp.UpdateManual), xptest.Managed("kubectl", "Update", saved, policyPath)), back), xr),
		},
		"SeenPaused": {
			reason: "Crossplane has only seen the pause, so nothing is lost yet.", want: "0/1; moving; hold again XOrder x; warns: HoldRemoved",
			snapshot: investigated(withRestored(snapshot(), xptest.With(calm, xptest.SeenPaused()), back), xr),
		},
		"StatusOfTheBackup": {
			reason: "The condition comes from the backup and proves nothing about now.", want: "0/1; moving; hold again XOrder x; warns: HoldRemoved",
			snapshot: investigated(withRestored(snapshot(), xptest.With(calm, reconciledAt(saved)), back), xr),
		},
		"NotReconciledNotAsked": {
			reason: "A copy with its own external resources has no hold and no operation.", want: "1/1; moving; waits: XOrder x AwaitingCrossplane",
			snapshot: investigated(withRestored(snapshot(), xptest.With(calm, xptest.Without("status")), back)),
		},
		"PausedByItsPerson": {
			reason: "The XR was released, and its user has paused it since.", want: "1/1; done",
			snapshot: investigated(withRestored(snapshot(), xptest.With(calm, xptest.SeenPaused(), xptest.Annotated(xp.AnnotationPaused, "true")), back), xr),
		},
		"PausedByTheHold": {
			reason: "Another writer removed only the mark.", want: "0/1; moving; hold again XOrder x; warns: HoldRemoved",
			snapshot: investigated(withRestored(snapshot(), xptest.With(calm, xptest.SeenPaused(), xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Managed(hold.FieldManager, "Update", cameAt, []string{"metadata", "annotations", xp.AnnotationPaused})), back), xr),
		},
	})
}

// Each of several Restores judges only what it has created, since it does not know the others'
// operations.
func TestNextLeavesToOtherRestores(t *testing.T) {
	ofAnother := xptest.Labelled(xp.LabelRestore, "tuesday")
	pause := []string{"metadata", "annotations", xp.AnnotationPaused}
	left := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return xptest.With(u, ofAnother, xptest.Policy(xp.UpdateManual), xptest.SeenPaused(), xptest.Annotated(xp.AnnotationPaused, "true"),
			xptest.Managed(hold.FieldManager, "Apply", cameAt, pause, xp.Instance{Unstructured: u}.UpdatePolicyPath()))
	}
	xr, back, replacement := lostTree()
	c := xptest.Claim("o")
	x := xptest.XR("x", xptest.ClaimedBy(c), ofRestore())
	claim := xptest.Claim("o", xptest.OfXR(x), ofRestore())
	mine := left(x)
	ofRestore()(mine)
	runPlans(t, x, map[string]planCase{
		"Paused": {
			reason: "Another writer removed the mark and left the pause.", of: xr, want: "1/1; done",
			snapshot: investigated(withRestored(snapshot(), left(xptest.With(xr, xptest.Refs(back))), back)),
		},
		"Lost": {
			reason: "The Restore that created the XR reports the loss.", of: xr, want: "1/1; done",
			snapshot: investigated(withRestored(snapshot(replacement), xptest.With(xr, ofAnother), xptest.With(back, ofAnother))),
		},
		"WithClaim": {reason: "The claim of another Restore is not released either.", want: "done", snapshot: investigated(withRestored(snapshot(), left(x), left(claim)))},
		"ClaimOfHeld": {
			reason: "A held XR needs its claim held, whichever Restore created the claim.", want: "moving; hold again OrderClaim team-a/o; waits: OrderClaim team-a/o HoldRemoved",
			snapshot: investigated(withRestored(snapshot(xptest.Revision(xptest.RevisionName, x)), held(xptest.With(x, ofAnother), xptest.SeenPaused()), xptest.With(claim, ofAnother))),
		},
		"OwnAndOver": {
			reason: "The pause of a hold can be recognized only while it lasts, so the pin stays.", want: "done",
			snapshot: investigated(withRestored(snapshot(), xptest.With(mine, reconciledAt(laterAt)))),
		},
	})
}

// All of an XR's composed resources must be listed before it counts as adopted, but only if an
// operation asks for it.
func TestNextListsWhatIsRequested(t *testing.T) {
	xr, back, replacement := lostTree()
	listed := map[string]bool{}
	asked := false
	w := withRestored(snapshot(), xr)
	w.Investigate(Investigation{
		Requester: Requester{Restore: restoreName}, Label: "monday", Requested: func(xp.ID) bool { return asked }, Listed: func(xp.Ref) bool { return listed["restored"] },
		Whole: func(xp.Ref) bool { return listed["all"] }, Released: func(types.UID) bool { return false }, Unmarked: func(types.UID) bool { return false },
	})
	want := func(reason string, unproven, lost bool, needs ...*unstructured.Unstructured) {
		t.Helper()
		if p := Next(w, xp.RefTo(xr)); p.Unproven != unproven || p.Lost != lost {
			t.Errorf("%s: unproven %t, lost %t, failed %q", reason, p.Unproven, p.Lost, p.Failed)
		}
		xptest.Same(t, refs(needs...), w.Needs(refs(xr)), reason)
	}
	want("Without a request no composed resource is needed", true, false, xr)
	asked = true
	want("A request needs the composed resources", false, false, xr, replacement)
	asked, listed["restored"] = false, true
	withRestored(w, back)
	want("A list of restored resources does not show whether another one is a replacement", true, false, xr)
	listed["all"] = true
	w.Add(replacement)
	want("A complete list of resources is judged", false, true, xr)
}

// The claim of a held XR must be held as long as the XR is.
func TestNextJudgesAnUnheldClaim(t *testing.T) {
	c := xptest.Claim("o")
	x := xptest.XR("x", xptest.ClaimedBy(c), ofRestore())
	claim := xptest.Claim("o", xptest.OfXR(x), ofRestore(), reconciledAt(laterAt), xptest.Managed("argocd-controller", "Apply", laterAt))
	fresh := xptest.With(claim, xptest.Without("status"))
	path := xp.Instance{Unstructured: claim}.UpdatePolicyPath()
	pin := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return xptest.With(u, xptest.Policy(xp.UpdateManual), xptest.Managed(hold.FieldManager, "Update", cameAt, path))
	}
	ourPause := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return xptest.With(pin(u), xptest.SeenPaused(), xptest.Annotated(xp.AnnotationPaused, "true"),
			xptest.Managed(hold.FieldManager, "Update", cameAt, []string{"metadata", "annotations", xp.AnnotationPaused}))
	}
	heldXR := held(x, xptest.SeenPaused())
	toY := xptest.Claim("o", xptest.OfXR(xptest.XR("y")), ofRestore(), reconciledAt(laterAt), xptest.Managed("argocd-controller", "Apply", laterAt))
	revision := xptest.Revision(xptest.RevisionName, x)
	runPlans(t, x, map[string]planCase{
		"XRHeld": {
			reason: "Crossplane copies the fields of the claim to the XR.", want: "moving; hold again OrderClaim team-a/o; waits: OrderClaim team-a/o HoldRemoved",
			snapshot: investigated(withRestored(snapshot(revision), heldXR, claim), x),
		},
		"XRLetGo": {
			reason: "The claim may be released when the XR has been unpaused.", want: "release XOrder x",
			snapshot: investigated(withRestored(snapshot(revision), xptest.With(heldXR, xptest.Unpaused(), xptest.Reconciled()), claim), x),
		},
		"Live": {reason: "A claim from before the restore was never held.", want: "unpause XOrder x", snapshot: investigated(withRestored(snapshot(revision, claim), heldXR), x)},
		"Replaced": {
			reason: "The claim has lost its reference, and Crossplane has created another XR.", want: "failed: XOrder x has no claim any more ClaimReplaced",
			says:     "Crossplane has created another XR for it: XOrder y",
			snapshot: investigated(withRestored(snapshot(revision, xptest.XR("y", xptest.ClaimedBy(c), xptest.Created(laterAt))), heldXR, toY), x),
		},
		"Another": {
			reason: "The claim had another XR in the backup.", want: "unpause XOrder x",
			snapshot: investigated(withRestored(snapshot(revision), heldXR, xptest.XR("y", xptest.ClaimedBy(c), ofRestore()), toY), x),
		},
		"Unbound": {
			reason: "Crossplane is about to create another XR.", want: "moving; waits: OrderClaim team-a/o ClaimReplaced",
			snapshot: investigated(withRestored(snapshot(revision), xptest.With(heldXR, xptest.Unpaused(), xptest.Reconciled()), xptest.With(toY, xptest.Without("spec", "resourceRef"))), x),
		},
		"Pinned": {
			reason: "The claim must not stay pinned.", want: "free OrderClaim team-a/o",
			snapshot: investigated(withRestored(snapshot(), xptest.With(x, reconciledAt(laterAt)), pin(claim)), x),
		},
		"Paused": {
			reason: "The claim must not stay paused, since its user has not paused it.", want: "free OrderClaim team-a/o",
			snapshot: investigated(withRestored(snapshot(), xptest.With(x, reconciledAt(laterAt)), ourPause(claim)), x),
		},
		"PausedAndAsked": {
			reason: "The claim waits for its XR, and both continue together.", of: claim, want: "moving; waits: OrderClaim team-a/o HoldRemoved",
			snapshot: investigated(withRestored(snapshot(revision), heldXR, ourPause(claim)), claim),
		},
		"PausedByThePerson": {
			reason: "The user's own pause was in the backup.", of: claim, want: "done",
			snapshot: investigated(withRestored(snapshot(revision), heldXR, xptest.With(claim, xptest.Annotated(xp.AnnotationPaused, "true"))), claim),
		},
		"Missing": {
			reason: "Crossplane is about to create another XR.", of: claim, want: "moving; hold again OrderClaim team-a/o; warns: HoldRemoved",
			snapshot: investigated(withRestored(snapshot(), fresh), claim),
		},
		"NewXR": {
			reason: "Crossplane has created another XR.", of: claim, want: "failed: OrderClaim team-a/o was reconciled without its hold ClaimReplaced",
			says: "Crossplane has created another XR for it: XOrder x", snapshot: investigated(withRestored(snapshot(xptest.XR("x", xptest.ClaimedBy(c), xptest.Created(laterAt))), claim), claim),
		},
		"Alive": {
			reason: "The XR is older than the restore.", of: claim, want: "done",
			snapshot: investigated(withRestored(snapshot(xptest.XR("x", xptest.ClaimedBy(c), xptest.Created(saved))), claim), claim),
		},
	})
}

// begunAt sets when the polling Restore began.
func begunAt(at string, w *Snapshot) *Snapshot {
	q := *w.investigation
	q.Started = xp.ParseTime(at)
	w.Investigate(q)

	return w
}

func TestNextJudgesAnUnheldMR(t *testing.T) {
	mr := xptest.MR("b", ofRestore(), xptest.Managed("argocd-controller", "Update", laterAt))
	path := []string{"spec", "managementPolicies"}
	observing := xptest.With(mr, xptest.ManagementPolicies(`["Observe"]`), xptest.Managed(hold.FieldManager, "Update", cameAt, path))
	runPlans(t, mr, map[string]planCase{
		"Created": {
			reason: "The provider has created another external resource.", want: "failed: Bucket b CreatedAgain",
			snapshot: investigated(withRestored(snapshot(), xptest.With(mr, xptest.Annotated(xp.AnnotationCreateSucceeded, laterAt))), mr),
		},
		"Pending": {
			reason: "The provider is about to create another external resource.", want: "failed: Bucket b CreatedAgain",
			snapshot: investigated(withRestored(snapshot(), xptest.With(mr, xptest.Annotated(xp.AnnotationCreatePending, laterAt))), mr),
		},
		"CreatedBefore": {
			reason: "The annotation comes from the backup.", want: "done",
			snapshot: investigated(withRestored(snapshot(), xptest.With(mr, xptest.Annotated(xp.AnnotationCreateSucceeded, saved))), mr),
		},
		"OfAnEarlierRestore": {
			reason: "An earlier restore brought it back, and its provider may have created since with a user's consent.", want: "done",
			snapshot: investigated(withRestored(snapshot(), xptest.With(mr, xptest.Annotated(xp.AnnotationCreateSucceeded, laterAt), xptest.Labelled(xp.LabelRestore, "sunday"))), mr),
		},
		"OfAnEarlierRestoreOfTheSameName": {
			reason: "A label with the same name is no proof that this restore created it.", want: "done",
			snapshot: begunAt(laterAt, investigated(withRestored(snapshot(), xptest.With(mr, xptest.Annotated(xp.AnnotationCreateSucceeded, laterAt))), mr)),
		},
		"SinceTheRestoreBegan": {
			reason: "The restore brought it back, and its provider has created since.", want: "failed: Bucket b CreatedAgain",
			snapshot: begunAt(cameAt, investigated(withRestored(snapshot(), xptest.With(mr, xptest.Annotated(xp.AnnotationCreateSucceeded, laterAt))), mr)),
		},
		"NotAsked": {
			reason: "No operation requests this MR.", want: "done",
			snapshot: investigated(withRestored(snapshot(), xptest.With(mr, xptest.Annotated(xp.AnnotationCreateSucceeded, laterAt)))),
		},
		"Observes": {
			reason: "The hold must leave no policies behind.", want: "moving; nothing holds it any more; take the managementPolicies of its hold off Bucket b",
			snapshot: investigated(withRestored(snapshot(), observing), mr),
		},
		"ObservesWithOthers": {
			reason: "Another manager set policies before, and their values are unknown.", want: "done",
			snapshot: investigated(withRestored(snapshot(), xptest.With(observing, xptest.Managed("kubectl", "Update", saved, path))), mr),
		},
	})
}
