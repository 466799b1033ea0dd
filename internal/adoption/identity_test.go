package adoption

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const (
	stepOwn     = "give its own settings back"
	stepObserve = "let its provider observe it"
	unseen      = "Bucket b: its provider has not reported yet that it is paused [AwaitingPauseReport]"
	unobserved  = "Bucket b: its provider has not observed it yet [AwaitingProvider]"
	given       = "Bucket b: it gets its own settings back [Releasing]"
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
	wait := func(i xp.Identity, id string) outcome {
		return outcome{Waiting: []string{WhyHeld(i, id).About("Bucket b").String()}}
	}
	letGo := outcome{Step: stepOwn, Target: "Bucket b", Moving: true}
	ref := xp.RefTo(xptest.MR("b"))
	ownPause := xptest.Annotated(xp.AnnotationPaused, "true")
	runPlans(t, map[string]planCase{
		"Unknown":      {reason: "Reconciling this MR would create a second external resource.", snapshot: snapshot(heldFor(unnamed(), unknown)), ref: ref, want: wait(xp.Unknown, "")},
		"UnknownNamed": {reason: "The user has set the external-name found in the cloud.", snapshot: snapshot(heldFor(unnamed(), unknown, named)), ref: ref, want: letGo},
		"UnknownEmpty": {
			reason: "An empty external-name counts as none.", snapshot: snapshot(heldFor(unnamed(), unknown, xptest.Annotated(xp.AnnotationExternalName, ""))), ref: ref,
			want: wait(xp.Unknown, ""),
		},
		"UnknownObserves": {
			reason: "An MR that only observes creates nothing.", snapshot: snapshot(heldFor(unnamed(), unknown, policies(`["Observe"]`))), ref: ref, want: letGo,
		},
		"UnknownNoFinalizer": {
			reason: "A missing finalizer does not prove that the external resource was never created.", snapshot: snapshot(heldFor(unnamed(), unknown, xptest.JSON(
				`{"metadata":{"annotations":{"crossplane.io/external-create-failed":"`+restoredAt+`"}}}`))), ref: ref, want: wait(xp.Unknown, ""),
		},
		"InFlight": {reason: "The external resource may have been created.", snapshot: snapshot(heldFor(unnamed(pending), inFlight)), ref: ref, want: wait(xp.CreatePending, "")},
		"InFlightNamed": {
			reason: "An external-name alone does not end the pending create for the provider.", snapshot: snapshot(heldFor(unnamed(pending), inFlight, named)), ref: ref,
			want: wait(xp.CreatePending, ""),
		},
		"InFlightNamedAndOver": {
			reason: "The user has set the external-name and ended the pending create.", snapshot: snapshot(heldFor(unnamed(), inFlight, named)), ref: ref, want: letGo,
		},
		"InFlightOver": {
			reason: "The user found no external resource and removed the pending create in Crossplane's own way.", snapshot: snapshot(heldFor(unnamed(), inFlight)), ref: ref, want: letGo,
		},
		"Recoverable": {
			reason: "The ID in the status may differ from the external-name.", snapshot: snapshot(heldFor(unnamed(), recoverable, status)), ref: ref,
			want: wait(xp.Recoverable, "vpc-1"),
		},
		"RecoverableNamedUnseen": {
			reason: "The status may be as old as the backup.", snapshot: snapshot(heldFor(unnamed(), recoverable, named, status)), ref: ref,
			want: outcome{Step: stepReportPaused, Target: "Bucket b", Moving: true},
		},
		"RecoverableNamed": {
			reason: "The provider has written a new condition since the restore.", snapshot: snapshot(heldFor(unnamed(), recoverable, named, status, seen)), ref: ref, want: letGo,
		},
		"OwnPause": {
			reason: "The user's own pause comes back, so the plan does not wait for the provider.", snapshot: snapshot(heldFor(unnamed(ownPause), recoverable, named, status)), ref: ref, want: letGo,
		},
		"Forged": {
			reason: "An unknown identity value counts as unknown.", snapshot: snapshot(heldFor(unnamed(), Hold{Identity: "theirs"})), ref: ref, want: wait("theirs", ""),
		},
		"Copy": {
			reason: "A copy of a live object stays a copy.", ref: ref, snapshot: snapshot(heldFor(xptest.MR("b"), Hold{Identity: xp.Unknown, Clone: "Bucket z", Reason: "it is a copy"})),
			want: outcome{Failed: "Bucket b stays held: it is a copy"},
		},
	})
}

// Each reason has a next step of its own.
func TestWhyHeld(t *testing.T) {
	for i, want := range map[xp.Identity][]string{
		xp.CreatePending: {"was being created", xp.AnnotationExternalName, xp.AnnotationCreatePending},
		xp.Recoverable:   {`"vpc-1"`, xp.AnnotationExternalName},
		xp.Unknown:       {"Look for it in the cloud", xp.AnnotationExternalName, "release NAME --force"},
	} {
		got := WhyHeld(i, "vpc-1").String()
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: got %q, want it to contain %q", i, got, part)
			}
		}
	}
}

// An XR waits for an MR whose external-name a user must set, and continues when they have.
func TestNextForXRWithUnsafe(t *testing.T) {
	x := xptest.XR("x")
	mr := unnamed(xptest.ControlledBy(x))
	revision := xptest.Revision(xptest.RevisionName, x)
	xr := held(xptest.XR("x", xptest.Refs(mr)), xptest.SeenPaused())
	ownPause := held(xptest.XR("x", xptest.Refs(mr), xptest.Annotated(xp.AnnotationPaused, "true")))
	on := heldFor(mr, Hold{Identity: xp.Unknown})
	named := xptest.Annotated(xp.AnnotationExternalName, "vpc-1")
	waiting := outcome{Total: 1, Waiting: []string{WhyHeld(xp.Unknown, "").About("Bucket b").String()}}
	letGo := outcome{Total: 1, Moving: true, Also: []string{"Bucket b"}, Waiting: []string{given}}
	runPlans(t, map[string]planCase{
		"Held":     {reason: "Crossplane could create other resources from the state of this one.", snapshot: snapshot(xr, on, revision), ref: xp.RefTo(x), want: waiting},
		"Named":    {reason: "The XR's plan releases the MR.", snapshot: snapshot(xr, xptest.With(on, named), revision), ref: xp.RefTo(x), want: letGo},
		"OwnPause": {reason: "An XR that stays paused waits for the MR too, and the message names the MR.", snapshot: snapshot(ownPause, on), ref: xp.RefTo(x), want: waiting},
		"Removed": {
			reason: "The user allowed a create, so the MR is like any other.", snapshot: snapshot(xr, mr, revision), ref: xp.RefTo(x),
			want: outcome{Total: 1, Moving: true, Waiting: []string{unobserved}},
		},
		"OfAnother": {
			reason: "A plan never lifts the hold of another controller's MR.", ref: xp.RefTo(x),
			snapshot: snapshot(xr, heldFor(unnamed(xptest.ControlledBy(xptest.XR("other"))), Hold{Identity: xp.Unknown}, named), revision),
			want:     outcome{Total: 1, Waiting: []string{"Bucket b: its controller is XOrder other (UID uid of XOrder other), not this XR. Remove it from the resourceRefs of one of them [ControlledByAnother]"}},
		},
		"Uncontrolled": {
			reason: "An MR without a controller has its own operation.", ref: xp.RefTo(x),
			snapshot: snapshot(xr, xptest.With(on, named, xptest.Without("metadata", "ownerReferences")), revision), want: outcome{Total: 1, Moving: true, Waiting: []string{given}},
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
	ref := xp.RefTo(mr)
	const gone = "Bucket b: it only observes, and its provider can't find its external resource: external resource does not exist. Correct that; if the " +
		`external resource is gone and the provider may create another, set its spec.managementPolicies to `
	broken := xptest.Synced("False", "ReconcileError", "external resource does not exist")
	moving := func(why string) outcome { return outcome{Moving: true, Waiting: []string{why}} }
	runPlans(t, map[string]planCase{
		"New":       {reason: "The provider must see the pause first, or its next condition proves nothing.", snapshot: snapshot(on), ref: ref, want: moving(unseen)},
		"OldStatus": {reason: "A status can be as old as the backup.", snapshot: snapshot(xptest.With(on, xptest.Reconciled())), ref: ref, want: moving(unseen)},
		"WrittenOver": {
			reason: "Velero may have overwritten the provider's condition with the status of the backup.", ref: ref, want: outcome{Step: stepReportPaused, Target: "Bucket b", Moving: true},
			snapshot: snapshot(heldFor(mr, Hold{Observes: true, Status: []string{"conditions"}}, xptest.Reconciled())),
		},
		"Seen":     {reason: "The provider has seen the pause, so it may observe now.", snapshot: snapshot(xptest.With(on, xptest.SeenPaused())), ref: ref, want: outcome{Step: stepObserve, Target: "Bucket b", Moving: true}},
		"Looking":  {reason: "The provider has not observed yet.", snapshot: snapshot(xptest.With(off, xptest.SeenPaused())), ref: ref, want: moving(unobserved)},
		"NoStatus": {reason: "Without a status the provider has not observed either.", snapshot: snapshot(off), ref: ref, want: moving(unobserved)},
		"Found": {
			reason: "The provider has observed the external resource once.", snapshot: snapshot(xptest.With(off, xptest.Reconciled())), ref: ref,
			want: outcome{Step: stepFound, Target: "Bucket b", Moving: true},
		},
		"Settling": {
			reason: "The cloud may answer differently a moment later.", ref: ref, want: moving("Bucket b: " + waitSettled + " [ObservesFirst]"),
			snapshot: snapshot(xptest.With(off, xptest.Reconciled(), settling(noon.Add(-settleTime/2), false))),
		},
		"Lost": {
			reason: "The external resource went missing, and the mark must record that.", ref: ref, want: outcome{Step: stepUnfound, Target: "Bucket b", Moving: true},
			snapshot: snapshot(xptest.With(off, broken, settling(noon.Add(-settleTime), false))),
		},
		"StillLost": {
			reason: "The mark records this only once.", ref: ref, want: outcome{Waiting: []string{gone + `["Observe","Create","Update","Delete"] [ObservesFirst]`}},
			snapshot: snapshot(xptest.With(off, broken, settling(noon.Add(-settleTime), true))),
		},
		"Back": {
			reason: "The plan does not poll a cloud that changes its answer.", ref: ref, want: moving("Bucket b: " + waitSettled + " [ObservesFirst]"),
			snapshot: snapshot(xptest.With(off, xptest.Reconciled(), settling(noon.Add(-settleTime/2), true))),
		},
		"BackForAWhile": {
			reason: "The external resource is back, so the settle time starts again.", ref: ref, want: outcome{Step: stepFound, Target: "Bucket b", Moving: true},
			snapshot: snapshot(xptest.With(off, xptest.Reconciled(), settling(noon.Add(-settleTime), true))),
		},
		"Observed": {
			reason: "The provider has observed the external resource.", snapshot: snapshot(xptest.With(off, xptest.Reconciled(), settling(noon.Add(-settleTime), false))), ref: ref,
			want: outcome{Step: stepOwn, Target: "Bucket b", Moving: true},
		},
		"Missing": {
			reason: "The provider would create the external resource again, so the user must decide.", snapshot: snapshot(xptest.With(off, broken)), ref: ref,
			want: outcome{Waiting: []string{gone + `["Observe","Create","Update","Delete"] [ObservesFirst]`}},
		},
		"MissingDefault": {
			reason: "Without its own policies an MR has all of them.", ref: ref, want: outcome{Waiting: []string{gone + `["*"] [ObservesFirst]`}},
			snapshot: snapshot(heldFor(xptest.MR("b"), Hold{Observes: true}, unpaused(), broken)),
		},
		"Decided": {
			reason: "The user has decided.", snapshot: snapshot(xptest.With(off, broken, policies(`["*"]`))), ref: ref,
			want: outcome{Step: stepOwn, Target: "Bucket b", Moving: true},
		},
		"NoPolicies": {
			reason: "The API server drops managementPolicies from such a kind, so its provider would do more than observe.", ref: ref,
			snapshot: snapshot(xptest.With(on, xptest.Without("spec", "managementPolicies"), xptest.SeenPaused())), want: outcome{Waiting: []string{
				"Bucket b: its kind has no managementPolicies, so it can't observe first, as the setting observe-first asks: its provider would create or change its " +
					"external resource. Look for that, then release this: velero-plugin-for-crossplane release --force b [NoManagementPolicies]",
			}},
		},
		"NoPoliciesUnpaused": {
			reason: "A user has released the MR already.", ref: ref, snapshot: snapshot(xptest.With(off, xptest.Without("spec", "managementPolicies"))),
			want: outcome{Step: stepOwn, Target: "Bucket b", Moving: true},
		},
		"OwnPause": {
			reason: "A paused MR of the user is not observed.", ref: ref, want: outcome{Step: stepOwn, Target: "Bucket b", Moving: true},
			snapshot: snapshot(heldFor(xptest.MR("b", xptest.Annotated(xp.AnnotationPaused, "true")), Hold{Observes: true})),
		},
		"UnpausedByHand": {
			reason: "The provider's condition counts, even if another writer removed the pause.", snapshot: snapshot(xptest.With(off, xptest.Reconciled())), ref: ref,
			want: outcome{Step: stepFound, Target: "Bucket b", Moving: true},
		},
		"Unsafe": {
			reason: "The MR needs an external-name first.", ref: ref, want: outcome{Waiting: []string{WhyHeld(xp.Unknown, "").About("Bucket b").String()}},
			snapshot: snapshot(heldFor(unnamed(), Hold{Observes: true, Identity: xp.Unknown}, xptest.SeenPaused())),
		},
		"UnsafeNamed": {
			reason: "A wrong external-name creates nothing while the MR only observes.", ref: ref, want: outcome{Step: stepObserve, Target: "Bucket b", Moving: true},
			snapshot: snapshot(heldFor(unnamed(), Hold{Observes: true, Identity: xp.Unknown}, xptest.SeenPaused(), xptest.Annotated(xp.AnnotationExternalName, "vpc-1"))),
		},
		"XRWaits": {
			reason: "Crossplane would write the policies of the Composition.", snapshot: snapshot(xr, on, revision), ref: xp.RefTo(x),
			want: outcome{Total: 1, Moving: true, Waiting: []string{unseen}},
		},
		"XRSteps": {
			reason: "The XR's plan lets the provider observe the MR.", snapshot: snapshot(xr, xptest.With(on, xptest.SeenPaused()), revision), ref: xp.RefTo(x),
			want: outcome{Total: 1, Moving: true, Also: []string{"Bucket b"}, Waiting: []string{unobserved}},
		},
		"XRSettles": {
			reason: "The XR's plan lets the provider observe the MR again.", snapshot: snapshot(xr, xptest.With(off, xptest.Reconciled()), revision), ref: xp.RefTo(x),
			want: outcome{Total: 1, Moving: true, Also: []string{"Bucket b"}, Waiting: []string{"Bucket b: " + waitSettled + " [ObservesFirst]"}},
		},
		"XRLetsGo": {
			reason: "The XR's plan releases the MR.", snapshot: snapshot(xr, xptest.With(off, xptest.Reconciled(), settling(noon.Add(-settleTime), false)), revision), ref: xp.RefTo(x),
			want: outcome{Total: 1, Moving: true, Also: []string{"Bucket b"}, Waiting: []string{given}},
		},
		"XRWaitsForGood": {
			reason: "The message names the next step for the user.", snapshot: snapshot(xr, xptest.With(off, broken), revision), ref: xp.RefTo(x),
			want: outcome{Total: 1, Waiting: []string{gone + `["Observe","Create","Update","Delete"] [ObservesFirst]`}},
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
		if diff := cmp.Diff(asStored(own), asStored(xptest.Merge(u, releasePatch(u, h)))); diff != "" {
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
	h, err := HoldOf(changed)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]*unstructured.Unstructured{"given back": xptest.Merge(changed, releasePatch(changed, h)), "taken off": changed} {
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
	if _, err := Put(observes, Hold{Restore: restoreName, Since: restoredAt, Identity: xp.Unknown}); err != nil {
		t.Fatal(err)
	}
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
