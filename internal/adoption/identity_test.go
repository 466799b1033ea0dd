package adoption

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// heldFor returns u with a hold, then changed by the options.
func heldFor(u *unstructured.Unstructured, of Hold, o ...xptest.Option) *unstructured.Unstructured {
	u = u.DeepCopy()
	of.Restore, of.Since, of.Reported = restoreName, restoredAt, ReportedOf(u)
	if _, err := Put(u, of); err != nil {
		panic(err) // The test is wrong.
	}

	return xptest.With(u, o...)
}

func policies(p string) xptest.Option {
	return xptest.JSON(`{"spec":{"managementPolicies":` + p + `}}`)
}

func unnamed(o ...xptest.Option) *unstructured.Unstructured {
	return xptest.MR("b", append([]xptest.Option{xptest.Without("metadata", "annotations")}, o...)...)
}

// An MR that could create a second external resource is released when a user has set its
// external-name.
func TestNextForUnsafe(t *testing.T) {
	unknown, inFlight := Hold{Identity: xp.Unknown}, Hold{Identity: xp.CreatePending}
	recoverable := Hold{Identity: xp.Recoverable, Status: []string{"atProvider"}}
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
			reason: "An MR that only observes creates nothing.", want: "moving; release Bucket b", snapshot: snapshot(heldFor(unnamed(), unknown, policies(`["Observe"]`))),
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
		"Forged": {reason: "An unknown identity value counts as unknown.", want: "waits: Bucket b IdentityMissing", snapshot: snapshot(heldFor(unnamed(), Hold{Identity: "theirs"}))},
	})
}

// An XR waits for an MR whose external-name a user must set, and continues when they have.
func TestNextForXRWithUnsafe(t *testing.T) {
	x := xptest.XR("x")
	mr := unnamed(xptest.ControlledBy(x))
	revision := xptest.Revision(xptest.RevisionName, x)
	xr := held(xptest.XR("x", xptest.Refs(mr)), xptest.SeenPaused())
	on := heldFor(mr, Hold{Identity: xp.Unknown})
	named := xptest.Annotated(xp.AnnotationExternalName, "vpc-1")
	runPlans(t, x, map[string]planCase{
		"Held":  {reason: "Crossplane could create other resources from the state of this one.", want: "0/1; waits: Bucket b IdentityMissing", snapshot: snapshot(xr, on, revision)},
		"Named": {reason: "The XR's plan releases the MR.", want: "0/1; moving; release Bucket b; waits: Bucket b Releasing", snapshot: snapshot(xr, xptest.With(on, named), revision)},
		"OfAnother": {
			reason: "A plan never lifts the hold of another controller's MR.", want: "0/1; waits: Bucket b ControlledByAnother",
			snapshot: snapshot(xr, heldFor(unnamed(xptest.ControlledBy(xptest.XR("other"))), Hold{Identity: xp.Unknown}, named), revision),
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
	mr := xptest.MR("b", xptest.ControlledBy(x), policies(`["Observe","Create","Update","Delete"]`))
	on := heldFor(mr, Hold{Observes: true})
	off := xptest.With(on, unpaused())
	revision := xptest.Revision(xptest.RevisionName, x)
	xr := held(xptest.XR("x", xptest.Refs(mr)), xptest.SeenPaused())
	broken := xptest.Synced("False", "ReconcileError", "external resource does not exist")
	runPlans(t, mr, map[string]planCase{
		"New": {reason: "The provider must see the pause first, or its next condition proves nothing.", want: "moving; waits: Bucket b AwaitingPauseReport", snapshot: snapshot(on)},
		"WrittenOver": {
			reason: "Velero may have overwritten the provider's condition with the status of the backup.", want: "moving; report paused Bucket b",
			snapshot: snapshot(heldFor(mr, Hold{Observes: true, Status: []string{"conditions"}}, xptest.Reconciled())),
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
			snapshot: snapshot(heldFor(xptest.MR("b"), Hold{Observes: true}, unpaused(), broken)),
		},
		"Decided": {reason: "The user has decided.", want: "moving; release Bucket b", snapshot: snapshot(xptest.With(off, broken, policies(`["*"]`)))},
		"NoPolicies": {
			reason: "The API server drops managementPolicies from such a kind, so its provider would do more than observe.", want: "waits: Bucket b NoManagementPolicies",
			snapshot: snapshot(xptest.With(on, xptest.Without("spec", "managementPolicies"), xptest.SeenPaused())),
		},
		"NoPoliciesUnpaused": {
			reason: "A user has released the MR already.", want: "moving; release Bucket b", snapshot: snapshot(xptest.With(off, xptest.Without("spec", "managementPolicies"))),
		},
		"OwnPause": {
			reason: "A paused MR of the user is not observed.", want: "moving; release Bucket b",
			snapshot: snapshot(heldFor(xptest.MR("b", xptest.Annotated(xp.AnnotationPaused, "true")), Hold{Observes: true})),
		},
		"Unsafe": {
			reason: "The MR needs an external-name first.", want: "waits: Bucket b IdentityMissing",
			snapshot: snapshot(heldFor(unnamed(), Hold{Observes: true, Identity: xp.Unknown}, xptest.SeenPaused())),
		},
		"UnsafeNamed": {
			reason: "A wrong external-name creates nothing while the MR only observes.", want: "moving; observe Bucket b",
			snapshot: snapshot(heldFor(unnamed(), Hold{Observes: true, Identity: xp.Unknown}, xptest.SeenPaused(), xptest.Annotated(xp.AnnotationExternalName, "vpc-1"))),
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

// Lifting the hold of an MR returns all settings in one patch, for every combination, at every
// step, and however often it is backed up during the hold.
func TestReleaseReturnsSettingsOfMRs(t *testing.T) {
	options := map[string][]xptest.Option{
		"policies": {nil, policies(`["*"]`), policies(`["Observe","Create"]`), policies(`["Observe"]`)},
		"pause":    {nil, xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Annotated(xp.AnnotationPaused, "false")},
		"status":   {nil, xptest.Annotated(xp.AnnotationRestoreStatus, "false"), xptest.Annotated(xp.AnnotationRestoreStatus, "true")},
	}
	holds := []Hold{{}, {Observes: true}, {Status: []string{"a"}}, {Identity: xp.Unknown}, {Observes: true, Status: []string{"a"}, Identity: xp.CreatePending}}
	for p, policy := range options["policies"] {
		for q, pause := range options["pause"] {
			for s, status := range options["status"] {
				for n, of := range holds {
					var set []xptest.Option
					for _, o := range []xptest.Option{policy, pause, status} {
						if o != nil {
							set = append(set, o)
						}
					}
					own := xptest.MR("b", append(set, xptest.Version("7"))...)
					t.Run(fmt.Sprint(p, q, s, n), func(t *testing.T) { checkMRGetsItsOwnBack(t, own, of) })
				}
			}
		}
	}
}

func checkMRGetsItsOwnBack(t *testing.T, own *unstructured.Unstructured, of Hold) {
	t.Helper()
	on := heldFor(own, of)
	if of.Observes && !xp.OnlyObserves(on) || len(of.Status) > 0 && on.GetAnnotations()[xp.AnnotationRestoreStatus] != "true" || !xp.IsPaused(on) {
		t.Fatalf("the MR must be held: %v", on.Object)
	}
	if h, err := HoldOf(on); err != nil || h.Observes && xp.OnlyObserves(own) {
		t.Errorf("an observing MR needs no policies of the hold: %+v, error %v", h, err)
	}
	plain := Hold{}
	for name, u := range map[string]*unstructured.Unstructured{
		"once": on, "again": heldFor(on, of), "again without": heldFor(on, plain), "observing": xptest.With(on, unpaused()),
		"backed up while observing": heldFor(xptest.With(on, unpaused()), plain),
	} {
		h, err := HoldOf(u)
		if err != nil || h == nil {
			t.Fatal(h, err)
		}
		if diff := cmp.Diff(asStored(own), asStored(xptest.Merge(u, ReleasePatch(u, h)))); diff != "" {
			t.Errorf("%s: returned by the release: -own, +now:\n%s", name, diff)
		}
		taken := u.DeepCopy()
		if err := RemoveBackedUpHold(taken); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asStored(own), asStored(taken)); diff != "" {
			t.Errorf("%s: returned by RemoveBackedUpHold: -own, +now:\n%s", name, diff)
		}
	}
}

// Changes that another writer made to an MR during its hold stay.
func TestReleaseLeavesOthersChanges(t *testing.T) {
	changed := heldFor(xptest.MR("b", policies(`["*"]`)), Hold{Observes: true}, policies(`["Observe","Delete"]`))
	h := must(HoldOf(changed))
	for name, got := range map[string]*unstructured.Unstructured{"given back": xptest.Merge(changed, ReleasePatch(changed, h)), "taken off": changed} {
		if name == "taken off" {
			if err := RemoveBackedUpHold(got); err != nil {
				t.Fatal(err)
			}
		}
		if p, _ := xp.ManagementPolicies(got); !cmp.Equal(p, []string{"Observe", "Delete"}) {
			t.Errorf("%s: got %v", name, p)
		}
	}
	again := heldFor(heldFor(xptest.MR("b", policies(`["*"]`)), Hold{Observes: true}, policies(`["Observe","Delete"]`)), Hold{})
	if h, err := HoldOf(again); err != nil || h.Observes {
		t.Errorf("a later hold must have no policies to return; got %+v, %v", h, err)
	}
}

// A tenant's mark affects only its own object, and never lets an MR create an external resource.
func TestForgedMarksOfMRs(t *testing.T) {
	forged := xptest.Annotated(AnnotationHold, `{"observes":true,"managementPolicies":["*"],"paused":"false","status":["spec"],"restoreStatus":"x","identity":"named"}`)
	h, err := Put(unnamed(forged), Hold{Restore: restoreName, Since: restoredAt, Identity: xp.Unknown})
	want := &Hold{Of: "Bucket.cloud.example.org/b", Restore: restoreName, Since: restoredAt, Reason: reasonRestored, Identity: xp.Unknown, Paused: ptr.To("false")}
	if diff := cmp.Diff(want, h); err != nil || diff != "" {
		t.Errorf("error %v, -want, +got:\n%s", err, diff)
	}
	observes := unnamed(policies(`["Observe"]`), forged)
	must(Put(observes, Hold{Restore: restoreName, Since: restoredAt, Identity: xp.Unknown}))
	if plan := Next(snapshot(observes), xp.RefTo(observes)); plan.Patch != nil || len(plan.Waiting) != 1 {
		t.Errorf("Forged policies must not let the MR create; got %+v", plan)
	}
}

func TestPutRefusesWhatCantObserve(t *testing.T) {
	odd := xptest.MR("b", xptest.Field("x", "spec"))
	if _, err := Put(odd, Hold{Observes: true}); err == nil || !strings.HasPrefix(err.Error(), "cannot make Bucket b observe only: ") {
		t.Errorf("got error %v", err)
	}
}

// settling is the option of a mark which says that the provider has found the external resource or,
// with lost, no longer finds it.
func settling(since time.Time, lost bool) xptest.Option {
	return func(u *unstructured.Unstructured) {
		h := must(HoldOf(u))
		h.Settling, h.Lost = since.Format(time.RFC3339), lost
		xp.Annotate(u, AnnotationHold, Unverified.mark(xp.RefTo(u), h))
	}
}

// A second look counts only if the provider has reported it, which needs a new generation.
func TestLookAgain(t *testing.T) {
	mr := heldFor(xptest.MR("b", policies(`["Observe","Create"]`)), Hold{Observes: true}, unpaused(), xptest.Reconciled())
	once, twice := []string{"Observe"}, []string{"Observe", "Observe"}
	for name, tc := range map[string]struct {
		reason string
		mr     *unstructured.Unstructured
		want   []string
	}{
		"First":        {reason: "The first look was reported.", mr: xptest.With(mr, xptest.OfGeneration(1), xptest.Generation(1)), want: twice},
		"Again":        {reason: "Each look gets a generation.", mr: xptest.With(mr, policies(`["Observe","Observe"]`), xptest.OfGeneration(2), xptest.Generation(2)), want: once},
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
		return heldFor(xptest.MR(name, xptest.ControlledBy(x)), Hold{Observes: true}, unpaused(), xptest.Reconciled(), settling(began, false))
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
