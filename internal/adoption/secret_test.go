package adoption

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const (
	stepControl      = "make XOrder x its controller again"
	stepClaimControl = "make OrderClaim team-a/o its controller again"
)

// A connection secret from before the restore loses its controller when that is deleted, until the
// garbage collector deletes it. Crossplane publishes in it again only if the data differ.
func TestNextTakesConnectionSecrets(t *testing.T) {
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")), xptest.PublishesTo("", "s"))
	xr := xptest.XR("x", xptest.PublishesTo("infra", "s"))
	paused := held(xr, xptest.SeenPaused())
	revision := xptest.Revision(xptest.RevisionName, xr)
	secret := xptest.Secret("s", xptest.In("infra"))
	adopted := held(xptest.XR("x", xptest.ClaimedBy(claim)), unpaused(), xptest.Reconciled())
	ready := held(claim, xptest.SeenPaused())
	take, unpause := outcome{Step: stepControl, Target: "Secret infra/s"}, outcome{Step: stepUnpause, Target: "XOrder x"}
	runPlans(t, map[string]planCase{
		"Uncontrolled": {reason: "The XR must control the Secret before it publishes.", snapshot: snapshot(paused, revision, secret), ref: xp.RefTo(xr), want: take},
		"Controlled": {
			reason: "The XR controls the Secret.", snapshot: snapshot(paused, revision, xptest.With(secret, xptest.ControlledBy(xr))), ref: xp.RefTo(xr), want: unpause,
		},
		"OfAnother": {
			reason: "Another controller keeps its Secret, and Crossplane reports the conflict itself.", ref: xp.RefTo(xr), want: unpause,
			snapshot: snapshot(paused, revision, xptest.With(secret, xptest.ControlledBy(xptest.XR("y")))),
		},
		"Opaque": {
			reason: "Crossplane does not own a Secret that it did not publish.", ref: xp.RefTo(xr), want: unpause,
			snapshot: snapshot(paused, revision, xptest.With(secret, xptest.Field("Opaque", "type"))),
		},
		"Deleting": {reason: "The Secret is being deleted.", snapshot: snapshot(paused, revision, xptest.With(secret, xptest.Deleting())), ref: xp.RefTo(xr), want: unpause},
		"Absent":   {reason: "Crossplane publishes the Secret again.", snapshot: snapshot(paused, revision), ref: xp.RefTo(xr), want: unpause},
		"NotYet": {
			reason: "The other missing objects come first.", snapshot: snapshot(paused, secret), ref: xp.RefTo(xr),
			want: outcome{Waiting: []string{"CompositionRevision orders-1a2b3c: it is not in the cluster. " +
				"Restore it, or set another compositionRevisionRef on XOrder x" + howToConvert}},
		},
		"Claim": {
			reason: "The claim must control its own Secret too.", snapshot: snapshot(adopted, ready, xptest.Secret("s")), ref: xp.RefTo(xr),
			want: outcome{Step: stepClaimControl, Target: "Secret team-a/s"},
		},
		"ClaimControls": {
			reason: "The claim is released after its Secret.", snapshot: snapshot(adopted, ready, xptest.Secret("s", xptest.ControlledBy(claim))), ref: xp.RefTo(xr),
			want: outcome{Step: stepClaim, Target: "OrderClaim team-a/o"},
		},
		"ClaimReaches": {
			reason: "A claim publishes only in its own namespace, whatever its spec names.", ref: xp.RefTo(xr), want: outcome{Step: stepClaim, Target: "OrderClaim team-a/o"},
			snapshot: snapshot(adopted, held(xptest.With(claim, xptest.PublishesTo("infra", "s")), xptest.SeenPaused()), secret),
		},
	})
}

func TestControlKeepsOtherOwners(t *testing.T) {
	xr := xptest.XR("x")
	helper := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "helper", UID: "h"}
	s := xptest.Secret("s", xptest.OwnedBy(helper), xptest.Version("7"))
	patch := controllerRefPatch(xr, s)
	got := xptest.Merge(s, patch)
	want := []metav1.OwnerReference{helper, {
		APIVersion: xptest.LegacyVersion, Kind: xptest.LegacyKind, Name: "x", UID: xr.GetUID(), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}
	if diff := cmp.Diff(want, got.GetOwnerReferences()); diff != "" || !xp.Controls(xr, got) {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if v := got.GetResourceVersion(); v != "7" || patch["metadata"].(map[string]any)["resourceVersion"] != "7" { //nolint:forcetypeassert // The test fails.
		t.Errorf("the API server must refuse the patch of a changed Secret; got %v", patch)
	}
}

// An owner reference to the XR that does not control is replaced: the API server refuses two with
// one UID.
func TestControlReplacesItsOwnReference(t *testing.T) {
	xr := xptest.XR("x")
	s := xptest.Secret("s", xptest.OwnedBy(metav1.OwnerReference{APIVersion: xptest.LegacyVersion, Kind: xptest.LegacyKind, Name: "x", UID: xr.GetUID()}))
	got := xptest.Merge(s, controllerRefPatch(xr, s))
	if refs := got.GetOwnerReferences(); len(refs) != 1 || !xp.Controls(xr, got) {
		t.Errorf("got %v", refs)
	}
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
		if diff := cmp.Diff(tc.want, tc.snapshot.Needs(tc.from)); diff != "" {
			t.Errorf("%s: only a held object needs its Secret: -want, +got:\n%s", name, diff)
		}
	}
}
