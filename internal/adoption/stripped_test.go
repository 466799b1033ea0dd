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

// A webhook can change an object at its creation, so that nothing on it shows its hold.
func TestNextForWhatCameBackWithoutItsHold(t *testing.T) {
	began := "2026-01-02T10:00:00Z"
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x), ofRestore())
	xr := func(h Hold) *unstructured.Unstructured {
		return heldFor(xptest.XR("x", xptest.Refs(bucket), ofRestore()), h)
	}
	revision := xptest.Revision(xptest.RevisionName, x)
	quarantine, observes := Hold{Quarantine: true}, Hold{Observes: true, Policies: []string{"*"}, Reason: ReasonObserve}
	type want struct {
		Failed, Quarantine, Marked bool
		Mark                       Hold
	}
	cases := map[string]struct {
		reason  string
		xr      *unstructured.Unstructured
		mr      *unstructured.Unstructured
		held    *Hold
		began   string
		asksFor *unstructured.Unstructured
		want    want
	}{
		"Quarantine": {
			reason: "Another cluster may manage the MR, so it is held again and its XR does not change.",
			xr:     xr(quarantine), mr: bucket, held: &quarantine, asksFor: x, want: want{Quarantine: true, Marked: true, Mark: Hold{Quarantine: true, Again: true}},
		},
		"Observes": {
			reason: "The MR gets back the policies that it had before it was observed.",
			xr:     xr(Hold{}), mr: xptest.With(bucket, xptest.Field([]any{"Observe"}, "spec", "managementPolicies")), held: &observes, asksFor: x,
			want: want{Marked: true, Mark: Hold{Observes: true, Policies: []string{"*"}, Again: true}},
		},
		"OwnOperation": {
			reason: "An MR without a held XR has its own operation.",
			mr:     bucket, held: &quarantine, asksFor: bucket, want: want{Marked: true, Mark: Hold{Quarantine: true, Again: true}},
		},
		"Created": {
			reason: "The provider created the resource first, and a new hold can't undo that.",
			xr:     xr(Hold{}), mr: xptest.With(bucket, xptest.Annotated(xp.AnnotationCreateSucceeded, laterAt)), held: &Hold{Identity: xp.Unknown}, asksFor: x, want: want{Failed: true},
		},
		"NotHeld":   {reason: "The MR was to have no hold.", xr: xr(Hold{}), mr: bucket, asksFor: x},
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
			w.investigation.Held = func(id xp.ID) *Hold {
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
				h, err := HoldOf(xptest.Merge(c.Target, c.Patch))
				if err != nil {
					t.Fatal(err)
				}
				got.Marked, got.Mark = true, *h
				if !p.Moving || !strings.Contains(c.Warning.String(), "without its hold") {
					t.Errorf("%s\nthe plan must move and carry a warning: %+v", tc.reason, p)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Hold{}, "Of", "Restore", "Since", "Reason")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\n%+v", tc.reason, diff, p)
			}
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
		w.investigation.Held = func(xp.ID) *Hold { return &Hold{Quarantine: true} }
		p := Next(w, xp.RefTo(xr))
		h, err := HoldOf(xptest.Merge(xr, p.Patch))
		if err != nil || h == nil || !h.Quarantine || !h.Again || p.Step != StepAgain {
			t.Errorf("%s: got %+v, %+v, %v", name, h, p, err)
		}
	}
}
