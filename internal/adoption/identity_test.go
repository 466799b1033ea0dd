package adoption

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// heldFor returns u with a hold, then changed by the options.
func heldFor(u *unstructured.Unstructured, of hold.Hold, o ...xptest.Option) *unstructured.Unstructured {
	of.Restore, of.Since, of.Reported = restoreName, restoredAt, hold.ReportedOf(u)

	return withMark(u, of, o...)
}

func unnamed(o ...xptest.Option) *unstructured.Unstructured {
	return xptest.MR("b", append([]xptest.Option{xptest.Without("metadata", "annotations")}, o...)...)
}

// An MR that could create a second external resource is released when a user has set its
// external-name.
func TestNextForUnsafe(t *testing.T) {
	unknown, inFlight := hold.Hold{Identity: xp.Unknown}, hold.Hold{Identity: xp.CreatePending}
	recoverable := hold.Hold{Identity: xp.Recoverable, Status: []string{"atProvider"}}
	named := xptest.Annotated(xp.AnnotationExternalName, "vpc-1")
	pending := xptest.Annotated(xp.AnnotationCreatePending, restoredAt)
	status := xptest.JSON(`{"status":{"atProvider":{"id":"vpc-1"},"conditions":[{"type":"Synced","status":"True"}]}}`)
	seen := xptest.JSON(`{"status":{"conditions":[{"type":"Synced","status":"False","reason":"ReconcilePaused"}]}}`)
	mr := xptest.MR("b")
	ownPause := xptest.Annotated(xp.AnnotationPaused, "true")
	runPlans(t, mr, map[string]planCase{
		"Unknown":      {reason: "Reconciling this MR would create a second external resource.", want: "waits: Bucket b IdentityMissing", snapshot: snapshot(heldFor(unnamed(), unknown))},
		"UnknownNamed": {reason: "The user has set the external-name found in the cloud.", want: "moving; release Bucket b", snapshot: snapshot(heldFor(unnamed(), unknown, named))},
		"UnknownEmpty": {
			reason: "An empty external-name counts as none.", want: "waits: Bucket b IdentityMissing",
			snapshot: snapshot(heldFor(unnamed(), unknown, xptest.Annotated(xp.AnnotationExternalName, ""))),
		},
		"UnknownObserves": {
			reason: "An MR that only observes creates nothing.", want: "moving; release Bucket b", snapshot: snapshot(heldFor(unnamed(), unknown, xptest.ManagementPolicies(`["Observe"]`))),
		},
		"UnknownNoFinalizer": {
			reason: "A missing finalizer does not prove that the external resource was never created.", want: "waits: Bucket b IdentityMissing",
			snapshot: snapshot(heldFor(unnamed(), unknown, xptest.JSON(`{"metadata":{"annotations":{"crossplane.io/external-create-failed":"`+restoredAt+`"}}}`))),
		},
		"InFlight": {reason: "The external resource may have been created.", want: "waits: Bucket b CreatePending", snapshot: snapshot(heldFor(unnamed(pending), inFlight))},
		"InFlightNamed": {
			reason: "An external-name alone does not end the pending create for the provider.", want: "waits: Bucket b CreatePending",
			snapshot: snapshot(heldFor(unnamed(pending), inFlight, named)),
		},
		"InFlightOver": {
			reason: "The user found no external resource and removed the pending create in Crossplane's own way.", want: "moving; release Bucket b",
			snapshot: snapshot(heldFor(unnamed(), inFlight)),
		},
		"Recoverable": {
			reason: "The ID in the status may differ from the external-name.", want: "waits: Bucket b IdentityMissing", says: "vpc-1",
			snapshot: snapshot(heldFor(unnamed(), recoverable, status)),
		},
		"RecoverableNamedUnseen": {
			reason: "The status may be as old as the backup.", want: "moving; report paused Bucket b", snapshot: snapshot(heldFor(unnamed(), recoverable, named, status)),
		},
		"RecoverableNamed": {
			reason: "The provider has written a new condition since the restore.", want: "moving; release Bucket b", snapshot: snapshot(heldFor(unnamed(), recoverable, named, status, seen)),
		},
		"OwnPause": {
			reason: "The user's own pause comes back, so the plan does not wait for the provider.", want: "moving; release Bucket b",
			snapshot: snapshot(heldFor(unnamed(ownPause), recoverable, named, status)),
		},
		"Forged": {reason: "An unknown identity value counts as unknown.", want: "waits: Bucket b IdentityMissing", snapshot: snapshot(heldFor(unnamed(), hold.Hold{Identity: "theirs"}))},
	})
}

// An XR waits for an MR whose external-name a user must set, and continues when they have.
func TestNextForXRWithUnsafe(t *testing.T) {
	x := xptest.XR("x")
	mr := unnamed(xptest.ControlledBy(x))
	revision := xptest.Revision(xptest.RevisionName, x)
	xr := held(xptest.XR("x", xptest.Refs(mr)), xptest.SeenPaused())
	on := heldFor(mr, hold.Hold{Identity: xp.Unknown})
	named := xptest.Annotated(xp.AnnotationExternalName, "vpc-1")
	runPlans(t, x, map[string]planCase{
		"Held":  {reason: "Crossplane could create other resources from the state of this one.", want: "0/1; waits: Bucket b IdentityMissing", snapshot: snapshot(xr, on, revision)},
		"Named": {reason: "The XR's plan releases the MR.", want: "0/1; moving; release Bucket b; waits: Bucket b Releasing", snapshot: snapshot(xr, xptest.With(on, named), revision)},
		"OfAnother": {
			reason: "A plan never lifts the hold of another controller's MR.", want: "0/1; waits: Bucket b ControlledByAnother",
			snapshot: snapshot(xr, heldFor(unnamed(xptest.ControlledBy(xptest.XR("other"))), hold.Hold{Identity: xp.Unknown}, named), revision),
		},
		"Uncontrolled": {
			reason: "An MR without a controller has its own operation.", want: "0/1; moving; waits: Bucket b Releasing",
			snapshot: snapshot(xr, xptest.With(on, named, xptest.Without("metadata", "ownerReferences")), revision),
		},
	})
}

// With observe-first an MR must have been observed before its provider may change anything.
func TestNextObservesFirst(t *testing.T) {
	x := xptest.XR("x")
	mr := xptest.MR("b", xptest.ControlledBy(x), xptest.ManagementPolicies(`["Observe","Create","Update","Delete"]`))
	on := heldFor(mr, hold.Hold{Observes: true})
	off := xptest.With(on, xptest.Unpaused())
	revision := xptest.Revision(xptest.RevisionName, x)
	xr := held(xptest.XR("x", xptest.Refs(mr)), xptest.SeenPaused())
	broken := xptest.Synced("False", "ReconcileError", "external resource does not exist")
	runPlans(t, mr, map[string]planCase{
		"New": {reason: "The provider must see the pause first, or its next condition proves nothing.", want: "moving; waits: Bucket b AwaitingPauseReport", snapshot: snapshot(on)},
		"WrittenOver": {
			reason: "Velero may have overwritten the provider's condition with the status of the backup.", want: "moving; report paused Bucket b",
			snapshot: snapshot(heldFor(mr, hold.Hold{Observes: true, Status: []string{"conditions"}}, xptest.Reconciled())),
		},
		"Seen":    {reason: "The provider has seen the pause, so it may observe now.", want: "moving; observe Bucket b", snapshot: snapshot(xptest.With(on, xptest.SeenPaused()))},
		"Looking": {reason: "The provider has not observed yet.", want: "moving; waits: Bucket b AwaitingProvider", snapshot: snapshot(xptest.With(off, xptest.SeenPaused()))},
		"Found":   {reason: "The provider has observed the external resource once.", want: "moving; found Bucket b", snapshot: snapshot(xptest.With(off, xptest.Reconciled()))},
		"Settling": {
			reason: "The cloud may answer differently a moment later.", want: "moving; waits: Bucket b ObservesFirst",
			snapshot: snapshot(xptest.With(off, xptest.Reconciled(), settling(noon.Add(-settleTime/2), false))),
		},
		"Lost": {
			reason: "The external resource went missing, and the mark must record that.", want: "moving; unfound Bucket b",
			snapshot: snapshot(xptest.With(off, broken, settling(noon.Add(-settleTime), false))),
		},
		"StillLost": {
			reason: "The mark records this only once.", want: "waits: Bucket b ObservesFirst", snapshot: snapshot(xptest.With(off, broken, settling(noon.Add(-settleTime), true))),
		},
		"Back": {
			reason: "The plan does not poll a cloud that changes its answer.", want: "moving; waits: Bucket b ObservesFirst",
			snapshot: snapshot(xptest.With(off, xptest.Reconciled(), settling(noon.Add(-settleTime/2), true))),
		},
		"BackForAWhile": {
			reason: "The external resource is back, so the settle time starts again.", want: "moving; found Bucket b",
			snapshot: snapshot(xptest.With(off, xptest.Reconciled(), settling(noon.Add(-settleTime), true))),
		},
		"SecondLook": {
			reason: "A busy provider has not looked again yet, however long ago it was to.", want: "moving; waits: Bucket b AwaitingProvider",
			snapshot: snapshot(xptest.With(off, xptest.Reconciled(), xptest.OfGeneration(1), xptest.Generation(2), settling(noon.Add(-settleTime), false))),
		},
		"Observed": {
			reason: "The provider has observed the external resource.", want: "moving; release Bucket b",
			snapshot: snapshot(xptest.With(off, xptest.Reconciled(), settling(noon.Add(-settleTime), false))),
		},
		"Missing": {
			reason: "The provider would create the external resource again, so the user must decide.", want: "waits: Bucket b ObservesFirst", says: `["Observe","Create","Update","Delete"]`,
			snapshot: snapshot(xptest.With(off, broken)),
		},
		"MissingDefault": {
			reason: "Without its own policies an MR has all of them.", want: "waits: Bucket b ObservesFirst", says: `["*"]`,
			snapshot: snapshot(heldFor(xptest.MR("b"), hold.Hold{Observes: true}, xptest.Unpaused(), broken)),
		},
		"Decided": {reason: "The user has decided.", want: "moving; release Bucket b", snapshot: snapshot(xptest.With(off, broken, xptest.ManagementPolicies(`["*"]`)))},
		"NoPolicies": {
			reason: "The API server drops managementPolicies from such a kind, so its provider would do more than observe.", want: "waits: Bucket b NoManagementPolicies",
			snapshot: snapshot(xptest.With(on, xptest.Without("spec", "managementPolicies"), xptest.SeenPaused())),
		},
		"NoPoliciesUnpaused": {
			reason: "A user has released the MR already.", want: "moving; release Bucket b", snapshot: snapshot(xptest.With(off, xptest.Without("spec", "managementPolicies"))),
		},
		"OwnPause": {
			reason: "A paused MR of the user is not observed.", want: "moving; release Bucket b",
			snapshot: snapshot(heldFor(xptest.MR("b", xptest.Annotated(xp.AnnotationPaused, "true")), hold.Hold{Observes: true})),
		},
		"Unsafe": {
			reason: "The MR needs an external-name first.", want: "waits: Bucket b IdentityMissing",
			snapshot: snapshot(heldFor(unnamed(), hold.Hold{Observes: true, Identity: xp.Unknown}, xptest.SeenPaused())),
		},
		"UnsafeNamed": {
			reason: "A wrong external-name creates nothing while the MR only observes.", want: "moving; observe Bucket b",
			snapshot: snapshot(heldFor(unnamed(), hold.Hold{Observes: true, Identity: xp.Unknown}, xptest.SeenPaused(), xptest.Annotated(xp.AnnotationExternalName, "vpc-1"))),
		},
		"XRWaits": {
			reason: "Crossplane would write the policies of the Composition.", of: x, want: "0/1; moving; waits: Bucket b AwaitingPauseReport", snapshot: snapshot(xr, on, revision),
		},
		"XRSteps": {
			reason: "The XR's plan lets the provider observe the MR.", of: x, want: "0/1; moving; observe Bucket b; waits: Bucket b AwaitingProvider",
			snapshot: snapshot(xr, xptest.With(on, xptest.SeenPaused()), revision),
		},
		"XRLetsGo": {
			reason: "The XR's plan releases the MR.", of: x, want: "0/1; moving; release Bucket b; waits: Bucket b Releasing",
			snapshot: snapshot(xr, xptest.With(off, xptest.Reconciled(), settling(noon.Add(-settleTime), false)), revision),
		},
	})
}

// A tenant's mark never lets an MR create an external resource.
func TestForgedMarksOfMRs(t *testing.T) {
	observes := unnamed(xptest.ManagementPolicies(`["Observe"]`), xptest.Annotated(hold.Annotation,
		`{"observes":true,"managementPolicies":["*"],"paused":"false","status":["spec"],"restoreStatus":"x","identity":"named"}`))
	xptest.Value(hold.Put(observes, hold.Hold{Restore: restoreName, Since: restoredAt, Identity: xp.Unknown}))
	if plan := Next(snapshot(observes), xp.RefTo(observes)); plan.Patch != nil || len(plan.Waiting) != 1 {
		t.Errorf("Forged policies must not let the MR create; got %+v", plan)
	}
}

// settling is the option of a mark which says that the provider has found the external resource or,
// with lost, no longer finds it.
func settling(since time.Time, lost bool) xptest.Option {
	return func(u *unstructured.Unstructured) {
		h := xptest.Value(hold.Of(u))
		h.Settling, h.Lost = since.Format(time.RFC3339), lost
		*u = *xptest.Merge(u, hold.Unverified.MarkPatch(u, h))
	}
}

// A second look counts only if the provider has reported it, which needs a new generation.
func TestLookAgain(t *testing.T) {
	mr := heldFor(xptest.MR("b", xptest.ManagementPolicies(`["Observe","Create"]`)), hold.Hold{Observes: true}, xptest.Unpaused(), xptest.Reconciled())
	once, twice := []string{"Observe"}, []string{"Observe", "Observe"}
	for name, tc := range map[string]struct {
		reason string
		mr     *unstructured.Unstructured
		want   []string
	}{
		"First":        {reason: "The first look was reported.", mr: xptest.With(mr, xptest.OfGeneration(1), xptest.Generation(1)), want: twice},
		"Again":        {reason: "Each look gets a generation.", mr: xptest.With(mr, xptest.ManagementPolicies(`["Observe","Observe"]`), xptest.OfGeneration(2), xptest.Generation(2)), want: once},
		"NoGeneration": {reason: "An older provider reports no generation, so a change of the spec proves nothing.", mr: mr, want: once},
	} {
		plan := Next(snapshot(tc.mr), xp.RefTo(tc.mr))
		got := xptest.Merge(tc.mr, plan.Patch)
		if p, _ := xp.ManagementPolicies(got); !cmp.Equal(p, tc.want) || !xp.OnlyObserves(got) {
			t.Errorf("%s: %s\ngot %q, want %q", name, tc.reason, p, tc.want)
		}
		looked := xptest.With(got, settling(noon.Add(-settleTime), false))
		if c, ok := xp.ConditionOf(looked, xp.ConditionSynced); ok && c.Generation != 0 {
			looked.SetGeneration(c.Generation + 1)
			xptest.OfGeneration(c.Generation + 1)(looked)
		}
		released := xptest.Merge(looked, Next(snapshot(looked), xp.RefTo(looked)).Patch)
		if p, _ := xp.ManagementPolicies(released); !cmp.Equal(p, []string{"Observe", "Create"}) {
			t.Errorf("%s: after the second look it has %q, want its own policies", name, p)
		}
	}
}

// While an MR settles, its Plan and its XR's can change with time alone.
func TestSettlingEnds(t *testing.T) {
	x := xptest.XR("x")
	of := func(name string, began time.Time) *unstructured.Unstructured {
		return heldFor(xptest.MR(name, xptest.ControlledBy(x)), hold.Hold{Observes: true}, xptest.Unpaused(), xptest.Reconciled(), settling(began, false))
	}
	first, second := of("b", noon.Add(-2*time.Second)), of("c", noon.Add(-time.Second))
	xr := held(xptest.XR("x", xptest.Refs(second, first)), xptest.SeenPaused())
	w := snapshot(xr, first, second, xptest.Revision(xptest.RevisionName, x))
	for _, of := range []*unstructured.Unstructured{xr, first} {
		if got, want := Next(w, xp.RefTo(of)).NextAt, noon.Add(3*time.Second); !got.Equal(want) {
			t.Errorf("the first MR to settle counts: the plan of %s changes at %s, want %s", xp.String(of), got, want)
		}
	}
}
