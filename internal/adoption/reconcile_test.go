package adoption

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// restored returns a Snapshot in which a restore has created every object.
func restored(objects ...*unstructured.Unstructured) *Snapshot {
	w := snapshot()
	for _, u := range objects {
		w.AddRestored(u)
	}

	return w
}

// A released object is done when Crossplane has reconciled it with its own settings.
func TestNextAfterTheRelease(t *testing.T) {
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	x := xptest.XR("x", xptest.ClaimedBy(claim), xptest.Generation(3))
	said := func(u *unstructured.Unstructured, generation int64, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.With(u, append(o, xptest.OfGeneration(generation))...)
	}
	paused := xptest.Annotated(xp.AnnotationPaused, "true")
	runPlans(t, x, map[string]planCase{
		"Reconciled": {reason: "Crossplane has reconciled the current generation.", want: "done", snapshot: restored(said(x, 3, xptest.Reconciled()))},
		"NotSince": {
			reason: "A condition from the time of the pin proves nothing about the user's own settings.", want: "moving; waits: XOrder x AwaitingCrossplane",
			snapshot: restored(said(x, 2, xptest.Reconciled())),
		},
		"OfTheBackup": {
			reason: "A restored status can have a generation that the new object has not reached.", want: "moving; waits: XOrder x AwaitingCrossplane",
			snapshot: restored(said(x, 7, xptest.Reconciled())),
		},
		"V1": {reason: "Crossplane v1 does not write observedGeneration.", want: "done", snapshot: restored(xptest.With(x, xptest.Reconciled()))},
		"StaleCache": {
			reason: "A stale cache can show Crossplane the pause again.", want: "moving; waits: XOrder x AwaitingCrossplane", snapshot: restored(said(x, 3, xptest.SeenPaused())),
		},
		"NeverSeen":         {reason: "An XR that Crossplane does not watch has no condition either.", want: "moving; waits: XOrder x AwaitingCrossplane", snapshot: restored(x)},
		"PausedByThePerson": {reason: "Crossplane never reconciles an XR that the user has paused.", want: "done", snapshot: restored(said(x, 2, xptest.SeenPaused(), paused))},
		"Deleted":           {reason: "A deletion by a user is not the restore's concern.", want: "done", snapshot: restored(said(x, 2, xptest.Reconciled(), xptest.Deleting()))},
		"Failing": {
			reason: "The XR is reconciled, as well as without a restore.", want: "done; remarks: XOrder x FailsAfterRelease", says: "no such function",
			snapshot: restored(said(x, 3, xptest.Synced("False", "ReconcileError", "no such function"))),
		},
		"NotRestored": {reason: "The plugin does not judge an XR that was live before the restore.", want: "done", snapshot: snapshot(said(x, 2, xptest.Reconciled()))},
		"RequestLeft": {
			reason: "A killed process can leave a request behind.", want: "take back the request for a reconcile XOrder x",
			snapshot: restored(said(xptest.Merge(x, hold.RequestReconcile(x, noon)), 3, xptest.Reconciled())),
		},
		"RequestOfThePerson": {
			reason: "A request of the user stays.", want: "done", snapshot: restored(said(x, 3, xptest.Reconciled(), xptest.Annotated(xp.AnnotationReconcileRequested, "2026"))),
		},
		"ClaimNotSince": {
			reason: "The claim of an XR that was never held needs a proof too.", want: "moving; waits: OrderClaim team-a/o AwaitingCrossplane",
			snapshot: restored(said(x, 3, xptest.Reconciled()), said(xptest.With(claim, xptest.Generation(2)), 1, xptest.SeenPaused())),
		},
		"ClaimAlone": {
			reason: "A claim without an XR in the backup waits for its own reconcile.", of: claim, want: "moving; waits: OrderClaim team-a/o AwaitingCrossplane",
			snapshot: restored(xptest.With(claim, xptest.SeenPaused())),
		},
		"ClaimAloneRequestLeft": {
			reason: "A killed process can leave a request behind.", of: claim, want: "take back the request for a reconcile OrderClaim team-a/o",
			snapshot: restored(xptest.With(xptest.Merge(claim, hold.RequestReconcile(claim, noon)), xptest.Reconciled())),
		},
	})
}

func TestPendingReconciles(t *testing.T) {
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	x := xptest.XR("x", xptest.ClaimedBy(claim))
	xr, released := held(x), xptest.With(claim, xptest.SeenPaused())
	h := xptest.Value(hold.Of(xr))
	free := xptest.Merge(xr, hold.Unverified.Unpause(xr, h, noon.Add(-time.Minute)))
	xptest.Run(t, map[string]xptest.Row[*Snapshot, map[string]string]{
		"Paused": {Reason: "Crossplane has written no condition since the restore.", In: snapshot(xr), Want: map[string]string{"XOrder x": restoredAt}},
		"Unpaused": {
			Reason: "Crossplane has written no condition since the unpause.", In: snapshot(xptest.With(free, xptest.SeenPaused())),
			Want: map[string]string{"XOrder x": "2026-01-02T11:59:00Z begun"},
		},
		"Claim": {
			Reason: "Crossplane has written no condition of the claim since the XR was unpaused.", In: snapshot(xptest.With(free, xptest.Reconciled()), released),
			Want: map[string]string{"OrderClaim team-a/o": "2026-01-02T11:59:00Z"},
		},
		"Spoken": {
			Reason: "The wait starts at the last condition.",
			In: snapshot(xptest.With(free, xptest.SeenPaused(), func(u *unstructured.Unstructured) {
				xptest.Field([]any{map[string]any{"type": "Synced", "reason": "ReconcilePaused", "lastTransitionTime": "2026-01-02T11:59:30Z"}}, "status", "conditions")(u)
			})),
			Want: map[string]string{"XOrder x": "2026-01-02T11:59:30Z begun"},
		},
		"Future": {
			Reason: "A user can forge a future time in the mark, which must not suppress the request.",
			In:     snapshot(xptest.Merge(xr, hold.Unverified.Unpause(xr, &hold.Hold{Since: restoredAt}, noon.Add(time.Hour)))), Want: map[string]string{"XOrder x": restoredAt + " begun"},
		},
		"CannotReconcile": {
			Reason: "Crossplane retries a failed reconcile without a request.", In: snapshot(xptest.With(free, xptest.Synced("False", "ReconcileError", "no function"))),
			Want: map[string]string{},
		},
	}, func(w *Snapshot) map[string]string {
		plan := Next(w, xp.RefTo(x))
		got := map[string]string{}
		for _, s := range plan.Pending {
			got[s.String()] = s.Since.Format(time.RFC3339)
			if s.Begun {
				got[s.String()] += " begun"
			}
			if !slices.Contains(plan.Waiting, s.Waiting) {
				t.Errorf("%q is missing in the causes: %q", s.Waiting, plan.Waiting)
			}
		}

		return got
	})
}

func TestPendingReconcilesOfProviders(t *testing.T) {
	mr := heldFor(xptest.MR("b"), hold.Hold{Observes: true, Since: restoredAt})
	want := []PendingReconcile{{Ref: xp.RefTo(mr), UID: mr.GetUID(), Provider: true, Since: xp.ParseTime(restoredAt), Waiting: reason.AwaitingPauseReport.Messagef("Bucket b: its provider has not reported yet that it is paused")}}
	xptest.Same(t, want, Next(snapshot(mr), xp.RefTo(mr)).Pending, "the plan must wait for the provider's reconcile since the restore")
	h := hold.Hold{Observes: true, Since: restoredAt, Identity: xp.CreatePending}
	if silent := Next(snapshot(heldFor(unnamed(xptest.Annotated(xp.AnnotationCreatePending, restoredAt)), h)), xp.RefTo(mr)).Pending; len(silent) > 0 {
		t.Errorf("an MR that waits for the user must not wait for its provider: %v", silent)
	}
}

// An MR of an inactive kind waits for a user to activate the kind. Installing the provider, which
// is there, does not help.
func TestNextWaitsForActivation(t *testing.T) {
	x := xptest.XR("x")
	bucket := func(ago time.Duration) *unstructured.Unstructured {
		return xptest.MR("b", xptest.ControlledBy(x), xptest.Created(noon.Add(-ago).UTC().Format(time.RFC3339)))
	}
	paused := held(xptest.XR("x", xptest.Refs(bucket(0))), xptest.SeenPaused())
	on := func(active, served bool, mrs ...*unstructured.Unstructured) *Snapshot {
		w := snapshot(append(mrs, paused, xptest.Revision(xptest.RevisionName, x))...)
		if !served {
			w.AddUnserved(schema.GroupKind{Group: "cloud.example.org", Kind: "Bucket"})
		}
		w.Definitions(func(gk schema.GroupKind) string {
			if active || gk.String() != "Bucket.cloud.example.org" {
				return ""
			}

			return "buckets.cloud.example.org"
		})

		return w
	}
	old, observed := bucket(time.Minute), heldFor(bucket(time.Minute), hold.Hold{Observes: true}, xptest.ManagementPolicies(`["Observe"]`))
	const inactive, late = "0/1; waits: Bucket b KindNotActive", "0/1; moving; waits: Bucket b AwaitingProvider"
	runPlans(t, x, map[string]planCase{
		"NotServed":            {reason: "A restore left the MR out and must restore it again.", want: inactive, says: "Then restore again", snapshot: on(false, false)},
		"NotServedOtherwise":   {reason: "The MR was not left out, so its provider is missing.", want: "0/1; waits: Bucket b KindNotServed", snapshot: on(true, false)},
		"NotObserved":          {reason: "The CRD comes from the backup, and no provider runs for it.", want: inactive, says: "its provider does not reconcile it", snapshot: on(false, true, old)},
		"NotObservedOtherwise": {reason: "The kind is active, so its provider is only late.", want: late, snapshot: on(true, true, old)},
		"JustCreated":          {reason: "A provider needs a moment for a new MR.", want: late, snapshot: on(false, true, bucket(time.Second))},
		"Alone": {
			reason: "An MR without an XR waits in the same way.", of: old, want: "waits: Bucket b KindNotActive",
			snapshot: on(false, true, xptest.With(observed, xptest.Without("metadata", "ownerReferences"))),
		},
		"ObservedFirst": {reason: "An observed MR of an XR waits in the same way.", want: inactive, snapshot: on(false, true, observed)},
	})
}
