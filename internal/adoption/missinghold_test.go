package adoption

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A hold that is put on again gives the user's own settings back.
func TestHoldAgain(t *testing.T) {
	xr, back, _ := lostTree(xptest.Without("status"))
	path := xp.Instance{Unstructured: xr}.UpdatePolicyPath()
	ours := xptest.Managed(hold.FieldManager, "Update", cameAt, path)
	for name, tc := range map[string]struct {
		reason string
		xr     *unstructured.Unstructured
		want   *string
	}{
		"None":      {reason: "Without a policy there was no pin.", xr: xr},
		"Ours":      {reason: "The pin of the hold is not a policy of the user.", xr: xptest.With(xr, xptest.Policy(xp.UpdateManual), ours)},
		"Theirs":    {reason: "A policy belongs to the user unless managedFields name the plugin.", xr: xptest.With(xr, xptest.Policy(xp.UpdateManual)), want: new(xp.UpdateManual)},
		"Automatic": {reason: "Another writer has removed the pin.", xr: xptest.With(xr, xptest.Policy(xp.UpdateAutomatic), ours), want: new(xp.UpdateAutomatic)},
		"Shared": {
			reason: "The manager in the backup had the other value.", xr: xptest.With(xr, xptest.Policy(xp.UpdateManual), ours, xptest.Managed("kubectl", "Update", saved, path)),
			want: new(xp.UpdateAutomatic),
		},
		"SharedSince": {
			reason: "A manager that wrote the same value since wants that value.", xr: xptest.With(xr, xptest.Policy(xp.UpdateManual), ours, xptest.Managed("flux", "Apply", laterAt, path)),
			want: new(xp.UpdateManual),
		},
	} {
		t.Run(name, func(t *testing.T) {
			key := hold.Key(strings.Repeat("k", hold.KeySize))
			w := NewSnapshot(key)
			w.SetTime(noon)
			u := xptest.With(tc.xr, xptest.Refs(back))
			plan := Next(investigated(withRestored(w, u, back), u), xp.RefTo(u))
			if plan.Patch == nil || !strings.Contains(plan.Warning.String(), "argocd-controller") {
				t.Fatalf("%s\ngot %+v", tc.reason, plan)
			}
			after := xptest.Merge(u, plan.Patch)
			h, err := key.HoldOf(after)
			if err != nil || h == nil {
				t.Fatalf("%s\n%v, %v", tc.reason, h, err)
			}
			want := &hold.Hold{Restore: restoreName, Since: noon.Format(time.RFC3339), Pinned: true, UpdatePolicy: tc.want, Again: true, Refs: refs(back), Reason: h.Reason}
			xptest.Same(t, want, h, tc.reason, cmpopts.IgnoreFields(hold.Hold{}, "Of", "Composition", "Revision"))
			if policy, _ := (xp.Instance{Unstructured: after}).UpdatePolicy(); policy != xp.UpdateManual || !xp.IsPaused(after) {
				t.Errorf("%s\nthe object must be held: %v", tc.reason, after.Object)
			}
			w.AddRestored(after)
			if next := Next(w, xp.RefTo(u)); next.Done || next.Lost || len(next.Waiting) == 0 {
				t.Errorf("the object must then wait like any other; got %+v", next)
			}
		})
	}
}

// Another writer can remove the pause of a hold and leave its mark.
func TestNextWithoutPause(t *testing.T) {
	xr, back, replacement := lostTree(xptest.Without("status"))
	unpaused := func(lists *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
		h := heldFor(xptest.With(xr, xptest.Refs(back)), hold.Hold{}, xptest.Without("metadata", "annotations", xp.AnnotationPaused))

		return xptest.With(xptest.With(h, xptest.Refs(lists)), o...)
	}
	revision := xptest.Revision(xptest.RevisionName, xr)
	runPlans(t, xr, map[string]planCase{
		"InTime": {
			reason: "Crossplane has not reconciled the XR yet.", want: "0/1; moving; hold again XOrder x; warns: HoldRemoved",
			snapshot: investigated(withRestored(snapshot(revision), unpaused(back), back), xr),
		},
		"PersonsOwn": {
			reason: "Another writer removed the user's own pause, so the user no longer wants it.", want: "0/1; moving; hold again XOrder x; warns: HoldRemoved",
			snapshot: investigated(withRestored(snapshot(revision), xptest.With(heldFor(xptest.With(xr, xptest.Refs(back), xptest.Annotated(xp.AnnotationPaused, "true")), hold.Hold{}), xptest.Without("metadata", "annotations", xp.AnnotationPaused)), back), xr),
		},
		"Late": {
			reason:   "Crossplane has replaced the composed resource.",
			want:     "0/1; give its own settings back: another writer had removed its hold, and Crossplane has composed others XOrder x; failed: ComposedAgain",
			snapshot: investigated(withRestored(snapshot(revision, replacement), unpaused(replacement, reconciledAt(laterAt)), back), xr),
		},
		"Harmless": {
			reason: "All composed resources were back, so the reconcile did no harm.", want: "1/1; release XOrder x",
			snapshot: investigated(withRestored(snapshot(revision), unpaused(back, reconciledAt(laterAt)), back), xr),
		},
	})
}

// Another writer's change of the pause during a hold stays.
func TestNextKeepsAnothersPause(t *testing.T) {
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	x := xptest.XR("x", xptest.ClaimedBy(claim))
	off, set := xptest.Without("metadata", "annotations", xp.AnnotationPaused), xptest.Annotated(xp.AnnotationPaused, "false")
	own := func(u *unstructured.Unstructured, value string) *unstructured.Unstructured {
		return xptest.With(u, xptest.Annotated(xp.AnnotationPaused, value))
	}
	free := xptest.With(claim, xptest.Reconciled())
	cases := map[string]struct {
		reason    string
		xr, claim *unstructured.Unstructured
		want      any
	}{
		"XR":         {reason: "Git sets the pause to false.", xr: held(x, xptest.Reconciled(), set), claim: free, want: "false"},
		"XRTakenOff": {reason: "The user has removed their own pause.", xr: held(own(x, "true"), xptest.Reconciled(), off), claim: free},
		"XRLetGo":    {reason: "The plugin itself replaced the pause, so the user's own value must return.", xr: held(own(x, "false"), xptest.Unpaused(), xptest.Reconciled()), claim: free, want: "false"},
		"Claim":      {reason: "Git sets the pause of the claim to false.", xr: held(x, xptest.Unpaused(), xptest.Reconciled()), claim: held(claim, xptest.Reconciled(), set), want: "false"},
		"ClaimOff":   {reason: "The user has removed their own pause of the claim.", xr: held(x, xptest.Unpaused(), xptest.Reconciled()), claim: held(own(claim, "true"), xptest.Reconciled(), off)},
		"ClaimsOwn":  {reason: "No other writer has changed the pause.", xr: held(x, xptest.Unpaused(), xptest.Reconciled()), claim: held(own(claim, "false"), xptest.SeenPaused()), want: "false"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Next(snapshot(xptest.Revision(xptest.RevisionName, x), tc.xr, tc.claim), xp.RefTo(tc.xr))
			got, there, err := unstructured.NestedFieldNoCopy(p.Patch, "metadata", "annotations", xp.AnnotationPaused)
			if diff := cmp.Diff(tc.want, got); diff != "" || !there || err != nil {
				t.Errorf("%s\n%+v\n-want, +got:\n%s", tc.reason, p, diff)
			}
		})
	}
}

// Crossplane may be reconciling an XR when its hold is put on again. The XR then lists what
// Crossplane was about to create, and must not be released like that.
func TestNextOfHeldAgain(t *testing.T) {
	xr, back, replacement := lostTree(xptest.Without("status"))
	again := func(lists ...*unstructured.Unstructured) *unstructured.Unstructured {
		u := heldFor(xptest.With(xr, xptest.Refs(lists...)), hold.Hold{}, xptest.SeenPaused())
		h := xptest.Value(hold.Of(u))
		h.Again = true

		return xptest.Merge(u, hold.Unverified.MarkPatch(u, h))
	}
	revision := xptest.Revision(xptest.RevisionName, xr)
	synced := xptest.With(back, xptest.Reconciled())
	runPlans(t, xr, map[string]planCase{
		"NotMade": {
			reason: "Crossplane has not created the replacement yet.", want: "0/1; failed: XOrder x stays held ComposedAgain", says: "replaced what was restored: Bucket b; by: Bucket b-new",
			snapshot: investigated(withRestored(snapshot(revision), again(replacement), back), xr),
		},
		"NotRequested": {
			reason: "The release command must not release the XR either.", want: "0/1; failed: XOrder x stays held ComposedAgain",
			snapshot: withRestored(snapshot(revision, replacement), again(replacement), back),
		},
		"PutBack": {
			reason: "A user has put the reference back.", want: "unpause XOrder x",
			snapshot: investigated(withRestored(snapshot(revision), xptest.With(again(replacement), xptest.Refs(back)), synced), xr),
		},
		"Whole": {reason: "Crossplane replaced nothing.", want: "1/1; unpause XOrder x", snapshot: investigated(withRestored(snapshot(revision), again(back), synced), xr)},
	})
	w := investigated(withRestored(snapshot(revision, replacement), again(replacement), back), xr)
	if notices := Losses(w, map[xp.ID]Plan{xp.RefTo(xr).ID(): Next(w, xp.RefTo(xr))}); len(notices) > 0 {
		t.Errorf("the mark reports the loss already; got %+v", notices)
	}
}

func TestLosses(t *testing.T) {
	xr, back, replacement := lostTree()
	w := investigated(withRestored(snapshot(replacement), xr, back), xr)
	plans := map[xp.ID]Plan{xp.RefTo(xr).ID(): Next(w, xp.RefTo(xr)), xp.RefTo(back).ID(): {Failed: reason.Message{Text: "for another reason"}}}
	got := Losses(w, plans)
	if len(got) != 1 || got[0].Event != EventStopped || !got[0].Warning || got[0].Message != lostWhy || got[0].Patch != nil || got[0].Target.GetUID() != xr.GetUID() {
		t.Errorf("an XR without a mark must get a warning about its loss; got %+v", got)
	}
}

// An adopted XR whose claim has another XR is reported.
func TestNextUnclaimed(t *testing.T) {
	claim := xptest.Claim("o")
	x := xptest.XR("x", xptest.ClaimedBy(claim), xptest.Refs(xptest.MR("b")), xptest.Reconciled(), ofRestore())
	on := func(o ...xptest.Option) *Snapshot {
		w := withRestored(snapshot(xptest.With(claim, o...)), x, xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled()))
		investigated(w, x).investigation.Released = func(types.UID) bool { return true }

		return w
	}
	if p := Next(on(xptest.OfXR(xptest.XR("other"))), xp.RefTo(x)); p.Done || !strings.Contains(p.Failed.String(), "other") {
		t.Errorf("the claim has bound another XR: %+v", p)
	}
	if p := Next(on(xptest.OfXR(x)), xp.RefTo(x)); !p.Done || !p.Failed.IsZero() {
		t.Errorf("the claim has this XR: %+v", p)
	}
}

// A webhook can change an object at its creation, so that nothing on it shows its hold.
func TestNextForWhatCameBackWithoutItsHold(t *testing.T) {
	began := "2026-01-02T10:00:00Z"
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x), ofRestore())
	xr := func(h hold.Hold) *unstructured.Unstructured {
		return heldFor(xptest.XR("x", xptest.Refs(bucket), ofRestore()), h)
	}
	revision := xptest.Revision(xptest.RevisionName, x)
	quarantine, observes := hold.Hold{Quarantine: true}, hold.Hold{Observes: true, Policies: []string{"*"}, Reason: hold.ReasonObserve}
	type want struct {
		Failed, Quarantine, Marked bool
		Mark                       hold.Hold
	}
	cases := map[string]struct {
		reason  string
		xr      *unstructured.Unstructured
		mr      *unstructured.Unstructured
		held    *hold.Hold
		began   string
		asksFor *unstructured.Unstructured
		want    want
	}{
		"Quarantine": {
			reason: "Another cluster may manage the MR, so it is held again and its XR does not change.", xr: xr(quarantine), mr: bucket, held: &quarantine, asksFor: x,
			want: want{Quarantine: true, Marked: true, Mark: hold.Hold{Quarantine: true, Again: true}},
		},
		"Observes": {
			reason: "The MR gets back the policies that it had before it was observed.", xr: xr(hold.Hold{}),
			mr: xptest.With(bucket, xptest.Field([]any{"Observe"}, "spec", "managementPolicies")), held: &observes, asksFor: x,
			want: want{Marked: true, Mark: hold.Hold{Observes: true, Policies: []string{"*"}, Again: true}},
		},
		"OwnOperation": {
			reason: "An MR without a held XR has its own operation.", mr: bucket, held: &quarantine, asksFor: bucket, want: want{Marked: true, Mark: hold.Hold{Quarantine: true, Again: true}},
		},
		"Created": {
			reason: "The provider created the resource first, and a new hold can't undo that.", xr: xr(hold.Hold{}),
			mr: xptest.With(bucket, xptest.Annotated(xp.AnnotationCreateSucceeded, laterAt)), held: &hold.Hold{Identity: xp.Unknown}, asksFor: x, want: want{Failed: true},
		},
		"NotHeld":   {reason: "The MR was to have no hold.", xr: xr(hold.Hold{}), mr: bucket, asksFor: x},
		"Before":    {reason: "The MR is older than the restore, which skipped it.", xr: xr(quarantine), mr: bucket, held: &quarantine, began: laterAt, asksFor: x, want: want{Quarantine: true}},
		"Elsewhere": {reason: "Another restore created the MR.", xr: xr(quarantine), mr: xptest.With(bucket, xptest.Labelled(xp.LabelRestore, "sunday")), held: &quarantine, asksFor: x, want: want{Quarantine: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []*unstructured.Unstructured{tc.mr}
			if tc.xr != nil {
				objects = append(objects, tc.xr)
			}
			w := investigated(withRestored(snapshot(revision), objects...), tc.asksFor)
			at := began
			if tc.began != "" {
				at = tc.began
			}
			w.investigation.Started, _ = time.Parse(time.RFC3339, at)
			w.investigation.Held = func(id xp.ID) *hold.Hold {
				if id == xp.RefTo(bucket).ID() {
					return tc.held
				}

				return nil
			}
			p := Next(w, xp.RefTo(tc.asksFor))
			got := want{Failed: !p.Failed.IsZero(), Quarantine: !p.Quarantine.IsZero()}
			for _, c := range append(p.Also, p.Change) {
				if c.Target == nil || xp.RefTo(c.Target) != xp.RefTo(bucket) || !c.Marks() {
					continue
				}
				h := xptest.Value(hold.Of(xptest.Merge(c.Target, c.Patch)))
				got.Marked, got.Mark = true, *h
				if !p.Moving || !strings.Contains(c.Warning.String(), "without its hold") {
					t.Errorf("%s\nthe plan must move and carry a warning: %+v", tc.reason, p)
				}
			}
			xptest.Same(t, tc.want, got, fmt.Sprintf("%s\n%+v", tc.reason, p), cmpopts.IgnoreFields(hold.Hold{}, "Of", "Restore", "Since", "Reason"))
		})
	}
}

// An XR that lost its quarantine is put into it again, even if it was reconciled.
func TestNextOfStrippedQuarantine(t *testing.T) {
	bucket := xptest.MR("b", ofRestore())
	for name, o := range map[string][]xptest.Option{"Fresh": nil, "Reconciled": {reconciledAt(laterAt)}} {
		xr := xptest.XR("x", append([]xptest.Option{ofRestore(), xptest.Refs(bucket)}, o...)...)
		bucket := xptest.With(bucket, xptest.ControlledBy(xr))
		w := investigated(withRestored(snapshot(xptest.Revision(xptest.RevisionName, xr)), xr, bucket), xr)
		w.investigation.Held = func(xp.ID) *hold.Hold { return &hold.Hold{Quarantine: true} }
		p := Next(w, xp.RefTo(xr))
		h, err := hold.Of(xptest.Merge(xr, p.Patch))
		if err != nil || h == nil || !h.Quarantine || !h.Again || p.Step != StepAgain {
			t.Errorf("%s: got %+v, %+v, %v", name, h, p, err)
		}
	}
}

func TestNextOfTakenOver(t *testing.T) {
	mr := xptest.MR("b")
	given := xptest.XR("x", xptest.Refs(mr))
	live := xptest.XR("x", xptest.Without("spec", "resourceRefs"), xptest.Without("metadata", "finalizers"))
	change := xptest.Value(hold.Unverified.TakeOver(live, given, hold.Hold{Restore: "velero/monday"}, nil))
	taken := xptest.Merge(live, change.Patch)
	type want struct{ Lost, Waits, Free bool }
	cases := map[string]struct {
		reason string
		xr     *unstructured.Unstructured
		want   want
	}{
		"Unseen": {reason: "Crossplane may be reconciling the XR.", xr: taken, want: want{Waits: true}},
		"Other": {
			reason: "Crossplane was reconciling the XR and composed another resource, so the hold must go.", xr: xptest.With(taken, xptest.SeenPaused(), xptest.Refs(xptest.MR("anew"))),
			want: want{Lost: true, Free: true},
		},
		"Seen": {reason: "From here on the XR is like any other.", xr: xptest.With(taken, xptest.SeenPaused())},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := NewSnapshot(hold.Unverified)
			w.AddRestored(tc.xr)
			w.AddRestored(xptest.With(mr, xptest.ControlledBy(tc.xr), xptest.Reconciled()))
			p := Next(w, xp.RefTo(tc.xr))
			got := want{Lost: p.Lost, Waits: p.Patch == nil && p.Moving}
			if p.Patch != nil && p.Lost {
				got.Free = !xp.IsPaused(xptest.Merge(tc.xr, p.Patch))
			}
			xptest.Same(t, tc.want, got, fmt.Sprintf("%s\n%+v", tc.reason, p))
		})
	}
}
