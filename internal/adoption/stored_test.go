package adoption

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A secret store refuses an object whose UID is not on the Secret, and a restored object has a new
// UID.
func TestNextWritesUIDsOnWhatIsInSecretStores(t *testing.T) {
	stored := &Stored{Namespace: "infra", Name: "s", UID: "old"}
	left := &Stored{Namespace: "infra", Name: "s", UID: "old", By: bringSecret}
	xr, mr := xptest.XR("x"), xptest.MR("b")
	claim := xptest.Claim("o", xptest.OfXR(xr))
	claimed := xptest.XR("x", xptest.ClaimedBy(claim))
	revision := xptest.Revision(xptest.RevisionName, xr)
	with := func(u *unstructured.Unstructured, s *Stored, o ...xptest.Option) *unstructured.Unstructured {
		return heldFor(u, Hold{Stored: s}, append([]xptest.Option{xptest.SeenPaused()}, o...)...)
	}
	old := xptest.Secret("s", xptest.In("infra"), xptest.Labelled(xp.LabelOwnerUID, "old"))
	unpauses := outcome{Step: stepUnpause, Target: "XOrder x"}
	step := func(of string) string { return "write the UID of " + of + " on it, which may publish in it again" }
	const others = `: its connection Secret infra/s belongs to another object: its label secret.crossplane.io/owner-uid is ` +
		`"other", so the secret store refuses this one; if the Secret is its own, set the label to `
	const unread = ": its connection Secret infra/s needs its current UID, and can't be read: forbidden; run this with " +
		"the right to list Secrets [ConnectionSecretMissing]"
	other := xptest.With(old, xptest.Labelled(xp.LabelOwnerUID, "other"))
	ofClaim := &Stored{Namespace: "team-a", Name: "s", UID: "old"}
	runPlans(t, map[string]planCase{
		"XR": {
			reason: "The Secret has the UID of the backup.", snapshot: snapshot(with(xr, stored), revision, old), ref: xp.RefTo(xr),
			want: outcome{Step: step("XOrder x"), Target: "Secret infra/s"},
		},
		"XRWrites": {reason: "The UID is right, so the XR may publish.", snapshot: snapshot(with(xr, stored), revision, xptest.With(old, xptest.StoredBy(xr))), ref: xp.RefTo(xr), want: unpauses},
		"XRMissing": {
			reason: "Without its Secret the XR would publish another one.", snapshot: snapshot(with(xr, stored), revision), ref: xp.RefTo(xr),
			want: outcome{Waiting: []string{"XOrder x: " + secretMissing}},
		},
		"XRLeftOut": {
			reason: "The message explains how to restore the Secret.", snapshot: snapshot(with(xr, left), revision), ref: xp.RefTo(xr),
			want: outcome{Waiting: []string{"XOrder x: " + secretLeftOut}},
		},
		"XRAnothers": {
			reason: "The plugin never takes another object's Secret.", snapshot: snapshot(with(xr, stored), revision, other), ref: xp.RefTo(xr),
			want: outcome{Waiting: []string{"XOrder x" + others + string(xr.GetUID()) + " [ConnectionSecretForeign]"}},
		},
		"XRUnread": {
			reason: "The plugin can't write a Secret that it can't read.", snapshot: unreadable(with(xr, stored), revision), ref: xp.RefTo(xr),
			want: outcome{Waiting: []string{"XOrder x" + unread}},
		},
		"XROwnPause": {
			reason: "Only the user ends their own pause, and the XR must be able to publish then.", ref: xp.RefTo(xr),
			snapshot: snapshot(with(xptest.With(xr, xptest.Annotated(xp.AnnotationPaused, "true")), stored), revision, old),
			want:     outcome{Step: step("XOrder x"), Target: "Secret infra/s"},
		},
		"MR": {
			reason: "A provider needs the UID of its MR.", snapshot: snapshot(with(mr, stored), old), ref: xp.RefTo(mr),
			want: outcome{Step: step("Bucket b"), Target: "Secret infra/s", Moving: true},
		},
		"MRWrites": {
			reason: "The UID is right, so the provider may publish.", snapshot: snapshot(with(mr, stored), xptest.With(old, xptest.StoredBy(mr))), ref: xp.RefTo(mr),
			want: outcome{Step: stepLetGo, Target: "Bucket b", Moving: true},
		},
		"MRMissing": {
			reason: "Without its Secret the provider would publish another one.", snapshot: snapshot(with(mr, stored)), ref: xp.RefTo(mr),
			want: outcome{Waiting: []string{"Bucket b: " + secretMissing}},
		},
		"Claim": {
			reason: "A claim needs its UID on its own Secret.", ref: xp.RefTo(claimed), want: outcome{Step: step("OrderClaim team-a/o"), Target: "Secret team-a/s"},
			snapshot: snapshot(held(claimed, unpaused(), xptest.Reconciled()), with(claim, ofClaim), xptest.With(old, xptest.In("team-a"))),
		},
		"ClaimMissing": {
			reason: "Crossplane copies the claim's Secret from the XR's.", ref: xp.RefTo(claimed), want: outcome{Step: stepClaim, Target: "OrderClaim team-a/o"},
			snapshot: snapshot(held(claimed, unpaused(), xptest.Reconciled()), with(claim, ofClaim)),
		},
	})
	plan := Next(snapshot(with(xr, stored), revision, xptest.With(old, xptest.Version("7"))), xp.RefTo(xr))
	if got := xptest.Merge(old, plan.Patch); !xp.OwnsStored(xr, got) || got.GetResourceVersion() != "7" {
		t.Errorf("the patch must write the XR's UID and the Secret's resourceVersion; got %v", plan.Patch)
	}
	if diff := cmp.Diff(refs(old), snapshot(with(mr, stored)).Inputs()); diff != "" {
		t.Errorf("the inputs must name the Secret: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(refs(claim, old, xr), snapshot(with(claim, stored)).Needs(refs(claim))); diff != "" {
		t.Errorf("the needs must name the Secret: -want, +got:\n%s", diff)
	}
}
