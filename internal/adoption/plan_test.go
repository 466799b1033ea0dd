package adoption

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// An outcome is the tested part of a Plan.
type outcome struct {
	// Step and Target are those of its Change.
	Step, Target string
	// Also are its other changes.
	Also           []string
	Done, Moving   bool
	Failed         string
	Adopted, Total int
	Waiting        []string
	Remarks        []string
}

func outcomeOf(p Plan) outcome {
	o := outcome{Step: p.Step, Done: p.Done, Moving: p.Moving, Failed: p.Failed.String(), Adopted: p.Adopted, Total: p.Total, Waiting: reason.Strings(p.Waiting), Remarks: reason.Strings(p.Remarks)}
	if p.Target != nil {
		o.Target = xp.String(p.Target)
	}
	for _, change := range p.Also {
		o.Also = append(o.Also, xp.String(change.Target))
	}

	return o
}

const (
	stepUnpause = "let Crossplane reconcile it under the backed-up revision"
	stepRelease = "adopted; give its own settings back"
	stepClaim   = "its XR is adopted; give its own settings back"

	howToConvert = `. If it was in mode Resources, which Crossplane v2 does not have, apply what "crossplane beta convert pipeline-composition" of v1.20 makes of ` +
		"its Composition orders, and it continues [CompositionRevisionMissing]"
)

type planCase struct {
	reason   string
	snapshot *Snapshot
	ref      xp.Ref
	want     outcome
}

// What a held XR composes counts as ready, and only after the release as adopted: validate counts
// it as held.
func TestNextTellsHeldXRs(t *testing.T) {
	x := xptest.XR("x", xptest.Refs(xptest.MR("b")))
	mr, revision := xptest.MR("b", xptest.ControlledBy(x)), xptest.Revision(xptest.RevisionName, x)
	for _, tc := range []struct {
		xr   *unstructured.Unstructured
		want bool
	}{{xr: held(x), want: true}, {xr: held(x, xptest.SeenPaused()), want: true}, {xr: x, want: false}} {
		if p := Next(snapshot(tc.xr, mr, revision), xp.RefTo(x)); p.Held != tc.want {
			t.Errorf("held: got %t, want %t; %+v", p.Held, tc.want, outcomeOf(p))
		}
	}
}

func runPlans(t *testing.T, cases map[string]planCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := Next(tc.snapshot, tc.ref)
			if diff := cmp.Diff(tc.want, outcomeOf(plan)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			for _, change := range append(plan.Also, plan.Change) {
				if (change.Patch == nil) != (change.Target == nil) || (change.Patch == nil) != (change.Step == "") {
					t.Errorf("a step needs a target, a patch and a name: %+v", plan)
				}
			}
			if plan.Done && (!plan.Failed.IsZero() || plan.Patch != nil || plan.Also != nil) {
				t.Errorf("a plan that is done must have no other outcome: %+v", plan)
			}
		})
	}
}

// A held, paused XR: what must be true before Crossplane may reconcile it.
func TestNextBeforeTheUnpause(t *testing.T) {
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	revision := xptest.Revision(xptest.RevisionName, x)
	paused := held(xptest.XR("x", xptest.Refs(bucket)), xptest.SeenPaused())
	child := xptest.XR("child", xptest.ControlledBy(x))
	parent := held(xptest.XR("x", xptest.Refs(child)), xptest.SeenPaused())
	other := xptest.XR("other")
	unserved := func(w *Snapshot) *Snapshot {
		w.AddUnserved(schema.GroupKind{Group: "cloud.example.org", Kind: "Bucket"})

		return w
	}
	unreadable := func(w *Snapshot) *Snapshot {
		w.AddUnreadable(xptest.MR("b").GroupVersionKind(), "forbidden")

		return w
	}
	wait := func(adopted int, moving bool, why ...string) outcome {
		return outcome{Adopted: adopted, Total: 1, Moving: moving, Waiting: why}
	}
	const unknown = "Bucket b: it can't be read: forbidden. Check that the API server serves its kind, and that the user who runs this may list and " +
		"patch Bucket.cloud.example.org [NotRead]"
	runPlans(t, map[string]planCase{
		"Ready": {
			reason:   "Every composed resource exists, is controlled by the XR and is observed.",
			snapshot: snapshot(paused, bucket, revision), ref: xp.RefTo(x),
			want: outcome{Step: stepUnpause, Target: "XOrder x", Adopted: 1, Total: 1},
		},
		"ModernReady": {
			reason: "An XR of Crossplane v2 is ready in the same state.",
			snapshot: snapshot(held(xptest.XRV2("x", xptest.Refs(xptest.NamespacedMR("b"))), xptest.SeenPaused()),
				xptest.NamespacedMR("b", xptest.ControlledBy(xptest.XRV2("x")), xptest.Reconciled()), revision),
			ref:  xp.RefTo(xptest.XRV2("x")),
			want: outcome{Step: stepUnpause, Target: "Order team-a/x", Adopted: 1, Total: 1},
		},
		"Gone": {
			reason:   "An XR that did not come back can't be adopted.",
			snapshot: snapshot(), ref: xp.RefTo(x),
			want: outcome{Failed: "XOrder x: it was not restored, or was deleted since. See the errors of the restore. " + howObserved},
		},
		"Unreadable": {
			reason:   "A user must correct a mark that can't be read.",
			snapshot: snapshot(xptest.XR("x", xptest.Annotated(AnnotationHold, "?"))), ref: xp.RefTo(x),
			want: outcome{Failed: "cannot read the annotation velero.crossplane.x-k8s.io/hold of XOrder x: invalid character '?' looking for beginning of value; " +
				"remove the annotation, then run release, or restore again [MarkUnreadable]"},
		},
		"Missing": {
			reason:   "Crossplane would create the missing resource again.",
			snapshot: snapshot(paused, revision), ref: xp.RefTo(x),
			want: wait(0, false, "Bucket b: it is not in the cluster. Restore it; or, if its external resource is gone too, remove it from the resourceRefs of XOrder x, and Crossplane composes another [NotInCluster]"),
		},
		"MissingAndRemoved": {
			reason:   "The user has removed the reference, so the plan no longer waits for it.",
			snapshot: snapshot(xptest.With(paused, xptest.Refs()), revision), ref: xp.RefTo(x),
			want: outcome{Step: stepUnpause, Target: "XOrder x"},
		},
		"Unserved": {
			reason:   "The next step differs if the kind is not served.",
			snapshot: unserved(snapshot(paused, revision)), ref: xp.RefTo(x),
			want: wait(0, false, "Bucket b: its kind is not served, so no restore can bring it yet. Install the provider or XRD of Bucket.cloud.example.org, then restore again [KindNotServed]"),
		},
		"Forbidden": {
			reason:   "An unreadable resource may exist, so the message does not ask to restore it.",
			snapshot: unreadable(snapshot(paused, revision)), ref: xp.RefTo(x),
			want: wait(0, false, unknown),
		},
		"ForbiddenAndRemoved": {
			reason:   "An unreadable resource may exist, so the plan still waits although the XR dropped the reference.",
			snapshot: unreadable(snapshot(xptest.With(paused, xptest.Refs()), revision)), ref: xp.RefTo(x),
			want: wait(0, false, unknown),
		},
		"ForbiddenInAnotherVersion": {
			reason: "An observed resource is known, whatever another version of its kind returns.",
			snapshot: func() *Snapshot {
				w := unreadable(snapshot(paused, bucket, revision))
				w.AddUnreadable(schema.GroupVersionKind{Group: "cloud.example.org", Version: "v9", Kind: "Bucket"}, "down")

				return w
			}(), ref: xp.RefTo(x),
			want: outcome{Step: stepUnpause, Target: "XOrder x", Adopted: 1, Total: 1},
		},
		"ComposedDeleting": {
			reason:   "The resource is about to be missing, and Crossplane would create it again.",
			snapshot: snapshot(paused, xptest.With(bucket, xptest.Deleting()), revision), ref: xp.RefTo(x),
			want: wait(0, false, "Bucket b: it is being deleted. See what its finalizers wait for, then restore it again [BeingDeleted]"),
		},
		"OfAnother": {
			reason:   "Crossplane would ignore another controller's resource and create a new one.",
			snapshot: snapshot(paused, revision, xptest.MR("b", xptest.ControlledBy(other), xptest.Reconciled())), ref: xp.RefTo(x),
			want: wait(0, false, "Bucket b: its controller is XOrder other (UID uid of XOrder other), not this XR. Remove it from the resourceRefs of one of them [ControlledByAnother]"),
		},
		"OldUID": {
			reason:   "An earlier XR of the same name is another controller.",
			snapshot: snapshot(paused, revision, xptest.MR("b", xptest.ControlledBy(xptest.XR("x", xptest.UID("old"))))), ref: xp.RefTo(x),
			want: wait(0, false, "Bucket b: its controller is XOrder x (UID old), not this XR. Remove it from the resourceRefs of one of them [ControlledByAnother]"),
		},
		"Uncontrolled": {
			reason:   "Crossplane takes a resource without a controller (composition_functions.go), but the plan does not count it yet.",
			snapshot: snapshot(paused, revision, xptest.MR("b", xptest.Reconciled())), ref: xp.RefTo(x),
			want: outcome{Step: stepUnpause, Target: "XOrder x", Total: 1},
		},
		"NotObserved": {
			reason:   "A function that reads the MR's status would find none.",
			snapshot: snapshot(paused, revision, xptest.MR("b", xptest.ControlledBy(x))), ref: xp.RefTo(x),
			want: wait(0, true, "Bucket b: its provider has not observed it yet [AwaitingProvider]"),
		},
		"Failing": {
			reason:   "The provider's own message names the cause.",
			snapshot: snapshot(paused, revision, xptest.MR("b", xptest.ControlledBy(x), xptest.Synced("False", "ReconcileError", "no credentials"))), ref: xp.RefTo(x),
			want: wait(0, false, "Bucket b: its provider can't reconcile it: no credentials [ProviderFailing]"),
		},
		"PausedByThePerson": {
			reason:   "No provider observes an MR that a user has paused.",
			snapshot: snapshot(paused, revision, xptest.MR("b", xptest.ControlledBy(x), xptest.Annotated(xp.AnnotationPaused, "true"))), ref: xp.RefTo(x),
			want: outcome{Step: stepUnpause, Target: "XOrder x", Adopted: 1, Total: 1},
		},
		"NoMR": {
			reason: "A resource without a provider has no condition to wait for.",
			snapshot: snapshot(held(xptest.XR("x", xptest.Refs(xptest.Secret("s"))), xptest.SeenPaused()), revision,
				xptest.Secret("s", xptest.ControlledBy(x))),
			ref:  xp.RefTo(x),
			want: outcome{Step: stepUnpause, Target: "XOrder x", Adopted: 1, Total: 1},
		},
		"ChildHeld": {
			reason:   "The nested XR comes first, since its parent reads its status.",
			snapshot: snapshot(parent, revision, held(child)), ref: xp.RefTo(x),
			want: wait(0, true, "XOrder child: this composed XR is not adopted yet [AwaitingComposedXR]"),
		},
		"ChildUnreadable": {
			reason:   "A nested XR with an unreadable mark does not count as adopted.",
			snapshot: snapshot(parent, revision, xptest.With(child, xptest.Annotated(AnnotationHold, "?"))), ref: xp.RefTo(x),
			want: wait(0, false, "XOrder child: cannot read the annotation velero.crossplane.x-k8s.io/hold of XOrder child: invalid character '?' looking for beginning of value; remove the annotation, then run release, or restore again [MarkUnreadable]"),
		},
		"ChildAdopted": {
			reason:   "The parent follows its adopted child.",
			snapshot: snapshot(parent, revision, child), ref: xp.RefTo(x),
			want: outcome{Step: stepUnpause, Target: "XOrder x", Adopted: 1, Total: 1},
		},
		"NoRevision": {
			reason:   "Without the revision Crossplane would choose another one.",
			snapshot: snapshot(paused, bucket), ref: xp.RefTo(x),
			want: wait(1, false, "CompositionRevision orders-1a2b3c: it is not in the cluster. "+
				"Restore it, or set another compositionRevisionRef on XOrder x"+howToConvert),
		},
		"NeverComposed": {
			reason:   "An XR without a revision needs none.",
			snapshot: snapshot(held(xptest.XR("x", xptest.NeverComposed()), xptest.SeenPaused())), ref: xp.RefTo(x),
			want: outcome{Step: stepUnpause, Target: "XOrder x"},
		},
		"NotSeen": {
			reason:   "Crossplane must have seen the pause, or an old condition would prove the later reconcile.",
			snapshot: snapshot(xptest.With(paused, xptest.Reconciled()), bucket, revision), ref: xp.RefTo(x),
			want: wait(1, true, "XOrder x: Crossplane has not reported yet that it is paused [AwaitingPauseReport]"),
		},
		"NoStatus": {
			reason:   "A restored XR has no status at first.",
			snapshot: snapshot(xptest.With(paused, xptest.Without("status")), bucket, revision), ref: xp.RefTo(x),
			want: wait(1, true, "XOrder x: Crossplane has not reported yet that it is paused [AwaitingPauseReport]"),
		},
		"EveryReason": {
			reason:   "The message lists every cause at once, and the plan moves if any cause moves.",
			snapshot: snapshot(held(xptest.XR("x", xptest.Refs(bucket, xptest.MR("c"))))), ref: xp.RefTo(x),
			want: outcome{Total: 2, Moving: true, Waiting: []string{
				"Bucket b: it is not in the cluster. Restore it; or, if its external resource is gone too, remove it from the resourceRefs of XOrder x, and Crossplane composes another [NotInCluster]",
				"Bucket c: it is not in the cluster. Restore it; or, if its external resource is gone too, remove it from the resourceRefs of XOrder x, and Crossplane composes another [NotInCluster]",
				"CompositionRevision orders-1a2b3c: it is not in the cluster. Restore it, or set another compositionRevisionRef on XOrder x" +
					howToConvert,
				"XOrder x: Crossplane has not reported yet that it is paused [AwaitingPauseReport]",
			}},
		},
	})
}

// A held, unpaused XR, pinned to the backed-up revision: what proves its adoption.
func TestNextAfterTheUnpause(t *testing.T) {
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x))
	free := held(xptest.XR("x", xptest.Refs(bucket)), unpaused(), xptest.Reconciled())
	ownPause := held(xptest.XR("x", xptest.Refs(bucket), xptest.Annotated(xp.AnnotationPaused, "true")))
	loose := xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x"))
	broken := func(now string) *unstructured.Unstructured {
		backup := xptest.XR("x", xptest.Refs(bucket), xptest.Synced("False", "ReconcileError", "no function, tried 7 times"))
		xr := xptest.With(backup, xptest.Without("status")) // As Velero creates it.
		if _, err := Put(xr, Hold{Restore: restoreName, Since: restoredAt, Failing: FailingOf(backup)}); err != nil {
			t.Fatal(err)
		}

		return xptest.With(xr, unpaused(), xptest.Synced("False", "ReconcileError", now))
	}
	wait := func(adopted int, moving bool, why ...string) outcome {
		return outcome{Adopted: adopted, Total: 1, Moving: moving, Waiting: why}
	}
	notItsOwn := wait(0, false, "Bucket b: it has no controller, and nothing shows that this XR composed it. If it did, remove crossplane.io/paused from "+
		"XOrder x once it waits for nothing else [ControllerUnknown]")
	released := outcome{Step: stepRelease, Target: "XOrder x", Adopted: 1, Total: 1}
	const dropped = "Bucket b: the XR does not list it any more. Put it back into its resourceRefs, or delete it with deletionPolicy Orphan [NoLongerListed]"
	runPlans(t, map[string]planCase{
		"Adopted": {reason: "The XR lists and controls the same resources and was reconciled.", snapshot: snapshot(free, bucket), ref: xp.RefTo(x), want: released},
		"Growing": {
			reason:   "An incomplete Composition composes more resources later.",
			snapshot: snapshot(xptest.With(free, xptest.Refs(xptest.MR("more"), bucket)), bucket), ref: xp.RefTo(x), want: released,
		},
		"NotReconciled": {
			reason:   "The last condition is that of the pause.",
			snapshot: snapshot(xptest.With(free, xptest.SeenPaused()), bucket), ref: xp.RefTo(x),
			want: wait(1, true, "XOrder x: Crossplane has not reconciled it yet [AwaitingCrossplane]"),
		},
		"NoStatus": {
			reason:   "Crossplane has written no condition.",
			snapshot: snapshot(xptest.With(free, xptest.Without("status")), bucket), ref: xp.RefTo(x),
			want: wait(1, true, "XOrder x: Crossplane has not reconciled it yet [AwaitingCrossplane]"),
		},
		"CannotReconcile": {
			reason:   "Crossplane's own message names the cause.",
			snapshot: snapshot(xptest.With(free, xptest.Synced("False", "ReconcileError", "no function")), bucket), ref: xp.RefTo(x),
			want: wait(1, true, "XOrder x: Crossplane can't reconcile it: no function [CrossplaneFailing]"),
		},
		"AsBroken": {
			reason: "A reconcile that failed in the source too must not hold the XR for ever.", snapshot: snapshot(broken("no function, tried 22 times"), bucket), ref: xp.RefTo(x),
			want: outcome{Step: stepRelease, Target: "XOrder x", Adopted: 1, Total: 1, Remarks: []string{"XOrder x: Crossplane can't reconcile it, as in the backup: " +
				"no function, tried 22 times [StillFailing]"}},
		},
		"BrokenOtherwise": {
			reason: "A new failure was not in the backup.", snapshot: snapshot(broken("no credentials"), bucket), ref: xp.RefTo(x),
			want: wait(1, true, "XOrder x: Crossplane can't reconcile it: no credentials [CrossplaneFailing]"),
		},
		"BrokenAndDropped": {
			reason: "The plan still waits for a resource that the XR lost.", snapshot: snapshot(xptest.With(broken("no function, tried 3 times"), xptest.Refs()), bucket), ref: xp.RefTo(x),
			want: outcome{Adopted: 1, Total: 1, Waiting: []string{dropped}, Remarks: []string{"XOrder x: Crossplane can't reconcile it, as in the backup: " +
				"no function, tried 3 times [StillFailing]"}},
		},
		"RefDropped": {
			reason:   "A resource that Crossplane dropped is an orphan.",
			snapshot: snapshot(xptest.With(free, xptest.Refs()), bucket), ref: xp.RefTo(x), want: wait(1, false, dropped),
		},
		"DroppedAndDeleted": {
			reason:   "The user has deleted the orphan, so the plan stops waiting, and the step names it.",
			snapshot: snapshot(xptest.With(free, xptest.Refs())), ref: xp.RefTo(x),
			want: outcome{Step: stepRelease + "; without Bucket b, which it does not reference any more", Target: "XOrder x"},
		},
		"DeletedSince": {
			reason:   "Crossplane has yet to create the resource again.",
			snapshot: snapshot(free), ref: xp.RefTo(x),
			want: wait(0, false, "Bucket b: it is not in the cluster. Restore it; or, if its external resource is gone too, remove it from the resourceRefs of XOrder x, and Crossplane composes another [NotInCluster]"),
		},
		"Deleting": {
			reason: "The hold no longer keeps Crossplane from anything.", snapshot: snapshot(xptest.With(free, xptest.Deleting()), bucket), ref: xp.RefTo(x),
			want: outcome{Failed: "XOrder x is being deleted, and so is what it composes; if you need it, restore it again " +
				"when it is gone [BeingDeleted]"},
		},
		"ComposedDeleting": {
			reason: "A resource that is being deleted is not adopted.", snapshot: snapshot(free, xptest.With(bucket, xptest.Deleting())), ref: xp.RefTo(x),
			want: wait(0, false, "Bucket b: it is being deleted. See what its finalizers wait for, then restore it again [BeingDeleted]"),
		},
		"RefsUnreadable": {
			reason:   "Unreadable references prove nothing.",
			snapshot: snapshot(xptest.With(free, xptest.JSON(`{"spec":{"resourceRefs":1}}`)), bucket), ref: xp.RefTo(x),
			want: wait(1, false, "cannot read the resourceRefs of XOrder x: they are a int64, not a list [Malformed]"),
		},
		"Uncontrolled": {
			reason:   "Crossplane has yet to take the resource.",
			snapshot: snapshot(free, xptest.MR("b")), ref: xp.RefTo(x), want: wait(0, true, "Bucket b: Crossplane has not made the XR its controller [AwaitingControl]"),
		},
		"Taken": {
			reason:   "Another controller has taken the resource.",
			snapshot: snapshot(free, xptest.MR("b", xptest.ControlledBy(xptest.XR("y")))), ref: xp.RefTo(x),
			want: wait(0, false, "Bucket b: its controller is XOrder y (UID uid of XOrder y), not this XR. Remove it from the resourceRefs of one of them [ControlledByAnother]"),
		},
		"MRNotObserved": {
			reason:   "The plan checked this before the unpause, so it is now the provider's task.",
			snapshot: snapshot(free, xptest.With(bucket, xptest.Synced("False", "ReconcileError", "quota"))), ref: xp.RefTo(x), want: released,
		},
		"OwnPause": {
			reason:   "A paused XR of the user stays paused, so the plan does not wait for Crossplane.",
			snapshot: snapshot(ownPause, bucket), ref: xp.RefTo(x), want: released,
		},
		"OwnPauseUncontrolled": {
			reason:   "Crossplane would take the resource after the pause, but a Composition change could lose it first.",
			snapshot: withRestored(snapshot(ownPause), loose), ref: xp.RefTo(x), want: outcome{
				Total: 1, Moving: true, Also: []string{"Bucket b"},
				Waiting: []string{"Bucket b: it was restored without its paused XR, which becomes its controller again [Relinking]"},
			},
		},
		"OwnPauseNotRestored": {
			reason: "The plugin gives an owner only to restored resources.", snapshot: snapshot(ownPause, loose), ref: xp.RefTo(x), want: notItsOwn,
		},
		"OwnPauseNotComposed": {
			reason: "A resource without the label of the XR's tree may belong to another owner.", snapshot: withRestored(snapshot(ownPause), xptest.MR("b")), ref: xp.RefTo(x), want: notItsOwn,
		},
		"OwnPauseNotListed": {
			reason:   "The XR itself must list the resource, not only its mark.",
			snapshot: withRestored(snapshot(xptest.With(ownPause, xptest.Without("spec", "resourceRefs"))), loose), ref: xp.RefTo(x), want: notItsOwn,
		},
		"OwnPauseMissing": {
			reason:   "No resource may be missing, even with the user's own pause.",
			snapshot: snapshot(ownPause), ref: xp.RefTo(x),
			want: wait(0, false, "Bucket b: it is not in the cluster. Restore it; or, if its external resource is gone too, remove it from the resourceRefs of XOrder x, and Crossplane composes another [NotInCluster]"),
		},
		"Released": {
			reason:   "Without a hold there is nothing left to do.",
			snapshot: snapshot(xptest.XR("x", xptest.Refs(bucket)), bucket), ref: xp.RefTo(x), want: outcome{Done: true, Adopted: 1, Total: 1},
		},
		"NeverOurs": {
			reason:   "The plugin does not judge an XR that was live before the restore.",
			snapshot: snapshot(xptest.XR("x", xptest.JSON(`{"spec":{"resourceRefs":7}}`))), ref: xp.RefTo(x), want: outcome{Done: true},
		},
	})
}
