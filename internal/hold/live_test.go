package hold

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// heldLive returns a live object that the command hold holds.
func heldLive(t *testing.T, u *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
	t.Helper()
	change, why := key.HoldLive(u, time.Unix(0, 0))
	if !why.IsZero() || change.Patch == nil {
		t.Fatalf("cannot hold %s: %s", xp.String(u), why)
	}

	return xptest.With(xptest.Merge(u, change.Patch), o...)
}

func TestHoldLive(t *testing.T) {
	held := heldLive(t, xptest.MR("b"), xptest.SeenPaused())
	released, _ := key.Consent(held)
	copied := xptest.MR("c", xptest.Annotated(Annotation, xp.Annotation(held, Annotation)), xptest.Annotated(xp.AnnotationPaused, "true"))
	type want struct {
		Step  string
		Why   reason.Code
		Quiet reason.Code
	}
	cases := map[string]struct {
		reason string
		live   *unstructured.Unstructured
		want   want
	}{
		"XR":     {reason: "An XR is paused.", live: xptest.XR("x", xptest.Reconciled()), want: want{Step: StepPause, Quiet: reason.NotQuiet}},
		"Claim":  {reason: "A claim is paused.", live: xptest.Claim("o", xptest.Reconciled()), want: want{Step: StepPause, Quiet: reason.NotQuiet}},
		"MR":     {reason: "An MR is paused.", live: xptest.MR("b", xptest.Reconciled()), want: want{Step: StepPause, Quiet: reason.NotQuiet}},
		"Own":    {reason: "A user's own pause gets the mark, too.", live: xptest.MR("b", xptest.Annotated(xp.AnnotationPaused, "true")), want: want{Step: StepPause, Quiet: reason.NotQuiet}},
		"Held":   {reason: "What is held and quiet stays as it is.", live: held},
		"Unseen": {reason: "Until its provider reports the pause, a reconcile can be under way.", live: heldLive(t, xptest.MR("b")), want: want{Quiet: reason.AwaitingPauseReport}},
		"Unpause": {
			reason: "Another writer has removed the pause.", live: xptest.With(held, xptest.Annotated(xp.AnnotationPaused, "false"), xptest.Reconciled()),
			want: want{Step: stepPauseAgain, Quiet: reason.HoldRemoved},
		},
		"UnpausedJustNow": {
			reason: "The report of the earlier pause would count for a new one, while a reconcile goes on.", live: xptest.With(held, xptest.Annotated(xp.AnnotationPaused, "false")),
			want: want{Why: reason.AwaitingPauseReport, Quiet: reason.HoldRemoved},
		},
		"Untouched": {
			reason: "Its provider has not noticed it, and will create its external resource.",
			live:   xptest.MR("b", xptest.Without("metadata", "finalizers"), xptest.Without("metadata", "annotations")), want: want{Why: reason.AwaitingProvider, Quiet: reason.NotQuiet},
		},
		"Creating": {
			reason: "A provider that is paused during a create never notes the outcome.", live: xptest.MR("b", xptest.Annotated(xp.AnnotationCreatePending, "2026-01-01T00:00:00Z")),
			want: want{Why: reason.CreatePending, Quiet: reason.NotQuiet},
		},
		"Deleting":       {reason: "A deletion must end first.", live: xptest.MR("b", xptest.Deleting()), want: want{Why: reason.BeingDeleted, Quiet: reason.NotQuiet}},
		"DeletedInHold":  {reason: "A deletion during the hold would go on after it.", live: xptest.With(held, xptest.Deleting()), want: want{Quiet: reason.BeingDeleted}},
		"OfARestore":     {reason: "A restore still adopts it.", live: signedBy(t, xptest.XR("x"), Hold{Restore: "velero/monday"}), want: want{Why: reason.AwaitingAdoption, Quiet: reason.NotQuiet}},
		"Quarantined":    {reason: "A quarantine holds it already.", live: xptest.With(signedBy(t, xptest.MR("b"), Hold{Restore: "velero/monday", Quarantine: true}), xptest.SeenPaused())},
		"Forged":         {reason: "A mark of another object proves nothing.", live: copied, want: want{Why: reason.MarkForged, Quiet: reason.MarkForged}},
		"BeingReleased":  {reason: "After a release that was interrupted it is held again.", live: xptest.Merge(held, released), want: want{Step: stepPauseAgain, Quiet: reason.NotQuiet}},
		"NeverCreatedMR": {reason: "An MR without an external resource has nothing in flight.", live: xptest.MR("b"), want: want{Step: StepPause, Quiet: reason.NotQuiet}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			change, why := key.HoldLive(tc.live, time.Unix(0, 0))
			got := want{Step: change.Step, Why: why.Code, Quiet: key.WhyNotQuiet(tc.live).Code}
			xptest.Same(t, tc.want, got, tc.reason)
			if change.Patch == nil {
				return
			}
			after := xptest.Merge(tc.live, change.Patch)
			h, err := key.HoldOf(after)
			if err != nil || !h.IsByCommand() || !xp.IsPaused(after) {
				t.Errorf("%s\nafter the change: %v, %v, paused: %t", tc.reason, h, err, xp.IsPaused(after))
			}
			back := xptest.Merge(after, ReleasePatch(after, h))
			if diff := cmp.Diff(xptest.Stored(tc.live), xptest.Stored(back)); diff != "" && tc.want.Step == StepPause {
				t.Errorf("%s\n-before, +released:\n%s", tc.reason, diff)
			}
		})
	}
}

// signedBy returns an object with a signed hold.
func signedBy(t *testing.T, u *unstructured.Unstructured, h Hold) *unstructured.Unstructured {
	t.Helper()
	xptest.Value(Put(u, h))
	xptest.Must(t, key.Sign(u, u.GetNamespace()))

	return u
}

// Crossplane can't report during the hold why it fails. The restore compares with what it reported
// before: as broken as it was, the XR is adopted.
func TestHoldLiveNotesWhatFails(t *testing.T) {
	failing := xptest.XR("x", xptest.Synced("False", "ReconcileError", "no such function"))
	h, err := key.HoldOf(heldLive(t, failing, xptest.SeenPaused()))
	if err != nil || h.Failing != FailingOf(failing) || h.Failing == "" {
		t.Fatalf("noted %+v, error %v", h, err)
	}
	restored, err := Put(heldLive(t, failing, xptest.SeenPaused()), Hold{Restore: "velero/moved"})
	if err != nil || restored.Failing != h.Failing {
		t.Errorf("restored with %+v, error %v", restored, err)
	}
}
