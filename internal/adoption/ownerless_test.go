package adoption

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Crossplane makes an XR the controller only of what its Composition still wants.
func TestNextOfOwnerless(t *testing.T) {
	mr := xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, "external"), xptest.Labelled(xp.LabelComposite, "x"), xptest.Annotated(xp.AnnotationResourceName, "bucket"))
	xr := xptest.XR("x", xptest.Refs(mr), xptest.Reconciled())
	owner := xp.RefTo(xr)
	ownerless := heldFor(mr, hold.Hold{Reason: hold.ReasonOwnerless, Owner: &owner})
	taken := xptest.With(ownerless, xptest.ControlledBy(xr))
	waits := polledAt(ownerless, noon.Add(-otherXRPatience))
	outer := xptest.XR("outer", xptest.Refs(mr), xptest.Labelled(xp.LabelComposite, "x"), xptest.UID("outer"))
	nested := xptest.XR("nested", xptest.Labelled(xp.LabelComposite, "x"), xptest.Annotated(xp.AnnotationResourceName, "nested"), xptest.UID("nested"))
	below := heldFor(nested, hold.Hold{Reason: hold.ReasonOwnerless, Owner: &owner}, xptest.SeenPaused())
	revision := xptest.Revision(xptest.RevisionName, xr)
	paused := held(xr, xptest.SeenPaused())
	runPlans(t, mr, map[string]planCase{
		"Listed": {
			reason: "Crossplane may be about to drop the MR from its list.", want: "moving; waits: Bucket b AwaitingControl", says: "XOrder x lists it",
			snapshot: withRestored(snapshot(xr), ownerless),
		},
		"Taken": {reason: "The XR controls the MR, so the Composition still wants it.", want: "moving; release Bucket b", snapshot: withRestored(snapshot(xr), taken)},
		"Dropped": {
			reason: "The MR was being deleted in the backup.", want: "failed: Bucket b stays held NoLongerComposed", says: "XOrder x does not list it any more",
			snapshot: withRestored(snapshot(xptest.With(xr, xptest.Refs())), waits),
		},
		"Gone": {
			reason: "The XR of the MR was deleted too.", want: "failed: Bucket b stays held XRNotRestored", says: "is not in the cluster", snapshot: withRestored(snapshot(), waits),
		},
		"Going": {
			reason: "The XR of the MR is being deleted too.", want: "failed: Bucket b stays held XRNotRestored", says: "is being deleted",
			snapshot: withRestored(snapshot(xptest.With(xr, xptest.Deleting())), waits),
		},
		"FirstPoll": {reason: "Another XR can still take it.", want: "moving; note when it began to wait for an XR Bucket b", snapshot: withRestored(snapshot(), ownerless)},
		"Soon":      {reason: "Another XR can still take it.", want: "waits: Bucket b XRNotRestored", snapshot: withRestored(snapshot(), polledAt(ownerless, noon))},
		"TakenByAnother": {
			reason: "It was moved from a nested XR to the outer one.", want: "moving; release Bucket b",
			snapshot: withRestored(snapshot(outer), xptest.With(ownerless, xptest.ControlledBy(outer))),
		},
		"HeldSince": {
			reason: "An XR whose hold was put on again does not wait for Crossplane.", of: xr, want: "0/1; moving; make XOrder x its controller again Bucket b; waits: Bucket b Relinking",
			snapshot: withRestored(snapshot(revision), paused, ownerless),
		},
		"Outer": {
			reason: "A held XR that lists it takes what a missing one composed.", of: outer,
			want:     "0/1; moving; make XOrder outer its controller again Bucket b; waits: Bucket b Relinking",
			snapshot: withRestored(snapshot(revision), held(outer, xptest.SeenPaused()), ownerless),
		},
		"OfAnother": {
			reason: "A held XR takes nothing that its own XR lists, too.", of: outer, want: "0/1; moving; waits: Bucket b AwaitingControl",
			snapshot: withRestored(snapshot(revision), held(outer, xptest.SeenPaused()), ownerless, xr),
		},
		"Nested": {
			reason: "A nested XR without its XR would run without an owner, too.", of: nested, want: "failed: XOrder nested stays held XRNotRestored",
			snapshot: withRestored(snapshot(revision), polledAt(below, noon.Add(-otherXRPatience))),
		},
		"NestedTaken": {
			reason: "A second restore brings the XR of a nested one.", of: xr, want: "0/1; moving; make XOrder x its controller again XOrder nested; waits: XOrder nested Relinking",
			snapshot: withRestored(snapshot(revision), held(xptest.XR("x", xptest.Refs(nested)), xptest.SeenPaused()), below),
		},
		"NestedAdopted": {
			reason: "With its controller it goes on.", of: nested, want: "unpause XOrder nested", snapshot: withRestored(snapshot(revision, xr), xptest.With(below, xptest.ControlledBy(xr))),
		},
	})
}

// polledAt returns a held object whose first poll was at the time.
func polledAt(u *unstructured.Unstructured, at time.Time) *unstructured.Unstructured {
	h := xptest.Value(hold.Of(u))
	h.Polled = at.UTC().Format(time.RFC3339)

	return xptest.Merge(u, hold.Unverified.MarkPatch(u, h))
}

// When Crossplane reconciles an XR with another UID, a Composition that makes an external-name from
// it names another external resource.
func TestNextAwaitsUserForIdentityFromUID(t *testing.T) {
	x := xptest.XR("x")
	from := &hold.FromUID{XR: xp.RefTo(x), UID: "old", Fields: []string{"metadata.annotations[crossplane.io/external-name]"}}
	mr := xptest.MR("db", xptest.ControlledBy(x), xptest.Reconciled())
	named := heldFor(mr, hold.Hold{FromUID: from, Reason: hold.ReasonFromUID(from)})
	paused := held(xptest.XR("x", xptest.Refs(mr)), xptest.SeenPaused())
	released := xptest.XR("x", xptest.Refs(mr), xptest.Reconciled())
	revision := xptest.Revision(xptest.RevisionName, x)
	ownerless := heldFor(mr, hold.Hold{FromUID: from, Owner: new(xp.RefTo(x))})
	nested := heldFor(xptest.XR("n", xptest.ControlledBy(x)), hold.Hold{FromUID: from}, xptest.SeenPaused())
	runPlans(t, mr, map[string]planCase{
		"Held": {reason: "The XR must not be released by itself.", of: x, want: "0/1; waits: Bucket db UIDInIdentity", snapshot: snapshot(paused, named, revision)},
		"OfAnotherOperation": {
			reason: "Nor the MR alone: the mark is what the XR waits for. A user releases the XR.", want: "moving; waits: Bucket db UIDInIdentity",
			snapshot: snapshot(paused, named, revision),
		},
		"XRMissing": {reason: "The XR may still come.", want: "waits: Bucket db UIDInIdentity", snapshot: snapshot(named)},
		"Forced":    {reason: "A user has released the XR.", want: "moving; release Bucket db", snapshot: snapshot(released, named, revision)},
		"NeverHeld": {
			reason: "The XR was live and Crossplane reconciled it during the restore.", want: "moving; waits: Bucket db UIDInIdentity",
			snapshot: snapshot(released, xptest.With(ownerless, xptest.ControlledBy(x)), revision),
		},
		"Named": {
			reason: "Without a pipeline Crossplane composes another XR under another name.", of: nested, want: "waits: XOrder n UIDInIdentity", snapshot: snapshot(paused, nested, revision),
		},
	})
	t.Run("Force", func(t *testing.T) {
		for _, u := range []*unstructured.Unstructured{paused, named} {
			f := AssessForce(snapshot(paused, named, revision), xp.RefTo(u))
			if f.Patch == nil || !slices.ContainsFunc(f.Risks, func(m reason.Message) bool { return m.Code == reason.UIDInIdentity }) {
				t.Errorf("release --force must name the risk; got %+v", f)
			}
		}
	})
}

// A connection secret from before the restore loses its controller when that is deleted, until the
// garbage collector deletes it. Crossplane publishes in it again only if the data differ.
func TestNextTakesConnectionSecrets(t *testing.T) {
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")), xptest.PublishesTo("", "s"))
	xr := xptest.XR("x", xptest.PublishesTo("infra", "s"))
	paused := held(xr, xptest.SeenPaused())
	revision := xptest.Revision(xptest.RevisionName, xr)
	secret := xptest.Secret("s", xptest.In("infra"))
	adopted := held(xptest.XR("x", xptest.ClaimedBy(claim)), xptest.Unpaused(), xptest.Reconciled())
	ready := held(claim, xptest.SeenPaused())
	runPlans(t, xr, map[string]planCase{
		"Uncontrolled": {
			reason: "The XR must control the Secret before it publishes.", want: "make XOrder x its controller again Secret infra/s", snapshot: snapshot(paused, revision, secret),
		},
		"Controlled": {reason: "The XR controls the Secret.", want: "unpause XOrder x", snapshot: snapshot(paused, revision, xptest.With(secret, xptest.ControlledBy(xr)))},
		"OfAnother": {
			reason: "Another controller keeps its Secret, and Crossplane reports the conflict itself.", want: "unpause XOrder x",
			snapshot: snapshot(paused, revision, xptest.With(secret, xptest.ControlledBy(xptest.XR("y")))),
		},
		"Opaque": {
			reason: "Crossplane does not own a Secret that it did not publish.", want: "unpause XOrder x",
			snapshot: snapshot(paused, revision, xptest.With(secret, xptest.Field("Opaque", "type"))),
		},
		"Deleting": {reason: "The Secret is being deleted.", want: "unpause XOrder x", snapshot: snapshot(paused, revision, xptest.With(secret, xptest.Deleting()))},
		"Absent":   {reason: "Crossplane publishes the Secret again.", want: "unpause XOrder x", snapshot: snapshot(paused, revision)},
		"Claim": {
			reason: "The claim must control its own Secret too.", want: "make OrderClaim team-a/o its controller again Secret team-a/s",
			snapshot: snapshot(adopted, ready, xptest.Secret("s")),
		},
		"ClaimControls": {
			reason: "The claim is released after its Secret.", want: "release OrderClaim team-a/o", snapshot: snapshot(adopted, ready, xptest.Secret("s", xptest.ControlledBy(claim))),
		},
		"ClaimReaches": {
			reason: "A claim publishes only in its own namespace, whatever its spec names.", want: "release OrderClaim team-a/o",
			snapshot: snapshot(adopted, held(xptest.With(claim, xptest.PublishesTo("infra", "s")), xptest.SeenPaused()), secret),
		},
	})
}

func TestNeedsConnectionSecrets(t *testing.T) {
	claim := xptest.Claim("o", xptest.PublishesTo("", "s"))
	xr := xptest.XR("x", xptest.NeverComposed(), xptest.PublishesTo("infra", "s"))
	secret := xptest.Secret("s", xptest.In("infra"))
	for name, tc := range map[string]struct {
		snapshot   *Snapshot
		from, want []xp.Ref
	}{
		"XR":    {snapshot: snapshot(held(xr)), from: refs(xr), want: refs(xr, secret)},
		"Claim": {snapshot: snapshot(held(claim)), from: refs(claim), want: refs(claim, xptest.Secret("s"))},
		"Free":  {snapshot: snapshot(xr), from: refs(xr), want: refs(xr)},
		"MR":    {snapshot: snapshot(held(xptest.MR("b", xptest.PublishesTo("infra", "s")))), from: refs(xptest.MR("b")), want: refs(xptest.MR("b"))},
	} {
		xptest.Same(t, tc.want, tc.snapshot.Needs(tc.from), name+": only a held object needs its Secret")
	}
}
