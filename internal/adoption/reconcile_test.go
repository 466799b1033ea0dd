package adoption

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	wait := func(what string) outcome {
		return outcome{Moving: true, Waiting: []string{what + ": it is adopted, and Crossplane has not reconciled it with its own settings yet [AwaitingCrossplane]"}}
	}
	paused := xptest.Annotated(xp.AnnotationPaused, "true")
	const stepTakeBack = "take back the request for a reconcile"
	runPlans(t, map[string]planCase{
		"Reconciled": {
			reason:   "Crossplane has reconciled the current generation.",
			snapshot: restored(said(x, 3, xptest.Reconciled())), ref: xp.RefTo(x), want: outcome{Done: true},
		},
		"NotSince": {
			reason:   "A condition from the time of the pin proves nothing about the user's own settings.",
			snapshot: restored(said(x, 2, xptest.Reconciled())), ref: xp.RefTo(x), want: wait("XOrder x"),
		},
		"OfTheBackup": {
			reason:   "A restored status can have a generation that the new object has not reached.",
			snapshot: restored(said(x, 7, xptest.Reconciled())), ref: xp.RefTo(x), want: wait("XOrder x"),
		},
		"V1": {
			reason:   "Crossplane v1 does not write observedGeneration.",
			snapshot: restored(xptest.With(x, xptest.Reconciled())), ref: xp.RefTo(x), want: outcome{Done: true},
		},
		"StaleCache": {
			reason:   "A stale cache can show Crossplane the pause again.",
			snapshot: restored(said(x, 3, xptest.SeenPaused())), ref: xp.RefTo(x), want: wait("XOrder x"),
		},
		"NeverSeen": {
			reason:   "An XR that Crossplane does not watch has no condition either.",
			snapshot: restored(x), ref: xp.RefTo(x), want: wait("XOrder x"),
		},
		"PausedByThePerson": {
			reason:   "Crossplane never reconciles an XR that the user has paused.",
			snapshot: restored(said(x, 2, xptest.SeenPaused(), paused)), ref: xp.RefTo(x), want: outcome{Done: true},
		},
		"Deleted": {
			reason:   "A deletion by a user is not the restore's concern.",
			snapshot: restored(said(x, 2, xptest.Reconciled(), xptest.Deleting())), ref: xp.RefTo(x), want: outcome{Done: true},
		},
		"Failing": {
			reason:   "The XR is reconciled, as well as without a restore.",
			snapshot: restored(said(x, 3, xptest.Synced("False", "ReconcileError", "no such function"))), ref: xp.RefTo(x),
			want: outcome{Done: true, Remarks: []string{
				"XOrder x: it is adopted, and Crossplane can't reconcile it with its own settings: no such function [FailsAfterRelease]",
			}},
		},
		"NotRestored": {
			reason:   "The plugin does not judge an XR that was live before the restore.",
			snapshot: snapshot(said(x, 2, xptest.Reconciled())), ref: xp.RefTo(x), want: outcome{Done: true},
		},
		"RequestLeft": {
			reason:   "A killed process can leave a request behind.",
			snapshot: restored(said(x, 3, xptest.Reconciled(), xptest.Annotated(xp.AnnotationReconcileRequested, "2026"+requestMarker))), ref: xp.RefTo(x),
			want: outcome{Step: stepTakeBack, Target: "XOrder x"},
		},
		"RequestOfThePerson": {
			reason:   "A request of the user stays.",
			snapshot: restored(said(x, 3, xptest.Reconciled(), xptest.Annotated(xp.AnnotationReconcileRequested, "2026"))), ref: xp.RefTo(x),
			want: outcome{Done: true},
		},
		"ClaimNotSince": {
			reason:   "The claim of an XR that was never held needs a proof too.",
			snapshot: restored(said(x, 3, xptest.Reconciled()), said(xptest.With(claim, xptest.Generation(2)), 1, xptest.SeenPaused())), ref: xp.RefTo(x),
			want: wait("OrderClaim team-a/o"),
		},
		"ClaimAlone": {
			reason:   "A claim without an XR in the backup waits for its own reconcile.",
			snapshot: restored(xptest.With(claim, xptest.SeenPaused())), ref: xp.RefTo(claim), want: wait("OrderClaim team-a/o"),
		},
		"ClaimAloneReconciled": {
			reason:   "A claim that had no XR in the backup is done when it has been reconciled.",
			snapshot: restored(xptest.With(claim, xptest.Reconciled())), ref: xp.RefTo(claim), want: outcome{Done: true},
		},
		"ClaimAloneRequestLeft": {
			reason:   "A killed process can leave a request behind.",
			snapshot: restored(xptest.With(claim, xptest.Reconciled(), xptest.Annotated(annotationRequested, "2026"))), ref: xp.RefTo(claim),
			want: outcome{Step: stepTakeBack, Target: "OrderClaim team-a/o"},
		},
	})
}

func TestPendingReconciles(t *testing.T) {
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	x := xptest.XR("x", xptest.ClaimedBy(claim))
	xr, released := held(x), xptest.With(claim, xptest.SeenPaused())
	h, err := HoldOf(xr)
	if err != nil {
		t.Fatal(err)
	}
	free := xptest.Merge(xr, Unverified.unpause(xr, h, noon.Add(-time.Minute)))
	cases := map[string]struct {
		reason   string
		snapshot *Snapshot
		want     map[string]string
	}{
		"Paused": {
			reason: "Crossplane has written no condition since the restore.", snapshot: snapshot(xr),
			want: map[string]string{"XOrder x": restoredAt},
		},
		"Unpaused": {
			reason: "Crossplane has written no condition since the unpause.", snapshot: snapshot(xptest.With(free, xptest.SeenPaused())),
			want: map[string]string{"XOrder x": "2026-01-02T11:59:00Z"},
		},
		"Claim": {
			reason: "Crossplane has written no condition of the claim since the XR was unpaused.", snapshot: snapshot(xptest.With(free, xptest.Reconciled()), released),
			want: map[string]string{"OrderClaim team-a/o": "2026-01-02T11:59:00Z"},
		},
		"Spoken": {
			reason: "The wait starts at the last condition.",
			snapshot: snapshot(xptest.With(free, xptest.SeenPaused(), func(u *unstructured.Unstructured) {
				xptest.Field([]any{map[string]any{"type": "Synced", "reason": "ReconcilePaused", "lastTransitionTime": "2026-01-02T11:59:30Z"}}, "status", "conditions")(u)
			})),
			want: map[string]string{"XOrder x": "2026-01-02T11:59:30Z"},
		},
		"Future": {
			reason:   "A user can forge a future time in the mark, which must not suppress the request.",
			snapshot: snapshot(xptest.Merge(xr, Unverified.unpause(xr, &Hold{Since: restoredAt}, noon.Add(time.Hour)))),
			want:     map[string]string{"XOrder x": restoredAt},
		},
		"CannotReconcile": {
			reason:   "Crossplane retries a failed reconcile without a request.",
			snapshot: snapshot(xptest.With(free, xptest.Synced("False", "ReconcileError", "no function"))), want: map[string]string{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := Next(tc.snapshot, xp.RefTo(x))
			got := map[string]string{}
			for _, s := range plan.Pending {
				got[s.String()] = s.Since.Format(time.RFC3339)
				if !slices.Contains(plan.Waiting, s.Waiting) {
					t.Errorf("%q is missing in the causes: %q", s.Waiting, plan.Waiting)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRequestReconcile(t *testing.T) {
	const now = "2026-01-02T12:00:00Z"
	request := func(value string) xptest.Option { return xptest.Annotated(xp.AnnotationReconcileRequested, value) }
	cases := map[string]struct {
		reason string
		own    *unstructured.Unstructured
		key    string
		want   string
	}{
		"XR":    {reason: "Crossplane v2.3 records that it has read the request.", own: xptest.XR("x"), key: xp.AnnotationReconcileRequested, want: now + requestMarker},
		"OfXR":  {reason: "The user's own request is kept.", own: xptest.XR("x", request("once")), key: xp.AnnotationReconcileRequested, want: now + requestMarker + "once"},
		"Claim": {reason: "A claim's request must not overwrite the request of its XR.", own: xptest.Claim("o", xptest.OfXR(xptest.XR("x"))), key: annotationRequested, want: now},
		"OfClaim": {
			reason: "The user's own request does not change.", own: xptest.Claim("o", xptest.OfXR(xptest.XR("x")), request("once")), key: annotationRequested, want: now,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := xptest.Merge(tc.own, RequestReconcile(tc.own, noon))
			if got := asked.GetAnnotations()[tc.key]; got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
			again := xptest.Merge(asked, RequestReconcile(asked, noon.Add(time.Minute)))
			if again.GetAnnotations()[tc.key] == tc.want {
				t.Errorf("%s\na second request must change the annotation", tc.reason)
			}
			patch, left := ClearReconcileRequest(again)
			if !left {
				t.Fatalf("%s\nClearReconcileRequest must find the request: %v", tc.reason, again.GetAnnotations())
			}
			after := xptest.Merge(again, patch)
			if diff := cmp.Diff(asStored(tc.own), asStored(after)); diff != "" {
				t.Errorf("%s\n-own, +cleared:\n%s", tc.reason, diff)
			}
			if _, left := ClearReconcileRequest(after); left {
				t.Errorf("%s\na second clear must find no request", tc.reason)
			}
			// A backup can be taken in between.
			h, err := Put(again, Hold{Restore: restoreName, Since: restoredAt})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.own.GetAnnotations()[tc.key], again.GetAnnotations()[tc.key]); diff != "" {
				t.Errorf("%s\nthe request must not survive a manual removal of the hold: -own, +restored:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(asStored(tc.own), asStored(xptest.Merge(again, releasePatch(again, h)))); diff != "" {
				t.Errorf("%s\n-own, +restored and released:\n%s", tc.reason, diff)
			}
		})
	}
}

// An object that was unpaused waits for Crossplane only.
func TestPendingReconcileBegun(t *testing.T) {
	x := held(xptest.XR("x"))
	h, err := HoldOf(x)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		of     *unstructured.Unstructured
		want   []bool
	}{
		"Paused":   {reason: "Crossplane has not seen the pause yet.", of: x, want: []bool{false}},
		"Unpaused": {reason: "The XR was unpaused.", of: xptest.Merge(x, Unverified.unpause(x, h, noon)), want: []bool{true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []bool
			for _, s := range Next(snapshot(tc.of), xp.RefTo(tc.of)).Pending {
				got = append(got, s.Begun)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPendingReconcilesOfProviders(t *testing.T) {
	mr := heldFor(xptest.MR("b"), Hold{Observes: true, Since: restoredAt})
	want := []PendingReconcile{{Ref: xp.RefTo(mr), UID: mr.GetUID(), Provider: true, Since: parseTime(restoredAt), Waiting: reason.AwaitingPauseReport.Messagef("Bucket b: its provider has not reported yet that it is paused")}}
	if diff := cmp.Diff(want, Next(snapshot(mr), xp.RefTo(mr)).Pending); diff != "" {
		t.Errorf("the plan must wait for the provider's reconcile since the restore: -want, +got:\n%s", diff)
	}
	h := Hold{Observes: true, Since: restoredAt, Identity: xp.CreatePending}
	if silent := Next(snapshot(heldFor(unnamed(xptest.Annotated(xp.AnnotationCreatePending, restoredAt)), h)), xp.RefTo(mr)).Pending; len(silent) > 0 {
		t.Errorf("an MR that waits for the user must not wait for its provider: %v", silent)
	}
}

// An MR of an inactive kind waits for a user to activate the kind. Installing the provider, which
// is there, does not help.
func TestNextWaitsForActivation(t *testing.T) {
	const mrd = "buckets.cloud.example.org"
	const cure = "ManagedResourceDefinition " + mrd + ` is not active; activate it: add it to spec.activate of a ManagedResourceActivationPolicy, or run "kubectl patch ` +
		`managedresourcedefinition --type=merge -p '{"spec":{"state":"Active"}}' ` + mrd + `", which can't be undone`
	x := xptest.XR("x")
	created := func(ago time.Duration) xptest.Option {
		return xptest.Field(noon.Add(-ago).UTC().Format(time.RFC3339), "metadata", "creationTimestamp")
	}
	bucket := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.MR("b", append([]xptest.Option{xptest.ControlledBy(x), created(time.Minute)}, o...)...)
	}
	paused := held(xptest.XR("x", xptest.Refs(bucket())), xptest.SeenPaused())
	on := func(served bool, mrs ...*unstructured.Unstructured) *Snapshot {
		w := snapshot(append(mrs, paused, xptest.Revision(xptest.RevisionName, x))...)
		if !served {
			w.AddUnserved(schema.GroupKind{Group: "cloud.example.org", Kind: "Bucket"})
		}

		return w
	}
	observed := func(o ...xptest.Option) *unstructured.Unstructured {
		return heldFor(bucket(), Hold{Observes: true}, append(o, policies(`["Observe"]`))...)
	}
	const unseen = "Bucket b: its provider has not observed it yet [AwaitingProvider]"
	cases := map[string]struct {
		reason   string
		snapshot *Snapshot
		ref      xp.Ref
		active   bool
		want     string
		moving   bool
	}{
		"NotServed": {
			reason: "A restore left the MR out and must restore it again.", snapshot: on(false),
			want: "Bucket b: its kind is not served, because its " + cure + ". Then restore again [KindNotActive]",
		},
		"NotServedOtherwise": {
			reason: "The MR was not left out, so its provider is missing.", snapshot: on(false), active: true,
			want: "Bucket b: its kind is not served, so no restore can bring it yet. Install the provider or XRD of Bucket.cloud.example.org, then restore again [KindNotServed]",
		},
		"NotObserved": {
			reason: "The CRD comes from the backup, and no provider runs for it.", snapshot: on(true, bucket()), want: "Bucket b: its provider does not reconcile it, because its " + cure + " [KindNotActive]",
		},
		"NotObservedOtherwise": {reason: "The kind is active, so its provider is only late.", snapshot: on(true, bucket()), active: true, want: unseen, moving: true},
		"JustCreated":          {reason: "A provider needs a moment for a new MR.", snapshot: on(true, bucket(created(time.Second))), want: unseen, moving: true},
		"Alone": {
			reason: "An MR without an XR waits in the same way.", snapshot: snapshot(observed(xptest.Without("metadata", "ownerReferences"))), ref: xp.RefTo(bucket()),
			want: "Bucket b: its provider does not reconcile it, because its " + cure + " [KindNotActive]",
		},
		"ObservedFirst": {
			reason: "An observed MR of an XR waits in the same way.", snapshot: on(true, observed()),
			want: "Bucket b: its provider does not reconcile it, because its " + cure + " [KindNotActive]",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.snapshot.Definitions(func(gk schema.GroupKind) string {
				if tc.active || gk.String() != "Bucket.cloud.example.org" {
					return ""
				}

				return mrd
			})
			if tc.ref == (xp.Ref{}) {
				tc.ref = xp.RefTo(x)
			}
			plan := Next(tc.snapshot, tc.ref)
			if got := strings.Join(reason.Strings(plan.Waiting), "\n"); got != tc.want || plan.Moving != tc.moving || !plan.Failed.IsZero() {
				t.Errorf("%s\ngot %q, moving %v, failed %q\nwant %q, moving %v", tc.reason, got, plan.Moving, plan.Failed, tc.want, tc.moving)
			}
		})
	}
}
