package adoption

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
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
	unpausedClaim := xptest.With(going, xptest.Unpaused())
	mr := func(o ...xptest.Option) *unstructured.Unstructured {
		return heldFor(unnamed(o...), hold.Hold{Identity: xp.Unknown}, xptest.Deleting(), xptest.Annotated(xp.AnnotationExternalName, "b"))
	}
	runPlans(t, x, map[string]planCase{
		"XR": {
			reason: "Crossplane would resume the deletion and delete all composed resources.", want: "failed: DeletedWhileHeld", says: "XOrder x is being deleted",
			snapshot: snapshot(paused, bucket, revision),
		},
		"Foreground": {
			reason: "Foreground deletion removes composed resources first, and the message names the lost ones.", want: "failed: DeletedWhileHeld",
			says: "being deleted too, with their external resources: Bucket b", snapshot: snapshot(paused, xptest.With(bucket, xptest.Deleting()), revision),
		},
		"ForegroundOver": {
			reason: "Composed resources that are gone before the first check can't be kept either.", want: "failed: DeletedWhileHeld",
			says: "deleted before it, with their external resources unless they only observed, or never restored: Bucket b", snapshot: snapshot(paused, revision),
		},
		"Claim": {
			reason: "Crossplane deletes the XR when the claim is released.", want: "failed: DeletedWhileHeld", says: "OrderClaim team-a/o is being deleted",
			snapshot: snapshot(held(claimed, xptest.SeenPaused()), going, bucket, revision),
		},
		"ClaimOfAdopted": {
			reason: "The risk also exists for an XR that was adopted before.", want: "1/1; failed: DeletedWhileHeld", says: "XOrder x too",
			snapshot: snapshot(xptest.With(claimed, xptest.Reconciled()), going, bucket, revision),
		},
		"ClaimLetGo": {
			reason: "The user has released the claim.", want: "failed: BeingDeleted", says: "OrderClaim team-a/o is being deleted",
			snapshot: snapshot(held(claimed, xptest.SeenPaused()), unpausedClaim, bucket, revision),
		},
		"ClaimOfAnother": {
			reason: "Any XR can name any claim.", want: "1/1; unpause XOrder x",
			snapshot: snapshot(held(claimed, xptest.SeenPaused()), held(xptest.Claim("o", xptest.OfXR(xptest.XR("other"))), xptest.Deleting()), bucket, revision),
		},
		"MR": {
			reason: "The provider would delete the external resource after the release.", of: mr(), want: "failed: DeletedWhileHeld", says: "Bucket b is being deleted",
			snapshot: snapshot(mr()),
		},
		"ObservingMR": {
			reason: "Its provider does not delete the external resource.", of: mr(), want: "failed: DeletedWhileObserved", snapshot: snapshot(observing(bucket, xptest.Deleting())),
		},
		"ObservingMROfXR": {
			reason: "The XR would compose another external resource.", want: "0/1; waits: DeletedWhileObserved",
			snapshot: snapshot(held(xptest.XR("x", xptest.Refs(bucket)), xptest.SeenPaused()), observing(bucket, xptest.Deleting()), revision),
		},
		"OwnPoliciesKeep": {
			reason: "The user wants the external resource to stay.", of: mr(), want: "failed: BeingDeleted",
			snapshot: snapshot(observing(xptest.With(bucket, xptest.ManagementPolicies(`["Observe","Create","Update"]`)), xptest.Deleting())),
		},
		"MRGone":       {reason: "The deletion was seen.", of: mr(), want: "failed: DeletedWhileObserved", snapshot: without(observing(bucket, xptest.Deleting()))},
		"MRGoneUnseen": {reason: "It has only left the listing, or its deletion was not seen.", of: mr(), want: "failed: Bucket b NotInCluster", snapshot: without(observing(bucket))},
		"MRGoneReleased": {
			reason: "Its provider has deleted the external resource.", of: mr(), want: "failed: Bucket b NotInCluster",
			snapshot: without(xptest.With(observing(bucket, xptest.Deleting()), xptest.ManagementPolicies(`["*"]`))),
		},
		"MRGoneOfXR": {
			reason: "The XR would compose another external resource.", want: "0/1; waits: DeletedWhileObserved",
			snapshot: without(observing(bucket, xptest.Deleting()), held(xptest.XR("x", xptest.Refs(bucket)), xptest.SeenPaused()), revision),
		},
		"ForegroundObserving": {
			reason: "Foreground deletion removes what only observes.", want: "failed: DeletedWhileHeld",
			says: "only observed, so their external resources are still there, and nothing manages them: Bucket b", snapshot: without(observing(bucket, xptest.Deleting()), paused, revision),
		},
	})
}

// observing returns a restored MR that observes first, and is unpaused for that.
func observing(u *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
	return heldFor(xptest.With(u, xptest.Annotated(xp.AnnotationExternalName, "b")), hold.Hold{Observes: true}, append([]xptest.Option{xptest.Unpaused()}, o...)...)
}

// without returns a Snapshot of objects and of one that has just gone.
func without(gone *unstructured.Unstructured, objects ...*unstructured.Unstructured) *Snapshot {
	s := snapshot(append(objects, gone)...)
	s.Remove(gone)

	return s
}

// What a deleted MR has left behind is reported once it is gone.
func TestLeftBehind(t *testing.T) {
	gone := observing(xptest.MR("b"), xptest.Deleting())
	s := without(gone)
	want := []Notice{{Target: xp.IdentityOnly(xp.RefTo(gone), gone.GetUID(), ""), Event: EventStopped, Warning: true, Message: Next(s, xp.RefTo(gone)).Failed.String()}}
	xptest.Same(t, want, s.LeftBehind(), "what a deleted MR has left behind is reported once it is gone")
	s.Add(gone)
	if again := s.LeftBehind(); len(again) > 0 {
		t.Errorf("It exists again, and was reported: %v", again)
	}
}

func TestLeftovers(t *testing.T) {
	usage := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("protection.crossplane.io/v1beta1", "Usage", xptest.Namespace, "u", append([]xptest.Option{
			xptest.JSON(`{"spec":{"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","resourceRef":{"name":"b"}}}}`),
		}, o...)...)
	}
	x := xptest.XRV2("x")
	gone := xptest.XRV2("x", xptest.UID("gone"))
	mine := usage(xptest.ControlledBy(x))
	lost := usage(xptest.Labelled(xp.LabelComposite, "x"))
	child := xptest.XRV2("c", xptest.ControlledBy(x))
	const left = "Usage team-a/u: "
	type found map[string]string
	cases := map[string]struct {
		reason string
		usage  *unstructured.Unstructured
		xrs    []*unstructured.Unstructured
		want   found
	}{
		"Listed":      {reason: "A Usage that its XR lists is no leftover.", usage: mine, xrs: []*unstructured.Unstructured{xptest.With(x, xptest.Refs(mine))}},
		"ToBeAdopted": {reason: "The XR that lists a Usage without a controller takes it over.", usage: lost, xrs: []*unstructured.Unstructured{xptest.With(x, xptest.Refs(lost))}},
		"Dropped": {
			reason: "The XR no longer lists the Usage.", usage: mine, xrs: []*unstructured.Unstructured{x},
			want: found{"x": "Order team-a/x composed it and does not list it in its resourceRefs"},
		},
		"Nested": {
			reason: "The Usage belongs to a nested XR of the tree.", usage: usage(xptest.ControlledBy(child)), xrs: []*unstructured.Unstructured{xptest.With(x, xptest.Refs(child)), child},
			want: found{"c": "Order team-a/c composed it and does not list it in its resourceRefs"},
		},
		"Uncontrolled": {
			reason: "The label of the Usage names the tree.", usage: lost, xrs: []*unstructured.Unstructured{x, child}, want: found{"x": "no XR lists it in its resourceRefs"},
		},
		"ListedBelow": {reason: "Another XR of the tree lists the Usage.", usage: lost, xrs: []*unstructured.Unstructured{x, xptest.With(child, xptest.Refs(lost))}},
		"Recreated": {
			reason: "A new XR of the same name is another object.", usage: usage(xptest.ControlledBy(gone)), xrs: []*unstructured.Unstructured{x},
			want: found{"x": "Order x, which composed it, is gone"},
		},
		"XRGone": {
			reason: "The protected resource connects the Usage with this XR.", usage: usage(xptest.ControlledBy(xptest.XRV2("other"))),
			xrs: []*unstructured.Unstructured{xptest.With(x, xptest.Refs(xptest.NamespacedMR("b")))}, want: found{"x": "Order other, which composed it, is gone"},
		},
		"Theirs":    {reason: "A Usage of an XR of another kind has no connection with this XR.", usage: usage(xptest.ControlledBy(xptest.XR("x"))), xrs: []*unstructured.Unstructured{x}},
		"Elsewhere": {reason: "A label does not name a tree of another namespace.", usage: xptest.With(lost, xptest.In("team-b")), xrs: []*unstructured.Unstructured{x}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := found{}
			for _, l := range Leftovers([]*unstructured.Unstructured{tc.usage}, tc.xrs) {
				m := l.Message()
				got[l.XR.GetName()], _, _ = strings.Cut(strings.TrimPrefix(m.Text, left), ". It protects Bucket team-a/b; ")
				if !strings.HasPrefix(m.Text, left) || m.Code != reason.UsageLeftBehind {
					t.Errorf("got %q", m)
				}
			}
			xptest.Same(t, tc.want, got, tc.reason, cmpopts.EquateEmpty())
		})
	}
}
