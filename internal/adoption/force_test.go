package adoption

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestForce(t *testing.T) {
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	composition := xptest.Composition(xptest.CompositionName, x)
	pinned := xptest.Revision(xptest.RevisionName, x, xptest.Field(int64(1), "spec", "revision"))
	newer := xptest.Revision("newer", x, xptest.ControlledBy(composition), xptest.Field(int64(2), "spec", "revision"))
	loose := xptest.Revision("loose", x, xptest.Field(int64(9), "spec", "revision"), xptest.Without("metadata", "ownerReferences"))
	xr := func(o ...xptest.Option) *unstructured.Unstructured {
		return held(xptest.XR("x", append([]xptest.Option{xptest.Refs(bucket)}, o...)...), xptest.SeenPaused())
	}
	nameless := xptest.MR("b", xptest.ControlledBy(x), xptest.Without("metadata", "annotations", xp.AnnotationExternalName))
	claim := xptest.Claim("o", xptest.OfXR(x))
	publishing, xr2 := xptest.MR("b", xptest.PublishesTo("infra", "s")), xptest.XR("x", xptest.PublishesTo("infra", "s"), xptest.SeenPaused())
	listing, owner := xptest.XR("x", xptest.Refs(bucket), xptest.Reconciled()), xp.RefTo(x)
	ownerless := heldFor(xptest.MR("b"), hold.Hold{Reason: hold.ReasonOwnerless, Owner: &owner})
	unread := snapshot(ownerless)
	unread.AddUnreadable(x.GroupVersionKind(), "forbidden")
	cases := map[string]struct {
		reason   string
		snapshot *Snapshot
		of       *unstructured.Unstructured
		want     []reason.Code
		refused  reason.Code
	}{
		"Nothing": {reason: "All composed resources exist.", snapshot: snapshot(xr(), bucket, pinned), of: x},
		"Missing": {
			reason: "Crossplane creates the missing resource again, with a second external resource.", snapshot: snapshot(xr(), pinned), of: x, want: []reason.Code{reason.Dangling},
		},
		"OffTheList": {reason: "A user removed the reference, so the resource need not exist.", snapshot: snapshot(xptest.With(xr(), xptest.Refs()), pinned), of: x},
		"Unlisted": {
			reason: "Crossplane creates a second resource for one that the XR does not list.", snapshot: snapshot(xptest.With(xr(), xptest.Refs()), bucket, pinned), of: x,
			want: []reason.Code{reason.Orphaned},
		},
		"OfAnother": {
			reason: "Crossplane treats the resource of another controller as missing.", snapshot: snapshot(xr(), xptest.MR("b", xptest.ControlledBy(xptest.XR("y"))), pinned), of: x,
			want: []reason.Code{reason.ControlledByAnother},
		},
		"Going": {
			reason: "The resource is about to be deleted.", snapshot: snapshot(xr(), xptest.With(bucket, xptest.Deleting()), pinned), of: x, want: []reason.Code{reason.BeingDeleted},
		},
		"FollowsAnother": {
			reason: "Another writer changed the Composition during the hold.", of: x,
			snapshot: snapshot(xptest.With(xr(), xptest.Field("other", "spec", "compositionRef", "name")), bucket, pinned),
			want:     []reason.Code{reason.CompositionChanged, reason.RevisionMissing},
		},
		"HeldBelow": {
			reason: "The MR keeps its own hold.", snapshot: snapshot(xr(), heldFor(nameless, hold.Hold{Identity: xp.Unknown}), pinned), of: x, want: []reason.Code{reason.HeldBelow},
		},
		"NotObserved": {
			reason: "The risks name everything else that the XR waited for.", snapshot: snapshot(xr(), xptest.With(bucket, xptest.Without("status")), pinned), of: x,
			want: []reason.Code{reason.AwaitingProvider},
		},
		"NewComposition": {
			reason: "A newer revision takes effect at once, and a revision without a Composition has no effect.", snapshot: snapshot(xr(), bucket, pinned, newer, loose), of: x,
			want: []reason.Code{reason.FollowsAnother},
		},
		"Manual": {reason: "An XR with policy Manual keeps its revision.", snapshot: snapshot(xr(xptest.Policy("Manual")), bucket, pinned, newer), of: x},
		"NoneOfItsChannel": {
			reason: "No revision has the labels.", snapshot: snapshot(xr(selecting("stable")), bucket, pinned, newer), of: x, want: []reason.Code{reason.RevisionMissing},
		},
		"NoRevision": {reason: "Crossplane has no revision to follow.", snapshot: snapshot(xr(), bucket), of: x, want: []reason.Code{reason.RevisionMissing}},
		"Deleted": {
			reason: "Only the hold keeps Crossplane from deleting the XR.", snapshot: snapshot(xptest.With(xr(), xptest.Deleting()), bucket, pinned), of: x,
			want: []reason.Code{reason.BeingDeleted},
		},
		"OwnPause": {
			reason: "Nothing happens while the user's own pause stays.", snapshot: snapshot(xr(xptest.Annotated(xp.AnnotationPaused, "true")), pinned), of: x,
			want: []reason.Code{reason.PausedByUser, reason.Dangling},
		},
		"Nameless": {
			reason: "Without an external-name the external resource is unknown.", snapshot: snapshot(heldFor(nameless, hold.Hold{Identity: xp.Unknown})), of: nameless,
			want: []reason.Code{reason.IdentityMissing},
		},
		"InFlight": {
			reason: "The external resource may exist.", of: nameless,
			snapshot: snapshot(heldFor(xptest.With(nameless, xptest.Annotated(xp.AnnotationCreatePending, "2026-01-02T03:04:05Z")), hold.Hold{Identity: xp.CreatePending})),
			want:     []reason.Code{reason.CreatePending},
		},
		"Observes": {
			reason: "The provider has not yet observed the external resource.", snapshot: snapshot(heldFor(bucket, hold.Hold{Observes: true})), of: bucket,
			want: []reason.Code{reason.NotObserved, reason.AwaitingPauseReport},
		},
		"ClaimWithoutXR": {reason: "Crossplane creates another XR.", snapshot: snapshot(held(claim)), of: claim, want: []reason.Code{reason.Dangling}},
		"ClaimOfAnother": {reason: "Crossplane refuses an XR that does not name the claim.", snapshot: snapshot(held(claim), x), of: claim, want: []reason.Code{reason.OneSided}},
		"Claim":          {reason: "The claim and its XR belong together.", snapshot: snapshot(held(claim), xptest.XR("x", xptest.ClaimedBy(claim))), of: claim},
		"Copy": {
			reason: "Two MRs would manage one external resource.", snapshot: snapshot(heldFor(bucket, hold.Hold{Clone: "Bucket other"})), of: bucket, want: []reason.Code{reason.CopyOfAnother},
		},
		"Forged": {
			reason: "The key may be lost, and the mark decides the settings.", snapshot: withKey(held(xptest.XRV2("x"))), of: xptest.XRV2("x"),
			want: []reason.Code{reason.MarkForged, reason.RevisionMissing},
		},
		"Quarantine": {
			reason: "Lifting by force ends the quarantine too.", snapshot: snapshot(quarantinedObject(xptest.XR("x", xptest.Refs(bucket))), pinned), of: x,
			want: []reason.Code{reason.Dangling},
		},
		"Input": {
			reason: "A provider can generate another password.", of: bucket, want: []reason.Code{reason.InputSecretMissing},
			snapshot: snapshot(reading(bucket, hold.Input{Namespace: "infra", Name: "password"})),
		},
		"Secret":           {reason: "Another Secret is published.", snapshot: snapshot(leftOut(publishing)), of: publishing, want: []reason.Code{reason.ConnectionSecretMissing}},
		"SecretOfXR":       {reason: "Another Secret is published.", snapshot: snapshot(leftOut(xr2), pinned), of: xr2, want: []reason.Code{reason.ConnectionSecretMissing}},
		"Ownerless":        {reason: "Crossplane may be about to drop the MR from its list.", snapshot: snapshot(listing, ownerless), of: bucket, want: []reason.Code{reason.Uncontrolled}},
		"OwnerlessDropped": {reason: "The MR was deleted on purpose.", snapshot: snapshot(x, ownerless), of: bucket, want: []reason.Code{reason.Orphaned}},
		"OwnerlessGone":    {reason: "The MR was deleted with its XR.", snapshot: snapshot(ownerless), of: bucket, want: []reason.Code{reason.Orphaned}},
		"OwnerlessUnread":  {reason: "The XR is unreadable, so it may still compose the MR.", snapshot: unread, of: bucket, want: []reason.Code{reason.Uncontrolled}},
		"OwnerlessPublishing": {
			reason: "The risks also name everything else that is missing.", of: bucket, want: []reason.Code{reason.Uncontrolled, reason.ConnectionSecretMissing},
			snapshot: snapshot(listing, heldFor(publishing, hold.Hold{Owner: &owner, Secret: true})),
		},
		"Unreadable": {reason: "The settings to return can't be read.", snapshot: snapshot(xptest.With(x, xptest.Annotated(hold.Annotation, "?"))), of: x, refused: reason.Malformed},
		"Gone":       {reason: "There is no hold to lift.", snapshot: snapshot(), of: x, refused: reason.NotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := AssessForce(tc.snapshot, xp.RefTo(tc.of))
			xptest.Same(t, tc.want, codesOf(f.Risks), tc.reason+"\n"+reason.Join(f.Risks))
			if f.Refused.Code != tc.refused || (f.Patch == nil) != (tc.refused != "") {
				t.Errorf("%s\nrefused: %q, patch %v", tc.reason, f.Refused, f.Patch)
			}
		})
	}
}

// codesOf returns the codes of messages.
func codesOf(messages []reason.Message) []reason.Code {
	var codes []reason.Code
	for _, m := range messages {
		codes = append(codes, m.Code)
	}

	return codes
}

// Who deletes an XR must know all that goes with it.
func TestForceNamesAllThatIsDeleted(t *testing.T) {
	var composed []*unstructured.Unstructured
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		composed = append(composed, xptest.MR(name))
	}
	x := heldFor(xptest.XR("x", xptest.Refs(composed...)), hold.Hold{})
	f := AssessForce(snapshot(xptest.With(x, xptest.Deleting())), xp.RefTo(x))
	if want := "all that it composes: Bucket a, Bucket b, Bucket c, Bucket d, Bucket e"; !strings.Contains(reason.Join(f.Risks), want) {
		t.Errorf("want %q in %q", want, reason.Join(f.Risks))
	}
}

// Lifting by force gives an object's own settings back exactly.
func TestForceReturnsSettings(t *testing.T) {
	schedule := xptest.Object("ops.crossplane.io/v1alpha1", "CronOperation", "", "c", xptest.Field("* * * * *", "spec", "schedule"))
	for _, own := range []*unstructured.Unstructured{
		xptest.XR("x"), xptest.XR("x", xptest.Policy("Manual")), xptest.XRV2("x", xptest.Policy("Automatic"), xptest.Annotated(xp.AnnotationPaused, "true")),
		xptest.Claim("o", xptest.Annotated(xp.AnnotationPaused, "false")), xptest.MR("b"), schedule,
		xptest.MR("b", xptest.Field([]any{"Observe", "Create"}, "spec", "managementPolicies")),
	} {
		h := hold.Hold{}
		if xp.IsManaged(own) && !xp.IsComposite(own) {
			h.Observes = true
		}
		u := heldFor(own, h)
		f := AssessForce(snapshot(u), xp.RefTo(own))
		xptest.Same(t, xptest.Stored(own), xptest.Stored(xptest.Merge(u, f.Patch)), xp.String(own))
		if again := AssessForce(snapshot(xptest.Merge(u, f.Patch)), xp.RefTo(own)); again.Patch != nil || !again.Refused.IsZero() {
			t.Errorf("%s: without a hold there is nothing to lift: %+v", xp.String(own), again)
		}
	}
}
