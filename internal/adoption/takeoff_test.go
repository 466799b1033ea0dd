package adoption

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestTakeOff(t *testing.T) {
	paused, kept := xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Annotated("theirs", "kept")
	refs := xptest.Refs(xptest.MR("b"))
	hold := func(u *unstructured.Unstructured) *unstructured.Unstructured { return held(u) }
	same := func(u *unstructured.Unstructured) *unstructured.Unstructured { return u }
	cases := map[string]struct {
		reason string
		own    *unstructured.Unstructured
		// held turns the object into its state in the backup.
		held func(*unstructured.Unstructured) *unstructured.Unstructured
	}{
		"XR":       {reason: "An object without its own settings gets none.", own: xptest.XR("x", refs, kept), held: hold},
		"ModernXR": {reason: "Crossplane v2 has the fields in another place.", own: xptest.XRV2("x", kept), held: hold},
		"Claim":    {reason: "A claim has another mark.", own: xptest.Claim("o", xptest.OfXR(xptest.XR("x"))), held: hold},
		"OwnPause": {reason: "The user's own pause comes back.", own: xptest.XR("x", paused), held: hold},
		"OwnNoPause": {
			reason: "The user's own value comes back even if it is no pause.", own: xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "false")), held: hold,
		},
		"Policy":       {reason: "The user's own policy comes back.", own: xptest.XR("x", xptest.Policy("Automatic")), held: hold},
		"Manual":       {reason: "The user's own policy comes back even if it equals the hold's.", own: xptest.Claim("o", xptest.Policy(xp.UpdateManual)), held: hold},
		"ModernPolicy": {reason: "Crossplane v2 has the policy in another place.", own: xptest.XRV2("x", xptest.Policy("Automatic"), paused), held: hold},
		"NotPinned": {
			reason: "A hold without a revision changed no policy.", own: xptest.XR("x", xptest.NeverComposed(), xptest.Policy("Automatic")), held: hold,
		},
		"Twice": {
			reason: "An object that was backed up twice while held keeps its own settings.", own: xptest.XR("x", xptest.Policy("Automatic"), paused),
			held: func(u *unstructured.Unstructured) *unstructured.Unstructured { return held(held(u)) },
		},
		"Copy": {reason: "A copy gets its own settings back too.", own: xptest.XRV2("x", paused), held: copied},
		"MR": {
			reason: "An MR has no policy.", own: xptest.MR("b", xptest.PublishesTo("infra", "s"), paused),
			held: func(u *unstructured.Unstructured) *unstructured.Unstructured { return forSecret(u) },
		},
		"None": {reason: "An object without a hold does not change.", own: xptest.XR("x", paused, xptest.Policy(xp.UpdateManual)), held: same},
		"Bare": {reason: "An object without annotations does not change either.", own: xptest.XR("x"), held: same},
		"Unreadable": {
			reason: "An unreadable mark does not show the user's own settings.",
			own:    xptest.XR("x", xptest.Annotated(AnnotationHold, "?"), paused, xptest.Policy(xp.UpdateManual)), held: same,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.held(tc.own).DeepCopy()
			err := RemoveBackedUpHold(got)
			if diff := cmp.Diff(asStored(tc.own), asStored(got)); err != nil || diff != "" {
				t.Errorf("%s\nerror %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestTakeOffErrors(t *testing.T) {
	odd := xptest.XR("x", xptest.Field("x", "spec"), xptest.Annotated(AnnotationHold, `{"pinned":true,"compositionUpdatePolicy":"Automatic"}`))
	if err := RemoveBackedUpHold(odd); err == nil || !strings.HasPrefix(err.Error(), "cannot set the composition update policy of XOrder x: ") {
		t.Errorf("an object that can't get its own policy back must be refused; got error %v", err)
	}
}

// An object that is not the XR's MR is not held for its connection secret.
func TestNextReleasesOnlyItsMRs(t *testing.T) {
	x, other := xptest.XR("x"), xptest.XR("other")
	cron := xptest.Object("ops.crossplane.io/v1alpha1", "CronOperation", "", "nightly", xptest.ControlledBy(x))
	claim, mr := xptest.Claim("o", xptest.ControlledBy(x)), xptest.MR("b", xptest.ControlledBy(x), xptest.PublishesTo("infra", "s"))
	anothers := xptest.MR("b", xptest.ControlledBy(other))
	composing := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return held(xptest.XR("x", xptest.Refs(u)), xptest.SeenPaused())
	}
	revision := xptest.Revision(xptest.RevisionName, x)
	unpause := outcome{Step: stepUnpause, Target: "XOrder x", Adopted: 1, Total: 1}
	waits := outcome{Total: 1, Moving: true, Waiting: []string{"Bucket b: it gets its own settings back [Releasing]"}}
	runPlans(t, map[string]planCase{
		"CronOperation": {
			reason: "Only a user lifts the hold of a resource that starts Operations.", snapshot: snapshot(composing(cron), held(cron), revision), ref: xp.RefTo(x), want: unpause,
		},
		"Claim": {
			reason: "A claim has its own plan.", snapshot: snapshot(composing(claim), held(claim), revision), ref: xp.RefTo(x), want: unpause,
		},
		"OfAnother": {
			reason: "A mark can hold forged references.", snapshot: snapshot(composing(anothers), forSecret(anothers), revision), ref: xp.RefTo(x),
			want: outcome{Total: 1, Waiting: []string{"Bucket b: its controller is XOrder other (UID uid of XOrder other), not this XR. Remove it from the resourceRefs of one of them [ControlledByAnother]"}},
		},
		"Uncontrolled": {
			reason: "A resource without a controller has its own operation, and the XR waits for it.", ref: xp.RefTo(x),
			snapshot: snapshot(composing(mr), forSecret(xptest.With(mr, xptest.Without("metadata", "ownerReferences"))), revision), want: waits,
		},
		"StillSaysPaused": {
			reason: "The last condition of the released MR is still that of the pause.", ref: xp.RefTo(x),
			snapshot: snapshot(composing(mr), xptest.With(mr, xptest.SeenPaused()), revision),
			want:     outcome{Total: 1, Moving: true, Waiting: []string{"Bucket b: its provider has not observed it yet [AwaitingProvider]"}},
		},
	})
}

// The Plan of a held XR includes its composed resources.
func TestSubjectsOfAHeldXR(t *testing.T) {
	x, free := xptest.XR("x"), xptest.XR("free")
	unreadable := xptest.XR("u", xptest.Annotated(AnnotationHold, "?"))
	publishes := xptest.PublishesTo("infra", "s")
	child := xptest.XR("child", xptest.ControlledBy(x))
	claim := xptest.Claim("o")
	mr := func(name string, controller *unstructured.Unstructured) *unstructured.Unstructured {
		return xptest.MR(name, xptest.ControlledBy(controller), publishes)
	}
	for name, tc := range map[string]struct {
		reason   string
		snapshot *Snapshot
		want     []xp.Ref
	}{
		"Held": {
			reason:   "The XR's plan releases its MRs, marked or not.",
			snapshot: snapshot(held(x), forSecret(mr("b", x)), mr("c", x), xptest.MR("d", xptest.Annotated(AnnotationHold, "{}"), xptest.ControlledBy(x))), want: refs(x),
		},
		"Unheld":     {reason: "The plan of an XR without a hold does not cover its MRs.", snapshot: snapshot(free, forSecret(mr("b", free))), want: refs(mr("b", free), free)},
		"Unreadable": {reason: "An XR with an unreadable mark has no plan for its MRs.", snapshot: snapshot(unreadable, mr("b", unreadable)), want: refs(mr("b", x), unreadable)},
		"Earlier": {
			reason: "An earlier XR of the same name is another controller.", snapshot: snapshot(held(x), mr("b", xptest.XR("x", xptest.UID("old")))), want: refs(mr("b", x), x),
		},
		"Uncontrolled": {reason: "A resource without a controller belongs to no XR.", snapshot: snapshot(held(x), xptest.MR("b", publishes)), want: refs(mr("b", x), x)},
		"NestedXR":     {reason: "A nested XR has its own plan.", snapshot: snapshot(held(x), held(child)), want: refs(child, x)},
		"HeldClaim":    {reason: "A claim composes nothing.", snapshot: snapshot(held(claim), mr("b", claim)), want: refs(mr("b", x))},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.snapshot.Subjects()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
