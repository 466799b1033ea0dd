package adoption

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A hold that is put on again gives the user's own settings back.
func TestHoldAgain(t *testing.T) {
	xr, back, _ := lostTree(xptest.Without("status"))
	path := xp.Instance{Unstructured: xr}.UpdatePolicyPath()
	ours := managed(FieldManager, "Update", cameAt, path)
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
			reason: "The manager in the backup had the other value.", xr: xptest.With(xr, xptest.Policy(xp.UpdateManual), ours, managed("kubectl", "Update", saved, path)),
			want: new(xp.UpdateAutomatic),
		},
		"SharedSince": {
			reason: "A manager that wrote the same value since wants that value.", xr: xptest.With(xr, xptest.Policy(xp.UpdateManual), ours, managed("flux", "Apply", laterAt, path)),
			want: new(xp.UpdateManual),
		},
	} {
		t.Run(name, func(t *testing.T) {
			key := Key(strings.Repeat("k", KeySize))
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
			want := &Hold{
				Restore: restoreName, Since: noon.Format(time.RFC3339), Pinned: true, UpdatePolicy: tc.want, Again: true, Refs: refs(back), Reason: h.Reason,
			}
			if diff := cmp.Diff(want, h, cmpopts.IgnoreFields(Hold{}, "Of", "Composition", "Revision")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
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
		h := heldFor(xptest.With(xr, xptest.Refs(back)), Hold{}, xptest.Without("metadata", "annotations", xp.AnnotationPaused))

		return xptest.With(xptest.With(h, xptest.Refs(lists)), o...)
	}
	revision := xptest.Revision(xptest.RevisionName, xr)
	failed := "XOrder x was reconciled before it was adopted, because another writer had removed its annotation crossplane.io/paused: the last to write it was " +
		`"argocd-controller" (Apply, 2026-01-02T11:05:00Z). Crossplane has composed: Bucket b-new; in place of what was restored: ` +
		"Bucket b; " + lostNext + " [ComposedAgain]"
	runPlans(t, map[string]planCase{
		"InTime": {
			reason: "Crossplane has not reconciled the XR yet.", ref: xp.RefTo(xr), snapshot: investigated(withRestored(snapshot(revision), unpaused(back), back), xr),
			want: outcome{Step: StepAgain, Target: "XOrder x", Moving: true, Total: 1},
		},
		"PersonsOwn": {
			reason: "Another writer removed the user's own pause, so the user no longer wants it.", ref: xp.RefTo(xr),
			snapshot: investigated(withRestored(snapshot(revision), xptest.With(heldFor(xptest.With(xr, xptest.Refs(back), xptest.Annotated(xp.AnnotationPaused, "true")), Hold{}),
				xptest.Without("metadata", "annotations", xp.AnnotationPaused)), back), xr),
			want: outcome{Step: StepAgain, Target: "XOrder x", Moving: true, Total: 1},
		},
		"Late": {
			reason: "Crossplane has replaced the composed resource.", ref: xp.RefTo(xr),
			snapshot: investigated(withRestored(snapshot(revision, replacement), unpaused(replacement, reconciledAt(laterAt)), back), xr),
			want:     outcome{Step: StepLost, Target: "XOrder x", Total: 1, Failed: failed},
		},
		"Harmless": {
			reason: "All composed resources were back, so the reconcile did no harm.", ref: xp.RefTo(xr), snapshot: investigated(withRestored(snapshot(revision), unpaused(back, reconciledAt(laterAt)), back), xr),
			want: outcome{Step: "adopted; give its own settings back", Target: "XOrder x", Adopted: 1, Total: 1},
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
		"XR":           {reason: "Git sets the pause to false.", xr: held(x, xptest.Reconciled(), set), claim: free, want: "false"},
		"XRTakenOff":   {reason: "The user has removed their own pause.", xr: held(own(x, "true"), xptest.Reconciled(), off), claim: free},
		"XRLetGo":      {reason: "The plugin itself replaced the pause, so the user's own value must return.", xr: held(own(x, "false"), unpaused(), xptest.Reconciled()), claim: free, want: "false"},
		"Claim":        {reason: "Git sets the pause of the claim to false.", xr: held(x, unpaused(), xptest.Reconciled()), claim: held(claim, xptest.Reconciled(), set), want: "false"},
		"ClaimOff":     {reason: "The user has removed their own pause of the claim.", xr: held(x, unpaused(), xptest.Reconciled()), claim: held(own(claim, "true"), xptest.Reconciled(), off)},
		"ClaimsOwn":    {reason: "No other writer has changed the pause.", xr: held(x, unpaused(), xptest.Reconciled()), claim: held(own(claim, "false"), xptest.SeenPaused()), want: "false"},
		"ClaimsPaused": {reason: "No other writer has changed the user's own pause.", xr: held(x, unpaused(), xptest.Reconciled()), claim: held(own(claim, "true"), xptest.SeenPaused()), want: "true"},
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
		u := heldFor(xptest.With(xr, xptest.Refs(lists...)), Hold{}, xptest.SeenPaused())
		h, err := HoldOf(u)
		if err != nil {
			t.Fatal(err)
		}
		h.Again = true
		mark := Unverified.mark(xp.RefTo(u), h)

		return xptest.With(u, xptest.Annotated(AnnotationHold, mark))
	}
	revision := xptest.Revision(xptest.RevisionName, xr)
	failed := "XOrder x stays held: its hold had been removed, and in its resourceRefs Crossplane replaced what was restored: Bucket b; by: " +
		"Bucket b-new. Put the former back into the resourceRefs in place of the latter, delete the latter where it exists, and run: " + xp.ReleaseCommand(xp.RefTo(xr)).String() + " [ComposedAgain]"
	synced := xptest.With(back, xptest.Reconciled())
	runPlans(t, map[string]planCase{
		"NotMade": {
			reason: "Crossplane has not created the replacement yet.", ref: xp.RefTo(xr), snapshot: investigated(withRestored(snapshot(revision), again(replacement), back), xr), want: outcome{Total: 1, Failed: failed},
		},
		"Made": {
			reason: "Crossplane has created the replacement.", ref: xp.RefTo(xr), snapshot: investigated(withRestored(snapshot(revision, replacement), again(replacement), back), xr), want: outcome{Total: 1, Failed: failed},
		},
		"NotRequested": {
			reason: "The release command must not release the XR either.", ref: xp.RefTo(xr), snapshot: withRestored(snapshot(revision, replacement), again(replacement), back),
			want: outcome{Total: 1, Failed: failed},
		},
		"PutBack": {
			reason: "A user has put the reference back.", ref: xp.RefTo(xr), snapshot: investigated(withRestored(snapshot(revision), xptest.With(again(replacement), xptest.Refs(back)), synced), xr),
			want: outcome{Step: stepUnpause, Target: "XOrder x"},
		},
		"Whole": {
			reason: "Crossplane replaced nothing.", ref: xp.RefTo(xr), snapshot: investigated(withRestored(snapshot(revision), again(back), synced), xr),
			want: outcome{Step: stepUnpause, Target: "XOrder x", Adopted: 1, Total: 1},
		},
	})
	w := investigated(withRestored(snapshot(revision, replacement), again(replacement), back), xr)
	if notices := Losses(w, map[xp.ID]Plan{xp.RefTo(xr).ID(): Next(w, xp.RefTo(xr))}); len(notices) > 0 {
		t.Errorf("the mark reports the loss already; got %+v", notices)
	}
}

func TestLastWriter(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		of     []xptest.Option
		want   string
	}{
		"NoWriter": {reason: "An unknown writer gets no name.", want: "its managedFields do not name that writer (kubectl get --show-managed-fields)"},
		"Earlier":  {reason: "A write before the backup does not count.", of: []xptest.Option{managed("kubectl", "Update", saved)}, want: "its managedFields do not name that writer (kubectl get --show-managed-fields)"},
		"Last": {
			reason: "Only the last writer that is not a controller counts.", want: `the last to write it was "flux" (Apply, 2026-01-02T11:06:00Z)`,
			of: []xptest.Option{
				managed("kubectl", "Update", laterAt), managed("flux", "Apply", "2026-01-02T11:06:00Z"), managed("edit", "Update", cameAt),
				managed("crossplane", "Update", "2026-01-02T11:07:00Z"), managed(FieldManager, "Update", "2026-01-02T11:08:00Z"), managed("velero-server", "Update", "2026-01-02T11:08:00Z"),
			},
		},
		"Damaged": {
			reason: "Any user can write damaged managedFields.", of: []xptest.Option{xptest.Field([]any{"x", map[string]any{"manager": int64(1), "time": true}}, "metadata", "managedFields")},
			want: "its managedFields do not name that writer (kubectl get --show-managed-fields)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lastWriterOf(xptest.XR("x", append([]xptest.Option{ofRestore()}, tc.of...)...))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
