package adoption

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Crossplane makes an XR the controller only of what its Composition still wants.
func TestNextOfOwnerless(t *testing.T) {
	mr := xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, "external"), xptest.Labelled(xp.LabelComposite, "x"), xptest.Annotated(xp.AnnotationResourceName, "bucket"))
	xr := xptest.XR("x", xptest.Refs(mr), xptest.Reconciled())
	owner := xp.RefTo(xr)
	ownerless := heldFor(mr, Hold{Reason: ReasonOwnerless, Owner: &owner})
	taken := xptest.With(ownerless, xptest.ControlledBy(xr))
	waits := polledAt(ownerless, noon.Add(-otherXRPatience))
	outer := xptest.XR("outer", xptest.Refs(mr), xptest.Labelled(xp.LabelComposite, "x"), xptest.UID("outer"))
	nested := xptest.XR("nested", xptest.Labelled(xp.LabelComposite, "x"), xptest.Annotated(xp.AnnotationResourceName, "nested"), xptest.UID("nested"))
	below := heldFor(nested, Hold{Reason: ReasonOwnerless, Owner: &owner}, xptest.SeenPaused())
	revision := xptest.Revision(xptest.RevisionName, xr)
	paused := held(xr, xptest.SeenPaused())
	const again = "which composed it, is not in the cluster, and no other XR controls it. Restore again when its XR can come and lists it: the XR adopts it then. To let it run " +
		"without an XR, run: velero-plugin-for-crossplane release --force b [XRNotRestored]"
	cases := map[string]struct {
		reason   string
		snapshot *Snapshot
		ref      xp.Ref
		want     string
		step     string
		failed   bool
	}{
		"Listed": {
			reason: "Crossplane may be about to drop the MR from its list.", snapshot: withRestored(snapshot(xr), ownerless), ref: xp.RefTo(mr),
			want: "Bucket b: XOrder x lists it, and Crossplane has not made that its controller. Check that Crossplane runs",
		},
		"Taken":   {reason: "The XR controls the MR, so the Composition still wants it.", snapshot: withRestored(snapshot(xr), taken), ref: xp.RefTo(mr), step: "give its own settings back"},
		"Dropped": {reason: "The MR was being deleted in the backup.", snapshot: withRestored(snapshot(xptest.With(xr, xptest.Refs())), waits), ref: xp.RefTo(mr), want: "Bucket b stays held: XOrder x does not list it any more", failed: true},
		"Gone":    {reason: "The XR of the MR was deleted too.", snapshot: withRestored(snapshot(), waits), ref: xp.RefTo(mr), want: "Bucket b stays held: XOrder x, " + again, failed: true},
		"Going": {
			reason: "The XR of the MR is being deleted too.", snapshot: withRestored(snapshot(xptest.With(xr, xptest.Deleting())), waits), ref: xp.RefTo(mr), want: "XOrder x, which composed it, is being deleted", failed: true,
		},
		"FirstPoll": {reason: "Another XR can still take it.", snapshot: withRestored(snapshot(), ownerless), ref: xp.RefTo(mr), step: "note when it began to wait for an XR"},
		"Soon":      {reason: "Another XR can still take it.", snapshot: withRestored(snapshot(), polledAt(ownerless, noon)), ref: xp.RefTo(mr), want: "Bucket b: XOrder x, " + again},
		"TakenByAnother": {
			reason: "It was moved from a nested XR to the outer one.", snapshot: withRestored(snapshot(outer), xptest.With(ownerless, xptest.ControlledBy(outer))), ref: xp.RefTo(mr),
			step: "give its own settings back",
		},
		"HeldSince": {
			reason: "An XR whose hold was put on again does not wait for Crossplane.", ref: xp.RefTo(xr), snapshot: withRestored(snapshot(revision), paused, ownerless),
			want: "Bucket b: it was restored without its XR, which becomes its controller again [Relinking]", step: "make XOrder x its controller again",
		},
		"Outer": {
			reason: "A held XR that lists it takes what a missing one composed.", ref: xp.RefTo(outer), snapshot: withRestored(snapshot(revision), held(outer, xptest.SeenPaused()), ownerless),
			want: "Bucket b: it was restored without its XR", step: "make XOrder outer its controller again",
		},
		"OfAnother": {
			reason: "A held XR takes nothing that its own XR lists, too.", ref: xp.RefTo(outer), snapshot: withRestored(snapshot(revision), held(outer, xptest.SeenPaused()), ownerless, xr),
			want: "Bucket b: XOrder x lists it, and Crossplane has not made that its controller",
		},
		"Nested": {
			reason: "A nested XR without its XR would run without an owner, too.", snapshot: withRestored(snapshot(revision), polledAt(below, noon.Add(-otherXRPatience))), ref: xp.RefTo(nested),
			want: "XOrder nested stays held: XOrder x, which composed it, is not in the cluster", failed: true,
		},
		"NestedTaken": {
			reason: "A second restore brings the XR of a nested one.", ref: xp.RefTo(xr), snapshot: withRestored(snapshot(revision), held(xptest.XR("x", xptest.Refs(nested)), xptest.SeenPaused()), below),
			want: "XOrder nested: it was restored without its XR, which becomes its controller again [Relinking]", step: "make XOrder x its controller again",
		},
		"NestedAdopted": {
			reason: "With its controller it goes on.", ref: xp.RefTo(nested), snapshot: withRestored(snapshot(revision, xr), xptest.With(below, xptest.ControlledBy(xr))), step: stepUnpause,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Next(tc.snapshot, tc.ref)
			said, step := strings.Join(reason.Strings(p.Waiting), "; "), p.Step
			if tc.failed {
				said = p.Failed.String()
			}
			if len(p.Also) > 0 {
				step = p.Also[0].Step
			}
			if !strings.Contains(said, tc.want) || (!p.Failed.IsZero()) != tc.failed || !strings.Contains(step, tc.step) || tc.step == "" && step != "" || p.Done {
				t.Errorf("%s\ngot %+v", tc.reason, p)
			}
		})
	}
}

// polledAt returns a held object whose first poll was at the time.
func polledAt(u *unstructured.Unstructured, at time.Time) *unstructured.Unstructured {
	h, err := HoldOf(u)
	if err != nil {
		panic(err) // The test is wrong.
	}
	h.Polled = at.UTC().Format(time.RFC3339)
	b := h.encode()

	return xptest.With(u, xptest.Annotated(AnnotationHold, b))
}

// Lifting by force names the risk of an MR that its XR does not control.
func TestForceOfOwnerless(t *testing.T) {
	mr := xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, "external"), xptest.PublishesTo("store", "details"))
	xr := xptest.XR("x", xptest.Refs(mr), xptest.Reconciled())
	owner := xp.RefTo(xr)
	ownerless := heldFor(mr, Hold{Reason: ReasonOwnerless, Owner: &owner})
	publishing := heldFor(mr, Hold{Reason: ReasonOwnerless, Owner: &owner, Secret: true})
	unreadable := snapshot(ownerless)
	unreadable.AddUnreadable(xr.GroupVersionKind(), "forbidden")
	cases := map[string]struct {
		reason   string
		snapshot *Snapshot
		want     []reason.Code
	}{
		"Listed":     {reason: "Crossplane may be about to drop the MR from its list.", snapshot: snapshot(xr, ownerless), want: []reason.Code{reason.Uncontrolled}},
		"Dropped":    {reason: "The MR was deleted on purpose.", snapshot: snapshot(xptest.With(xr, xptest.Refs()), ownerless), want: []reason.Code{reason.Orphaned}},
		"Gone":       {reason: "The MR was deleted with its XR.", snapshot: snapshot(ownerless), want: []reason.Code{reason.Orphaned}},
		"Unreadable": {reason: "The XR is unreadable, so it may still compose the MR.", snapshot: unreadable, want: []reason.Code{reason.Uncontrolled}},
		"Publishing": {
			reason: "The risks also name everything else that is missing.", snapshot: snapshot(xr, publishing),
			want: []reason.Code{reason.Uncontrolled, reason.ConnectionSecretMissing},
		},
		"Taken": {reason: "The XR controls the MR, so the Composition still wants it.", snapshot: snapshot(xr, xptest.With(ownerless, xptest.ControlledBy(xr)))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := AssessForce(tc.snapshot, xp.RefTo(mr))
			if diff := cmp.Diff(tc.want, codesOf(f.Risks)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\n%s", tc.reason, diff, reason.Join(f.Risks))
			}
		})
	}
}
