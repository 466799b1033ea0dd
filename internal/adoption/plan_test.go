package adoption

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const stepUnpause = "let Crossplane reconcile it under the backed-up revision"

type planCase struct {
	reason   string
	snapshot *Snapshot
	// of is the subject, if it is another than that of most cases.
	of *unstructured.Unstructured
	// want is a summary of the Plan. A message of it contains says.
	want, says string
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
			t.Errorf("held: got %t, want %t; %+v", p.Held, tc.want, summary(p))
		}
	}
}

// shortSteps are short names of steps.
var shortSteps = map[string]string{
	stepUnpause: "unpause", "let its provider observe it": "observe", stepReportPaused: "report paused", stepFound: "found", stepUnfound: "unfound",
	"give its own settings back": "release", "adopted; give its own settings back": "release", "its XR is adopted; give its own settings back": "release",
	StepAgain: "hold again", "nothing holds it any more; give its own settings back": "free",
}

func runPlans(t *testing.T, of *unstructured.Unstructured, cases map[string]planCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := Next(tc.snapshot, xp.RefTo(cmp.Or(tc.of, of)))
			xptest.Same(t, tc.want, summary(plan), fmt.Sprintf("%s\n%+v", tc.reason, plan))
			if said := reason.Join(slices.Concat(plan.Waiting, plan.Remarks, []reason.Message{plan.Failed})); !strings.Contains(said, tc.says) {
				t.Errorf("%s\n%q lacks %q", tc.reason, said, tc.says)
			}
			for _, change := range append(plan.Also, plan.Change) {
				if (change.Patch == nil) != (change.Target == nil) || (change.Patch == nil) != (change.Step == "") {
					t.Errorf("a step needs a target, a patch and a name: %+v", plan)
				}
			}
			if plan.Done && (!plan.Failed.IsZero() || plan.Patch != nil || plan.Also != nil) {
				t.Errorf("a plan that is done must have no other outcome: %+v", plan)
			}
			if notices := Changes(tc.snapshot, map[xp.ID]Plan{xp.RefTo(cmp.Or(tc.of, of)).ID(): plan}, nil); !plan.Quarantine.IsZero() && len(plan.Waiting) == 0 && len(notices) > 0 {
				t.Errorf("an object in quarantine must get no notice: %+v", notices)
			}
		})
	}
}

// summary returns what a Plan does and waits for. Each message is that about which it is, and its code.
func summary(p Plan) string {
	var parts []string
	for part, is := range map[string]bool{"done": p.Done, "moving": p.Moving, "ready": p.Ready} {
		if is {
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	if p.Adopted+p.Total > 0 {
		parts = append([]string{fmt.Sprintf("%d/%d", p.Adopted, p.Total)}, parts...)
	}
	for _, c := range append([]hold.Change{p.Change}, p.Also...) {
		if c.Target != nil {
			parts = append(parts, cmp.Or(shortSteps[c.Step], c.Step)+" "+xp.String(c.Target))
		}
	}
	for _, said := range []struct {
		as   string
		what []reason.Message
	}{
		{"waits", p.Waiting},
		{"failed", []reason.Message{p.Failed}},
		{"quarantined", []reason.Message{p.Quarantine}},
		{"warns", []reason.Message{p.Warning}},
		{"remarks", p.Remarks},
	} {
		var short []string
		for _, m := range said.what {
			about, _, ok := strings.Cut(m.Text, ": ")
			switch code := strings.LastIndex(m.Text, "["); {
			case m.IsZero():
			case m.Code == "": // It is a reason from a mark.
				short = append(short, strings.Trim(m.Text[max(code, 0):], "[]"))
			case ok && len(about) <= 60 && !strings.Contains(about, ";"):
				short = append(short, about+" "+string(m.Code))
			default:
				short = append(short, string(m.Code))
			}
		}
		if len(short) > 0 {
			parts = append(parts, said.as+": "+strings.Join(short, ", "))
		}
	}

	return strings.Join(parts, "; ")
}

// A held, paused XR: what must be true before Crossplane may reconcile it.
func TestNextBeforeTheUnpause(t *testing.T) {
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	revision := xptest.Revision(xptest.RevisionName, x)
	paused := held(xptest.XR("x", xptest.Refs(bucket)), xptest.SeenPaused())
	child := xptest.XR("child", xptest.ControlledBy(x))
	parent := held(xptest.XR("x", xptest.Refs(child)), xptest.SeenPaused())
	unreadable := func(w *Snapshot) *Snapshot {
		w.AddUnreadable(xptest.MR("b").GroupVersionKind(), "forbidden")

		return w
	}
	runPlans(t, x, map[string]planCase{
		"Ready": {reason: "Every composed resource exists, is controlled by the XR and is observed.", want: "1/1; unpause XOrder x", snapshot: snapshot(paused, bucket, revision)},
		"Gone":  {reason: "An XR that did not come back can't be adopted.", want: "failed: XOrder x NotInCluster", snapshot: snapshot()},
		"Unreadable": {
			reason: "A user must correct a mark that can't be read.", want: "failed: MarkUnreadable", snapshot: snapshot(xptest.XR("x", xptest.Annotated(hold.Annotation, "?"))),
		},
		"Missing": {reason: "Crossplane would create the missing resource again.", want: "0/1; waits: Bucket b NotInCluster", snapshot: snapshot(paused, revision)},
		"MissingAndRemoved": {
			reason: "The user has removed the reference, so the plan no longer waits for it.", want: "unpause XOrder x", snapshot: snapshot(xptest.With(paused, xptest.Refs()), revision),
		},
		"Forbidden": {
			reason: "An unreadable resource may exist, so the message does not ask to restore it.", want: "0/1; waits: Bucket b NotRead", snapshot: unreadable(snapshot(paused, revision)),
		},
		"ForbiddenAndRemoved": {
			reason: "An unreadable resource may exist, so the plan still waits although the XR dropped the reference.", want: "0/1; waits: Bucket b NotRead",
			snapshot: unreadable(snapshot(xptest.With(paused, xptest.Refs()), revision)),
		},
		"ForbiddenInAnotherVersion": {
			reason: "An observed resource is known, whatever another version of its kind returns.", want: "1/1; unpause XOrder x",
			snapshot: func() *Snapshot {
				w := unreadable(snapshot(paused, bucket, revision))
				w.AddUnreadable(schema.GroupVersionKind{Group: "cloud.example.org", Version: "v9", Kind: "Bucket"}, "down")

				return w
			}(),
		},
		"ComposedDeleting": {
			reason: "The resource is about to be missing, and Crossplane would create it again.", want: "0/1; waits: Bucket b BeingDeleted",
			snapshot: snapshot(paused, xptest.With(bucket, xptest.Deleting()), revision),
		},
		"OldUID": {
			reason: "An earlier XR of the same name is another controller.", want: "0/1; waits: Bucket b ControlledByAnother", says: "UID old",
			snapshot: snapshot(paused, revision, xptest.MR("b", xptest.ControlledBy(xptest.XR("x", xptest.UID("old"))))),
		},
		"Uncontrolled": {
			reason: "Crossplane takes a resource without a controller (composition_functions.go), but the plan does not count it yet.", want: "0/1; unpause XOrder x",
			snapshot: snapshot(paused, revision, xptest.MR("b", xptest.Reconciled())),
		},
		"PausedByThePerson": {
			reason: "No provider observes an MR that a user has paused.", want: "1/1; unpause XOrder x",
			snapshot: snapshot(paused, revision, xptest.MR("b", xptest.ControlledBy(x), xptest.Annotated(xp.AnnotationPaused, "true"))),
		},
		"NoMR": {
			reason: "A resource without a provider has no condition to wait for.", want: "1/1; unpause XOrder x",
			snapshot: snapshot(held(xptest.XR("x", xptest.Refs(xptest.Secret("s"))), xptest.SeenPaused()), revision, xptest.Secret("s", xptest.ControlledBy(x))),
		},
		"ChildUnreadable": {
			reason: "A nested XR with an unreadable mark does not count as adopted.", want: "0/1; waits: XOrder child MarkUnreadable",
			snapshot: snapshot(parent, revision, xptest.With(child, xptest.Annotated(hold.Annotation, "?"))),
		},
		"NoRevision": {
			reason: "Without the revision Crossplane would choose another one.", want: "1/1; waits: CompositionRevision orders-1a2b3c CompositionRevisionMissing",
			snapshot: snapshot(paused, bucket),
		},
		"NeverComposed": {
			reason: "An XR without a revision needs none.", want: "unpause XOrder x", snapshot: snapshot(held(xptest.XR("x", xptest.NeverComposed()), xptest.SeenPaused())),
		},
		"NotSeen": {
			reason: "Crossplane must have seen the pause, or an old condition would prove the later reconcile.", want: "1/1; moving; waits: XOrder x AwaitingPauseReport",
			snapshot: snapshot(xptest.With(paused, xptest.Reconciled()), bucket, revision),
		},
	})
}

// A held, unpaused XR, pinned to the backed-up revision: what proves its adoption.
func TestNextAfterTheUnpause(t *testing.T) {
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x))
	free := held(xptest.XR("x", xptest.Refs(bucket)), xptest.Unpaused(), xptest.Reconciled())
	ownPause := held(xptest.XR("x", xptest.Refs(bucket), xptest.Annotated(xp.AnnotationPaused, "true")))
	loose := xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x"))
	broken := func(now string) *unstructured.Unstructured {
		backup := xptest.XR("x", xptest.Refs(bucket), xptest.Synced("False", "ReconcileError", "no function, tried 7 times"))
		xr := xptest.With(backup, xptest.Without("status")) // As Velero creates it.
		xptest.Value(hold.Put(xr, hold.Hold{Restore: restoreName, Since: restoredAt, Failing: hold.FailingOf(backup)}))

		return xptest.With(xr, xptest.Unpaused(), xptest.Synced("False", "ReconcileError", now))
	}
	runPlans(t, x, map[string]planCase{
		"Growing": {
			reason: "An incomplete Composition composes more resources later.", want: "1/1; release XOrder x",
			snapshot: snapshot(xptest.With(free, xptest.Refs(xptest.MR("more"), bucket)), bucket),
		},
		"NotReconciled": {
			reason: "The last condition is that of the pause.", want: "1/1; moving; waits: XOrder x AwaitingCrossplane", snapshot: snapshot(xptest.With(free, xptest.SeenPaused()), bucket),
		},
		"AsBroken": {
			reason: "A reconcile that failed in the source too must not hold the XR for ever.", want: "1/1; release XOrder x; remarks: XOrder x StillFailing",
			snapshot: snapshot(broken("no function, tried 22 times"), bucket),
		},
		"BrokenOtherwise": {
			reason: "A new failure was not in the backup.", want: "1/1; moving; waits: XOrder x CrossplaneFailing", says: "no credentials",
			snapshot: snapshot(broken("no credentials"), bucket),
		},
		"RefDropped": {
			reason: "A resource that Crossplane dropped is an orphan.", want: "1/1; waits: Bucket b NoLongerListed", snapshot: snapshot(xptest.With(free, xptest.Refs()), bucket),
		},
		"DroppedAndDeleted": {
			reason: "The user has deleted the orphan, so the plan stops waiting, and the step names it.",
			want:   "adopted; give its own settings back; without Bucket b, which it does not reference any more XOrder x", snapshot: snapshot(xptest.With(free, xptest.Refs())),
		},
		"Deleting": {reason: "The hold no longer keeps Crossplane from anything.", want: "failed: BeingDeleted", snapshot: snapshot(xptest.With(free, xptest.Deleting()), bucket)},
		"ComposedDeleting": {
			reason: "A resource that is being deleted is not adopted.", want: "0/1; waits: Bucket b BeingDeleted", snapshot: snapshot(free, xptest.With(bucket, xptest.Deleting())),
		},
		"RefsUnreadable": {
			reason: "Unreadable references prove nothing.", want: "1/1; waits: cannot read the resourceRefs of XOrder x Malformed",
			snapshot: snapshot(xptest.With(free, xptest.JSON(`{"spec":{"resourceRefs":1}}`)), bucket),
		},
		"Uncontrolled": {reason: "Crossplane has yet to take the resource.", want: "0/1; moving; waits: Bucket b AwaitingControl", snapshot: snapshot(free, xptest.MR("b"))},
		"MRNotObserved": {
			reason: "The plan checked this before the unpause, so it is now the provider's task.", want: "1/1; release XOrder x",
			snapshot: snapshot(free, xptest.With(bucket, xptest.Synced("False", "ReconcileError", "quota"))),
		},
		"OwnPause": {reason: "A paused XR of the user stays paused, so the plan does not wait for Crossplane.", want: "1/1; release XOrder x", snapshot: snapshot(ownPause, bucket)},
		"OwnPauseUncontrolled": {
			reason: "Crossplane would take the resource after the pause, but a Composition change could lose it first.",
			want:   "0/1; moving; make XOrder x its controller again Bucket b; waits: Bucket b Relinking", snapshot: withRestored(snapshot(ownPause), loose),
		},
		"OwnPauseNotRestored": {reason: "The plugin gives an owner only to restored resources.", want: "0/1; waits: Bucket b ControllerUnknown", snapshot: snapshot(ownPause, loose)},
		"OwnPauseNotComposed": {
			reason: "A resource without the label of the XR's tree may belong to another owner.", want: "0/1; waits: Bucket b ControllerUnknown",
			snapshot: withRestored(snapshot(ownPause), xptest.MR("b")),
		},
		"OwnPauseNotListed": {
			reason: "The XR itself must list the resource, not only its mark.", want: "0/1; waits: Bucket b ControllerUnknown",
			snapshot: withRestored(snapshot(xptest.With(ownPause, xptest.Without("spec", "resourceRefs"))), loose),
		},
		"NeverOurs": {
			reason: "The plugin does not judge an XR that was live before the restore.", want: "done", snapshot: snapshot(xptest.XR("x", xptest.JSON(`{"spec":{"resourceRefs":7}}`))),
		},
	})
}

// Velero restores no completed Job or Pod, and nothing of some kinds, and only a backup with this
// plugin tells which.
func TestNextOfUnrestored(t *testing.T) {
	job, event := xptest.Object("batch/v1", "Job", "team-a", "j"), xptest.Object("v1", "Event", "team-a", "e")
	mr := xptest.NamespacedMR("b")
	x := xptest.XRV2("x", xptest.Refs(job, mr, event))
	bucket := xptest.With(mr, xptest.ControlledBy(x), xptest.Reconciled())
	ours := xptest.With(job, xptest.ControlledBy(x))
	paused := held(x, xptest.SeenPaused())
	free := held(x, xptest.Unpaused(), xptest.Reconciled())
	revision := xptest.Revision(xptest.RevisionName, x)
	runPlans(t, x, map[string]planCase{
		"Missing": {
			reason: "Nothing brings them back, and Crossplane makes them again.", want: "1/1; unpause Order team-a/x; warns: MadeAgain; remarks: MadeAgain",
			says: "Job team-a/j, Event team-a/e", snapshot: snapshot(paused, bucket, revision),
		},
		"Restored": {
			reason: "A Job that had not completed came back, and belongs to the XR.", want: "2/2; unpause Order team-a/x; warns: MadeAgain; remarks: MadeAgain",
			snapshot: snapshot(paused, bucket, ours, revision),
		},
		"Replaced": {
			reason:   "Crossplane has made another Job, under another name.",
			want:     "1/1; adopted; give its own settings back; without Job team-a/j, Event team-a/e, which it does not reference any more Order team-a/x",
			snapshot: snapshot(xptest.With(free, xptest.Refs(mr, xptest.Object("batch/v1", "Job", "team-a", "other"))), bucket, revision),
		},
		"Siblings": {reason: "All else is still waited for.", want: "0/1; waits: Bucket team-a/b NotInCluster; remarks: MadeAgain", snapshot: snapshot(paused, revision)},
	})
}

func TestNextForTheClaimOfAnXR(t *testing.T) {
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	plain := xptest.XR("x", xptest.ClaimedBy(claim))
	xr := held(plain, xptest.Unpaused(), xptest.Reconciled())
	ready := held(claim, xptest.SeenPaused())
	paused := heldFor(xptest.With(claim, xptest.Annotated(xp.AnnotationPaused, "true")), hold.Hold{Status: []string{"conditions"}})
	stranger := xptest.Claim("o", xptest.OfXR(xptest.XR("theirs")))
	runPlans(t, xr, map[string]planCase{
		"Release": {reason: "The claim is released first, while its XR is still marked.", want: "release OrderClaim team-a/o", snapshot: snapshot(xr, ready)},
		"NotBeforeTheXR": {
			reason: "A claim is not released before its XR has been reconciled.", want: "moving; waits: XOrder x AwaitingCrossplane",
			snapshot: snapshot(xptest.With(xr, xptest.SeenPaused()), ready),
		},
		"NotSeen": {reason: "Crossplane must have seen the claim's pause.", want: "moving; waits: OrderClaim team-a/o AwaitingPauseReport", snapshot: snapshot(xr, held(claim))},
		"StaysPaused": {
			reason: "Crossplane does not reconcile a claim that the user has paused, so nothing has to prove a reconcile.", want: "release OrderClaim team-a/o",
			snapshot: snapshot(xr, xptest.With(paused, xptest.Reconciled())),
		},
		"StaysPausedWithoutStatus": {
			reason: "Nobody writes the status of a claim that the user has paused.", want: "waits: OrderClaim team-a/o StatusMissing", snapshot: snapshot(xr, paused),
		},
		"PauseTakenOff": {
			reason: "Crossplane reports no unpaused claim as paused, so a reconcile with its XR is enough proof.", want: "release OrderClaim team-a/o",
			snapshot: snapshot(xr, xptest.With(ready, xptest.Without("metadata", "annotations", xp.AnnotationPaused), xptest.Reconciled())),
		},
		"NotReconciled": {
			reason: "Crossplane must have reconciled the claim before its XR loses its mark.", want: "moving; waits: OrderClaim team-a/o AwaitingCrossplane",
			snapshot: snapshot(xr, xptest.With(claim, xptest.SeenPaused())),
		},
		"Failing": {
			reason: "The report quotes Crossplane's own message.", want: "moving; waits: OrderClaim team-a/o CrossplaneFailing", says: "no XRD",
			snapshot: snapshot(xr, xptest.With(claim, xptest.Synced("False", "ReconcileError", "no XRD"))),
		},
		"Reconciled": {reason: "The XR is released after its claim.", want: "release XOrder x", snapshot: snapshot(xr, xptest.With(claim, xptest.Reconciled()))},
		"PausedByThePerson": {
			reason: "Crossplane never reconciles a claim that the user has paused.", want: "release XOrder x",
			snapshot: snapshot(xr, xptest.With(claim, xptest.Annotated(xp.AnnotationPaused, "true"))),
		},
		"Missing": {reason: "An XR does not wait for a missing claim.", want: "release XOrder x", snapshot: snapshot(xr)},
		"NotRead": {
			reason: "An unreadable claim may exist and be held.", want: "waits: OrderClaim team-a/o NotRead",
			snapshot: func() *Snapshot {
				w := snapshot(xr)
				w.AddUnreadable(claim.GroupVersionKind(), "down")

				return w
			}(),
		},
		"Unreadable": {
			reason: "A user must correct a mark that can't be read.", want: "waits: MarkUnreadable", snapshot: snapshot(xr, xptest.With(claim, xptest.Annotated(hold.Annotation, "?"))),
		},
		"XRReleased":   {reason: "An XR without a hold lets its claim be released.", want: "release OrderClaim team-a/o", snapshot: snapshot(plain, ready)},
		"BothReleased": {reason: "The plugin does not judge a claim that it never held.", want: "done", snapshot: snapshot(plain, claim)},
		"ClaimOfAnother": {
			reason: "Any XR can name any claim, so another XR's claim stays held for that XR, which may come later.", want: "done",
			snapshot: snapshot(plain, held(stranger, xptest.SeenPaused())),
		},
		"ClaimOfAnotherAndHeldXR": {
			reason: "A held XR does not release the claim of another XR either.", want: "release XOrder x", snapshot: snapshot(xr, held(stranger, xptest.SeenPaused())),
		},
	})
}

func TestNextForAClaim(t *testing.T) {
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	xr := xptest.XR("x", xptest.ClaimedBy(claim))
	runPlans(t, claim, map[string]planCase{
		"Gone":        {reason: "A claim that did not come back can't be adopted.", want: "failed: OrderClaim team-a/o NotInCluster", snapshot: snapshot()},
		"NotHeld":     {reason: "A claim without a hold needs nothing.", want: "done", snapshot: snapshot(claim)},
		"XRMissing":   {reason: "Crossplane would build a second tree for the claim.", want: "failed: ClaimWithoutXR", says: "was not restored", snapshot: snapshot(held(claim))},
		"XRCameLater": {reason: "Once the XR is back, the claim follows the XR's plan.", want: "release OrderClaim team-a/o", snapshot: snapshot(held(claim, xptest.SeenPaused()), xr)},
		"XROfAnotherClaim": {
			reason: "The plan of another claim's XR would end while this claim is held.", want: "failed: ClaimWithoutXR", says: "is not bound to it",
			snapshot: snapshot(held(claim, xptest.SeenPaused()), xptest.XR("x", xptest.ClaimedBy(xptest.Claim("p")))),
		},
		"NoXRYet": {
			reason: "A claim that had no XR in the backup has no tree that could be built twice.", want: "it had no XR in the backup; give its own settings back OrderClaim team-a/o",
			snapshot: snapshot(held(xptest.Claim("o"), xptest.SeenPaused())),
		},
		"Unreadable": {
			reason: "A user must correct a mark that can't be read.", want: "failed: MarkUnreadable", snapshot: snapshot(xptest.With(claim, xptest.Annotated(hold.Annotation, "?")), xr),
		},
	})
}
