package hold

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// ReleasePatch reverts Put for every combination of user settings, however often the object is
// backed up during its hold.
func TestReleaseIsTheInverseOfPut(t *testing.T) {
	builders := map[string]func(string, ...xptest.Option) *unstructured.Unstructured{"v1": xptest.XR, "v2": xptest.XRV2, "claim": xptest.Claim}
	pauses := map[string]xptest.Option{
		"none": nil, "true": xptest.Annotated(xp.AnnotationPaused, "true"), "false": xptest.Annotated(xp.AnnotationPaused, "false"),
		"empty": xptest.Annotated(xp.AnnotationPaused, ""), "odd": xptest.Annotated(xp.AnnotationPaused, `"\u2028<>`),
	}
	policies := map[string]xptest.Option{"none": nil, "manual": xptest.Policy("Manual"), "automatic": xptest.Policy("Automatic"), "empty": xptest.Policy("")}
	composed := map[string]xptest.Option{"composed": xptest.Refs(xptest.MR("b")), "chosen": xptest.Annotated("theirs", "kept"), "never": xptest.NeverComposed()}
	for kind, build := range builders {
		for p, pause := range pauses {
			for q, policy := range policies {
				for c, how := range composed {
					options := slices.DeleteFunc([]xptest.Option{how, pause, policy}, func(o xptest.Option) bool { return o == nil })
					own := build("x", options...)
					t.Run(fmt.Sprint(kind, "/pause:", p, "/policy:", q, "/", c), func(t *testing.T) {
						for times := 1; times <= 3; times++ {
							checkGivesBack(t, own, times)
						}
					})
				}
			}
		}
	}
}

func checkGivesBack(t *testing.T, own *unstructured.Unstructured, times int) {
	t.Helper()
	held := own.DeepCopy()
	for range times {
		xptest.Value(Put(held, Hold{Restore: restoreName, Since: restoredAt}))
	}
	if !xp.IsPaused(held) {
		t.Fatal("a held object is not paused")
	}
	h := xptest.Value(Of(held))
	for name, from := range map[string]*unstructured.Unstructured{"held": held, "unpaused": xptest.Merge(held, Unverified.Unpause(held, h, noon))} {
		got := xptest.Merge(from, ReleasePatch(from, h))
		xptest.Same(t, xptest.Stored(own), xptest.Stored(got), "returned while "+name)
	}
	err := RemoveBackedUpHold(held)
	if diff := cmp.Diff(xptest.Stored(own), xptest.Stored(held)); err != nil || diff != "" {
		t.Errorf("returned for a backup: error %v, -own, +got:\n%s", err, diff)
	}
}

func TestPatchesAreRefusedAfterAChange(t *testing.T) {
	u := xptest.XR("x", xptest.Version("41"))
	h := xptest.Value(Put(u, Hold{Restore: restoreName, Since: restoredAt}))
	for name, patch := range map[string]map[string]any{"unpause": Unverified.Unpause(u, h, noon), "giveBack": ReleasePatch(u, h), "MarkPatch": Unverified.MarkPatch(u, h)} {
		if got, _, _ := unstructured.NestedString(patch, "metadata", "resourceVersion"); got != "41" {
			t.Errorf("%s must carry the observed resourceVersion, so that the API server refuses it after another change; got %q", name, got)
		}
	}
}

// Lifting the hold of an MR returns all settings in one patch, for every combination, at every
// step, and however often it is backed up during the hold.
func TestReleaseReturnsSettingsOfMRs(t *testing.T) {
	options := map[string][]xptest.Option{
		"policies": {nil, xptest.ManagementPolicies(`["*"]`), xptest.ManagementPolicies(`["Observe","Create"]`), xptest.ManagementPolicies(`["Observe"]`)},
		"pause":    {nil, xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Annotated(xp.AnnotationPaused, "false")},
		"status":   {nil, xptest.Annotated(xp.AnnotationRestoreStatus, "false"), xptest.Annotated(xp.AnnotationRestoreStatus, "true")},
	}
	holds := []Hold{{}, {Observes: true}, {Status: []string{"a"}}, {Identity: xp.Unknown}, {Observes: true, Status: []string{"a"}, Identity: xp.CreatePending}}
	for p, policy := range options["policies"] {
		for q, pause := range options["pause"] {
			for s, status := range options["status"] {
				for n, of := range holds {
					set := slices.DeleteFunc([]xptest.Option{policy, pause, status}, func(o xptest.Option) bool { return o == nil })
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
	if h, err := Of(on); err != nil || h.Observes && xp.OnlyObserves(own) {
		t.Errorf("an observing MR needs no policies of the hold: %+v, error %v", h, err)
	}
	plain := Hold{}
	for name, u := range map[string]*unstructured.Unstructured{
		"once": on, "again": heldFor(on, of), "again without": heldFor(on, plain), "observing": xptest.With(on, xptest.Unpaused()),
		"backed up while observing": heldFor(xptest.With(on, xptest.Unpaused()), plain),
	} {
		h, err := Of(u)
		if err != nil || h == nil {
			t.Fatal(h, err)
		}
		xptest.Same(t, xptest.Stored(own), xptest.Stored(xptest.Merge(u, ReleasePatch(u, h))), name+": returned by the release")
		taken := u.DeepCopy()
		xptest.Must(t, RemoveBackedUpHold(taken))
		xptest.Same(t, xptest.Stored(own), xptest.Stored(taken), name+": returned by RemoveBackedUpHold")
	}
}

// Changes that another writer made to an MR during its hold stay.
func TestReleaseLeavesOthersChanges(t *testing.T) {
	changed := heldFor(xptest.MR("b", xptest.ManagementPolicies(`["*"]`)), Hold{Observes: true}, xptest.ManagementPolicies(`["Observe","Delete"]`))
	h := xptest.Value(Of(changed))
	for name, got := range map[string]*unstructured.Unstructured{"given back": xptest.Merge(changed, ReleasePatch(changed, h)), "taken off": changed} {
		if name == "taken off" {
			xptest.Must(t, RemoveBackedUpHold(got))
		}
		if p, _ := xp.ManagementPolicies(got); !cmp.Equal(p, []string{"Observe", "Delete"}) {
			t.Errorf("%s: got %v", name, p)
		}
	}
	again := heldFor(heldFor(xptest.MR("b", xptest.ManagementPolicies(`["*"]`)), Hold{Observes: true}, xptest.ManagementPolicies(`["Observe","Delete"]`)), Hold{})
	if h, err := Of(again); err != nil || h.Observes {
		t.Errorf("a later hold must have no policies to return; got %+v, %v", h, err)
	}
}

func TestTakeOff(t *testing.T) {
	mr := xptest.MR("b", xptest.PublishesTo("infra", "s"), xptest.Annotated(xp.AnnotationPaused, "true"))
	unreadable := xptest.XR("x", xptest.Annotated(Annotation, "?"), xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Policy(xp.UpdateManual))
	for name, tc := range map[string]struct{ own, backedUp *unstructured.Unstructured }{
		"Copy": {mr, heldFor(mr, Hold{Clone: "Bucket team-a/b"})}, "MR": {mr, heldFor(mr, Hold{Reason: ReasonSecret})}, "NotHeld": {mr, mr}, "Unreadable": {unreadable, unreadable},
	} {
		got := tc.backedUp.DeepCopy()
		err := RemoveBackedUpHold(got)
		if diff := cmp.Diff(xptest.Stored(tc.own), xptest.Stored(got)); err != nil || diff != "" {
			t.Errorf("%s: error %v, -own, +got:\n%s", name, err, diff)
		}
	}
	odd := xptest.XR("x", xptest.Field("x", "spec"), xptest.Annotated(Annotation, `{"pinned":true,"compositionUpdatePolicy":"Automatic"}`))
	if err := RemoveBackedUpHold(odd); err == nil || !strings.HasPrefix(err.Error(), "cannot set the composition update policy of XOrder x: ") {
		t.Errorf("an object that can't get its own policy back must be refused; got error %v", err)
	}
}
