package adoption

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Times of the backup, the restore and another writer's change.
const (
	saved   = "2026-01-01T09:00:00Z"
	cameAt  = "2026-01-02T11:00:00Z"
	laterAt = "2026-01-02T11:05:00Z"
)

func created(at string) xptest.Option { return xptest.Field(at, "metadata", "creationTimestamp") }

// ofRestore is the option of an object that the polling Restore created.
func ofRestore() xptest.Option {
	return func(u *unstructured.Unstructured) {
		xptest.Labelled(xp.LabelRestore, "monday")(u)
		created(cameAt)(u)
	}
}

// managed adds an entry to managedFields.
func managed(manager, operation, at string, paths ...[]string) xptest.Option {
	return func(u *unstructured.Unstructured) {
		fields := map[string]any{}
		for _, path := range paths {
			addField(fields, path...)
		}
		list, _, _ := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
		list = append(list, map[string]any{
			"manager": manager, "operation": operation, "apiVersion": u.GetAPIVersion(), "time": at, "fieldsType": "FieldsV1", "fieldsV1": fields,
		})
		xptest.Field(list, "metadata", "managedFields")(u)
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
	replacement = xptest.MR("b-new", xptest.ControlledBy(x), created(laterAt), resource)
	xr = xptest.XR("x", append([]xptest.Option{
		ofRestore(), xptest.Refs(replacement), reconciledAt(laterAt), managed("argocd-controller", "Apply", laterAt), managed("kubectl-client-side-apply", "Update", saved),
		managed("apiextensions.crossplane.io/composite", "Apply", "2026-01-02T11:09:00Z"),
	}, o...)...)

	return xr, back, replacement
}

const (
	lostWhy = "XOrder x was reconciled without its hold before it was adopted: the last to write it was \"argocd-controller\" (Apply, 2026-01-02T11:05:00Z). Crossplane " +
		"has made anew: Bucket b-new; and the XR does not reference any more what was restored: Bucket b; " + lostNext
	stepAgain  = StepAgain
	stepFree   = "nothing holds it any more; give its own settings back"
	stepPolicy = "nothing holds it any more; give its composition update policy back"
)

func TestNextJudgesAnUnheldXR(t *testing.T) {
	xr, back, replacement := lostTree()
	policyPath := xp.Instance{Unstructured: xr}.UpdatePolicyPath()
	pinned := xptest.With(xr, xptest.Policy(xp.UpdateManual), managed(FieldManager, "Update", cameAt, policyPath))
	calm := xptest.With(xr, xptest.Refs(back))
	done := outcome{Done: true, Adopted: 1, Total: 1}
	lost := outcome{Failed: lostWhy}
	drop := xptest.Without("metadata", "ownerReferences")
	child := xptest.XR("child", ofRestore(), xptest.ControlledBy(xr), reconciledAt(laterAt))
	runPlans(t, map[string]planCase{
		"Lost": {reason: "What was made anew looks adopted, and is not.", ref: xp.RefTo(xr), want: lost, snapshot: investigated(withRestored(snapshot(replacement), xr, back), xr)},
		"LostWithoutController": {
			reason: "It came back when its XR did not list it any more.", ref: xp.RefTo(xr), want: lost, snapshot: investigated(withRestored(snapshot(replacement), xr, xptest.With(back, drop)), xr),
		},
		"LostByAnEarlierLife": {
			reason: "Its controller is gone.", ref: xp.RefTo(xr), want: lost,
			snapshot: investigated(withRestored(snapshot(replacement), xr, xptest.With(back, drop, xptest.ControlledBy(xptest.XR("x", xptest.UID("old"))),
				xptest.Annotated(xp.AnnotationResourceName, "bucket"))), xr),
		},
		"LostAndPinned": {
			reason: "Nothing stays pinned for that.", ref: xp.RefTo(xr), snapshot: investigated(withRestored(snapshot(replacement), pinned, back), xr),
			want: outcome{Failed: lostWhy, Step: stepPolicy, Target: "XOrder x"},
		},
		"NobodyAsks": {reason: "Only an operation asks.", ref: xp.RefTo(xr), want: done, snapshot: withRestored(snapshot(replacement), xr, back)},
		"NotRestored": {
			reason: "What was live before the restore is not this plugin's to judge.", ref: xp.RefTo(xr), want: done, snapshot: investigated(withRestored(snapshot(replacement, xr), back), xr),
		},
		"Composes": {
			reason: "A Composition that has one more resource since the release.", ref: xp.RefTo(xr),
			snapshot: investigated(withRestored(snapshot(replacement), xptest.With(xr, xptest.Refs(back, replacement)), back), xr), want: outcome{Done: true, Adopted: 2, Total: 2},
		},
		"Dropped": {
			reason: "A Composition that has one less: Crossplane deletes it first.", ref: xp.RefTo(xr), want: done,
			snapshot: investigated(withRestored(snapshot(replacement), xr, xptest.With(back, xptest.Deleting())), xr),
		},
		"Gone": {reason: "And then it is gone.", ref: xp.RefTo(xr), want: done, snapshot: investigated(withRestored(snapshot(replacement), xr), xr)},
		"Orphan": {
			reason: "What was an orphan in the backup has another name in the Composition, and nothing has taken its place.", ref: xp.RefTo(xr), want: done,
			snapshot: investigated(withRestored(snapshot(replacement), xr, xptest.With(back, drop, xptest.Annotated(xp.AnnotationResourceName, "other"))), xr),
		},
		"Adopted": {
			reason: "What was live before is older.", ref: xp.RefTo(xr), want: done, snapshot: investigated(withRestored(snapshot(xptest.With(replacement, created(saved))), xr, back), xr),
		},
		"AnothersChild": {
			reason: "Below in its tree another XR lists it.", ref: xp.RefTo(xr), want: outcome{Done: true, Adopted: 2, Total: 2},
			snapshot: investigated(withRestored(snapshot(replacement), xptest.With(xr, xptest.Refs(replacement, child)), xptest.With(child, xptest.Refs(back)), xptest.With(back, drop)), xr),
		},
		"AnotherKind": {
			reason: "What takes its place is of its kind.", ref: xp.RefTo(xr), want: done,
			snapshot: investigated(withRestored(snapshot(xptest.Secret("s")), xptest.With(xr, xptest.Refs(xptest.Secret("s"))), back), xr),
		},
		"Whole": {reason: "All is as the restore brought it back.", ref: xp.RefTo(xr), want: done, snapshot: investigated(withRestored(snapshot(), calm, back), xr)},
		"Pinned": {
			reason: "A hold that is gone leaves nothing.", ref: xp.RefTo(xr), snapshot: investigated(withRestored(snapshot(), xptest.With(pinned, xptest.Refs(back)), back), xr),
			want: outcome{Step: stepPolicy, Target: "XOrder x", Adopted: 1, Total: 1, Moving: true},
		},
		"PinnedByItsPerson": {
			reason: "A person's own policy stays.", ref: xp.RefTo(xr), want: done,
			snapshot: investigated(withRestored(snapshot(), xptest.With(calm, xptest.Policy(xp.UpdateManual), managed("kubectl", "Update", saved, policyPath)), back), xr),
		},
		"NotReconciled": {
			reason: "Nothing is lost yet.", ref: xp.RefTo(xr), snapshot: investigated(withRestored(snapshot(), xptest.With(calm, xptest.Without("status")), back), xr),
			want: outcome{Step: stepAgain, Target: "XOrder x", Total: 1, Moving: true},
		},
		"SeenPaused": {
			reason: "Nor if Crossplane has only seen its pause.", ref: xp.RefTo(xr), snapshot: investigated(withRestored(snapshot(), xptest.With(calm, xptest.SeenPaused()), back), xr),
			want: outcome{Step: stepAgain, Target: "XOrder x", Total: 1, Moving: true},
		},
		"StatusOfTheBackup": {
			reason: "Its status came back, and says nothing of now.", ref: xp.RefTo(xr), snapshot: investigated(withRestored(snapshot(), xptest.With(calm, reconciledAt(saved)), back), xr),
			want: outcome{Step: stepAgain, Target: "XOrder x", Total: 1, Moving: true},
		},
		"NotReconciledNotAsked": {
			reason: "A copy that makes external resources of its own is not held and has no operation.", ref: xp.RefTo(xr),
			snapshot: investigated(withRestored(snapshot(), xptest.With(calm, xptest.Without("status")), back)),
			want:     outcome{Adopted: 1, Total: 1, Moving: true, Waiting: []string{"Crossplane to reconcile XOrder x, which is adopted, with its own settings"}},
		},
		"PausedByItsPerson": {
			reason: "It was released, and its person has paused it.", ref: xp.RefTo(xr), want: done,
			snapshot: investigated(withRestored(snapshot(), xptest.With(calm, xptest.SeenPaused(), xptest.Annotated(xp.AnnotationPaused, "true")), back), xr),
		},
		"PausedByTheHold": {
			reason: "Only the mark was taken off.", ref: xp.RefTo(xr), want: outcome{Step: stepAgain, Target: "XOrder x", Total: 1, Moving: true},
			snapshot: investigated(withRestored(snapshot(), xptest.With(calm, xptest.SeenPaused(), xptest.Annotated(xp.AnnotationPaused, "true"),
				managed(FieldManager, "Update", cameAt, []string{"metadata", "annotations", xp.AnnotationPaused})), back), xr),
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
			managed(FieldManager, "Apply", cameAt, pause, xp.Instance{Unstructured: u}.UpdatePolicyPath()))
	}
	xr, back, replacement := lostTree()
	c := xptest.Claim("o")
	x := xptest.XR("x", xptest.ClaimedBy(c), ofRestore())
	claim := xptest.Claim("o", xptest.OfXR(x), ofRestore())
	mine := left(x)
	ofRestore()(mine)
	runPlans(t, map[string]planCase{
		"Paused": {
			reason: "Its mark was taken off, and its pause was not.", ref: xp.RefTo(xr), want: outcome{Done: true, Adopted: 1, Total: 1},
			snapshot: investigated(withRestored(snapshot(), left(xptest.With(xr, xptest.Refs(back))), back)),
		},
		"Lost": {
			reason: "The Restore that has created it says so.", ref: xp.RefTo(xr), want: outcome{Done: true, Adopted: 1, Total: 1},
			snapshot: investigated(withRestored(snapshot(replacement), xptest.With(xr, ofAnother), xptest.With(back, ofAnother))),
		},
		"WithClaim": {
			reason: "Nor is its claim let go.", ref: xp.RefTo(x), want: outcome{Done: true}, snapshot: investigated(withRestored(snapshot(), left(x), left(claim))),
		},
		"ClaimOfHeld": {
			reason: "But held again with its XR.", ref: xp.RefTo(x),
			want: outcome{
				Also: []string{"OrderClaim team-a/o"}, Moving: true, Waiting: []string{"OrderClaim team-a/o: its hold had been taken off, and is put on again"},
			},
			snapshot: investigated(withRestored(snapshot(xptest.Revision(xptest.RevisionName, x)), held(xptest.With(x, ofAnother), xptest.SeenPaused()), xptest.With(claim, ofAnother))),
		},
		"OwnAndOver": {
			reason: "What is still paused stays pinned, and the pause known for that of a hold.", ref: xp.RefTo(x), want: outcome{Done: true},
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
		if diff := cmp.Diff(refs(needs...), w.Needs(refs(xr))); diff != "" {
			t.Errorf("%s: needs -want, +got:\n%s", reason, diff)
		}
	}
	want("Nobody asks, and nobody looks", true, false, xr)
	asked = true
	want("Who asks needs what it composes", false, false, xr, replacement)
	asked, listed["restored"] = false, true
	withRestored(w, back)
	want("What restores have brought back does not say whether the other was made anew", true, false, xr)
	listed["all"] = true
	w.Add(replacement)
	want("What was looked for in any case is judged", false, true, xr)
}

// The claim of a held XR must be held as long as the XR is.
func TestNextJudgesAnUnheldClaim(t *testing.T) {
	c := xptest.Claim("o")
	x := xptest.XR("x", xptest.ClaimedBy(c), ofRestore())
	claim := xptest.Claim("o", xptest.OfXR(x), ofRestore(), reconciledAt(laterAt), managed("argocd-controller", "Apply", laterAt))
	fresh := xptest.With(claim, xptest.Without("status"))
	path := xp.Instance{Unstructured: claim}.UpdatePolicyPath()
	pin := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return xptest.With(u, xptest.Policy(xp.UpdateManual), managed(FieldManager, "Update", cameAt, path))
	}
	ourPause := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return xptest.With(pin(u), xptest.SeenPaused(), xptest.Annotated(xp.AnnotationPaused, "true"),
			managed(FieldManager, "Update", cameAt, []string{"metadata", "annotations", xp.AnnotationPaused}))
	}
	heldXR := held(x, xptest.SeenPaused())
	toY := xptest.Claim("o", xptest.OfXR(xptest.XR("y")), ofRestore(), reconciledAt(laterAt), managed("argocd-controller", "Apply", laterAt))
	revision := xptest.Revision(xptest.RevisionName, x)
	again := "OrderClaim team-a/o: its hold had been taken off, and is put on again"
	runPlans(t, map[string]planCase{
		"XRHeld": {
			reason: "Crossplane carries over to the XR what the claim says.", ref: xp.RefTo(x), snapshot: investigated(withRestored(snapshot(revision), heldXR, claim), x),
			want: outcome{Also: []string{"OrderClaim team-a/o"}, Waiting: []string{again}, Moving: true},
		},
		"XRLetGo": {
			reason: "When the XR was let reconcile its claim may have been released.", ref: xp.RefTo(x),
			snapshot: investigated(withRestored(snapshot(revision), xptest.With(heldXR, unpaused(), xptest.Reconciled()), claim), x),
			want:     outcome{Step: stepRelease, Target: "XOrder x"},
		},
		"Live": {
			reason: "A claim that was there before was never held.", ref: xp.RefTo(x), snapshot: investigated(withRestored(snapshot(revision, claim), heldXR), x),
			want: outcome{Step: stepUnpause, Target: "XOrder x"},
		},
		"Replaced": {
			reason: "It has lost the reference to its XR too, and Crossplane has made another.", ref: xp.RefTo(x),
			snapshot: investigated(withRestored(snapshot(revision, xptest.XR("y", xptest.ClaimedBy(c), created(laterAt))), heldXR, toY), x),
			want: outcome{Failed: "XOrder x has no claim any more: OrderClaim team-a/o was reconciled without its hold: the last to write it was \"argocd-controller\" (Apply, " +
				"2026-01-02T11:05:00Z). Crossplane has made another XR for it: XOrder y; " + lostNext},
		},
		"Another": {
			reason: "It was bound to another XR in the backup.", ref: xp.RefTo(x),
			snapshot: investigated(withRestored(snapshot(revision), heldXR, xptest.XR("y", xptest.ClaimedBy(c), ofRestore()), toY), x), want: outcome{Step: stepUnpause, Target: "XOrder x"},
		},
		"Unbound": {
			reason: "Crossplane is about to make another XR.", ref: xp.RefTo(x),
			snapshot: investigated(withRestored(snapshot(revision), xptest.With(heldXR, unpaused(), xptest.Reconciled()), xptest.With(toY, xptest.Without("spec", "resourceRef"))), x),
			want:     outcome{Moving: true, Waiting: []string{"OrderClaim team-a/o: somebody has taken off its hold and which XR it has, and Crossplane is about to make another"}},
		},
		"Pinned": {
			reason: "Nothing stays pinned.", ref: xp.RefTo(x), snapshot: investigated(withRestored(snapshot(), xptest.With(x, reconciledAt(laterAt)), pin(claim)), x),
			want: outcome{Step: stepPolicy, Target: "OrderClaim team-a/o"},
		},
		"Paused": {
			reason: "Nor paused: its person has not done that.", ref: xp.RefTo(x), snapshot: investigated(withRestored(snapshot(), xptest.With(x, reconciledAt(laterAt)), ourPause(claim)), x),
			want: outcome{Step: stepFree, Target: "OrderClaim team-a/o"},
		},
		"OnlyPaused": {
			reason: "Also if it is not pinned.", ref: xp.RefTo(x),
			snapshot: investigated(withRestored(snapshot(), xptest.With(x, reconciledAt(laterAt)), xptest.With(ourPause(claim), xptest.Policy("Automatic"))), x),
			want:     outcome{Step: stepFree, Target: "OrderClaim team-a/o"},
		},
		"PausedAndAsked": {
			reason: "It is not adopted as long as its XR is not, and with the XR it goes on.", ref: xp.RefTo(claim),
			snapshot: investigated(withRestored(snapshot(revision), heldXR, ourPause(claim)), claim),
			want:     outcome{Moving: true, Waiting: []string{"OrderClaim team-a/o: its hold was taken off, and its pause was not; XOrder x goes on with both"}},
		},
		"PausedByThePerson": {
			reason: "That is as it was.", ref: xp.RefTo(claim), want: outcome{Done: true},
			snapshot: investigated(withRestored(snapshot(revision), heldXR, xptest.With(claim, xptest.Annotated(xp.AnnotationPaused, "true"))), claim),
		},
		"Missing": {
			reason: "Crossplane is about to make another XR.", ref: xp.RefTo(claim), snapshot: investigated(withRestored(snapshot(), fresh), claim),
			want: outcome{Step: stepAgain, Target: "OrderClaim team-a/o", Moving: true},
		},
		"Anew": {
			reason: "Crossplane has made another XR.", ref: xp.RefTo(claim),
			snapshot: investigated(withRestored(snapshot(xptest.XR("x", xptest.ClaimedBy(c), created(laterAt))), claim), claim),
			want: outcome{Failed: "OrderClaim team-a/o was reconciled without its hold: the last to write it was \"argocd-controller\" (Apply, 2026-01-02T11:05:00Z). Crossplane " +
				"has made another XR for it: XOrder x; that of the backup was not restored, and nobody has what it composed; " + lostNext},
		},
		"Alive": {
			reason: "The XR was there before.", ref: xp.RefTo(claim), want: outcome{Done: true},
			snapshot: investigated(withRestored(snapshot(xptest.XR("x", xptest.ClaimedBy(c), created(saved))), claim), claim),
		},
	})
}

func TestNextJudgesAnUnheldMR(t *testing.T) {
	mr := xptest.MR("b", ofRestore(), managed("argocd-controller", "Update", laterAt))
	path := []string{"spec", "managementPolicies"}
	observing := xptest.With(mr, policies(`["Observe"]`), managed(FieldManager, "Update", cameAt, path))
	const step = "nothing holds it any more; take the managementPolicies of its hold off"
	failed := "Bucket b has had an external resource created by its provider, though its hold was not lifted: the last to write it was \"argocd-controller\" (Update, " +
		laterAt + "). That was at " + laterAt + ". Look for the one that it had in the cloud: if it is there, set the annotation crossplane.io/external-name to what it is " +
		"called, and delete the other, or delete the MR with its managementPolicies without Delete, and restore it again"
	runPlans(t, map[string]planCase{
		"Created": {
			reason: "It has another external resource.", ref: xp.RefTo(mr), want: outcome{Failed: failed},
			snapshot: investigated(withRestored(snapshot(), xptest.With(mr, xptest.Annotated(xp.AnnotationCreateSucceeded, laterAt))), mr),
		},
		"Pending": {
			reason: "Or is about to.", ref: xp.RefTo(mr), want: outcome{Failed: failed},
			snapshot: investigated(withRestored(snapshot(), xptest.With(mr, xptest.Annotated(xp.AnnotationCreatePending, laterAt))), mr),
		},
		"CreatedBefore": {
			reason: "What the backup says is of then.", ref: xp.RefTo(mr), want: outcome{Done: true},
			snapshot: investigated(withRestored(snapshot(), xptest.With(mr, xptest.Annotated(xp.AnnotationCreateSucceeded, saved))), mr),
		},
		"NotAsked": {
			reason: "What has no operation is nobody's question.", ref: xp.RefTo(mr), want: outcome{Done: true},
			snapshot: investigated(withRestored(snapshot(), xptest.With(mr, xptest.Annotated(xp.AnnotationCreateSucceeded, laterAt)))),
		},
		"Observes": {
			reason: "Nothing is left of the hold.", ref: xp.RefTo(mr), want: outcome{Step: step, Target: "Bucket b", Moving: true},
			snapshot: investigated(withRestored(snapshot(), observing), mr),
		},
		"ObservesWithOthers": {
			reason: "Which policies it had nobody knows.", ref: xp.RefTo(mr), want: outcome{Done: true},
			snapshot: investigated(withRestored(snapshot(), xptest.With(observing, managed("kubectl", "Update", saved, path))), mr),
		},
	})
}

func TestLosses(t *testing.T) {
	xr, back, replacement := lostTree()
	w := investigated(withRestored(snapshot(replacement), xr, back), xr)
	plans := map[xp.ID]Plan{xp.RefTo(xr).ID(): Next(w, xp.RefTo(xr)), xp.RefTo(back).ID(): {Failed: "for another reason"}}
	got := Losses(w, plans)
	if len(got) != 1 || got[0].Event != EventStopped || !got[0].Warning || got[0].Message != lostWhy || got[0].Patch != nil || got[0].Target.GetUID() != xr.GetUID() {
		t.Errorf("who has lost something has no mark to say so; got %+v", got)
	}
}
