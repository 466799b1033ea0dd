package adoption

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestCanTakeOver(t *testing.T) {
	fresh := xptest.Object("example.org/v1", "XOrder", "team-a", "x", xptest.Field("small", "spec", "size"))
	cases := map[string]struct {
		reason string
		live   *unstructured.Unstructured
		want   bool
	}{
		"Fresh":    {reason: "Crossplane has not reconciled the XR yet.", live: fresh, want: true},
		"Paused":   {reason: "Crossplane does not reconcile a paused XR.", live: xptest.With(fresh, xptest.Annotated(xp.AnnotationPaused, "true"), xptest.SeenPaused()), want: true},
		"Composed": {reason: "The listed resources exist or are about to be created.", live: xptest.With(xptest.XR("x"), xptest.Refs(xptest.MR("b")))},
		"Empty":    {reason: "A reconciled XR with an empty list would delete the restored resources.", live: xptest.With(fresh, xptest.Reconciled())},
		"Claimed":  {reason: "Crossplane created the XR for a claim.", live: xptest.With(fresh, xptest.ClaimedBy(xptest.Claim("o")))},
		"Bound":    {reason: "The claim already has an XR.", live: xptest.Claim("o", xptest.OfXR(xptest.XR("x")))},
		"Deleting": {reason: "The XR is being deleted.", live: xptest.With(fresh, xptest.Deleting())},
		"Restored": {reason: "A restore created the XR.", live: xptest.With(fresh, xptest.Labelled(xp.LabelRestore, "monday"))},
		"Marked":   {reason: "The XR is already held.", live: xptest.With(fresh, xptest.Annotated(AnnotationHold, "{}"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := CanTakeOver(tc.live); got != tc.want {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
}

// An XR that was taken over is held like a restored one, and keeps its spec.
func TestTakeOver(t *testing.T) {
	key := Key("0123456789abcdef0123456789abcdef")
	mr := xptest.NamespacedMR("b")
	backup := xptest.XRV2("x", xptest.Refs(mr), xptest.Field("small", "spec", "size"), xptest.Annotated(xp.AnnotationExternalName, "x-1"),
		xptest.Annotated("team", "theirs"))
	live := xptest.Object(backup.GetAPIVersion(), backup.GetKind(), backup.GetNamespace(), "x", xptest.Field("large", "spec", "size"),
		xptest.Annotated("team", "ours"))
	live.SetResourceVersion("7")
	change := must(key.TakeOver(live, backup, Hold{Restore: "velero/monday"}, map[string]string{xp.LabelRestore: "monday"}))
	after := xptest.Merge(live, change.Patch)
	h := must(key.HoldOf(after))
	size, _, _ := unstructured.NestedString(after.Object, "spec", "size")
	refs := must(xp.CompositeFrom(after).ResourceRefs())
	type result struct {
		Size, Team, Name, Version, Restore string
		Refs, Held                         []xp.Ref
		Paused, Being, Whole               bool
	}
	being, whole := key.IsBeingTakenOver(after, backup)
	version, _, _ := unstructured.NestedString(change.Patch, "metadata", "resourceVersion")
	got := result{
		Size: size, Team: xp.Annotation(after, "team"), Name: xp.Annotation(after, xp.AnnotationExternalName), Version: version,
		Restore: xp.Label(after, xp.LabelRestore), Refs: refs, Held: h.Refs, Paused: xp.IsPaused(after), Being: being, Whole: whole,
	}
	of := xp.RefTo(mr)
	want := result{
		Size: "large", Team: "ours", Name: "x-1", Version: "7", Restore: "monday", Refs: []xp.Ref{of}, Held: []xp.Ref{of}, Paused: true, Being: true, Whole: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if metadata, _ := change.Patch["metadata"].(map[string]any); xp.Has(metadata, "finalizers") {
		t.Error("a takeover must not touch finalizers if the backup has none")
	}
	composed := xptest.With(after, xptest.Refs(xptest.NamespacedMR("anew")))
	if _, whole := key.IsBeingTakenOver(composed, backup); whole {
		t.Error("an XR with other composed resources must not count as whole")
	}
	back := xptest.Merge(composed, key.GiveUp(composed).Patch)
	if xp.IsPaused(back) || xp.HasAnnotation(back, AnnotationHold) || xp.Label(back, xp.LabelRestore) != "" {
		t.Errorf("GiveUp must remove every mark of the takeover: %v %v", back.GetAnnotations(), back.GetLabels())
	}
}

// A claim gets the XR of the backup.
func TestTakeOverClaim(t *testing.T) {
	backup := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	live := xptest.Object(backup.GetAPIVersion(), backup.GetKind(), backup.GetNamespace(), "o")
	change := must(Unverified.TakeOver(live, backup, Hold{Restore: "velero/monday"}, nil))
	after := xptest.Merge(live, change.Patch)
	r, _ := xp.ClaimFrom(after).CompositeRef()
	if being, whole := Unverified.IsBeingTakenOver(after, backup); r.Name != "x" || !being || !whole {
		t.Errorf("got XR %q, being taken over: %t, as in the backup: %t", r.Name, being, whole)
	}
	other := xptest.With(after, xptest.OfXR(xptest.XR("another")))
	if _, whole := Unverified.IsBeingTakenOver(other, backup); whole {
		t.Error("a claim with another XR must not count as whole")
	}
}

// The hold keeps the pause of a user, to give it back.
func TestTakeOverPaused(t *testing.T) {
	live := xptest.XR("x", xptest.Without("spec", "resourceRefs"), xptest.Annotated(xp.AnnotationPaused, "true"))
	change := must(Unverified.TakeOver(live, xptest.XR("x", xptest.Refs(xptest.MR("b"))), Hold{Restore: "velero/monday"}, nil))
	if h := must(HoldOf(xptest.Merge(live, change.Patch))); h.Paused == nil || *h.Paused != "true" {
		t.Errorf("got %+v", h)
	}
}

func TestTakeOverRefuses(t *testing.T) {
	live := xptest.Object("example.org/v1", "XOrder", "", "x")
	if _, err := Unverified.TakeOver(live, xptest.XR("x"), Hold{}, nil); err == nil {
		t.Error("a takeover without backed-up fields must be refused")
	}
}

func TestNextOfTakenOver(t *testing.T) {
	mr := xptest.MR("b")
	given := xptest.XR("x", xptest.Refs(mr))
	live := xptest.XR("x", xptest.Without("spec", "resourceRefs"), xptest.Without("metadata", "finalizers"))
	change := must(Unverified.TakeOver(live, given, Hold{Restore: "velero/monday"}, nil))
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
			w := NewSnapshot(Unverified)
			w.AddRestored(tc.xr)
			w.AddRestored(xptest.With(mr, xptest.ControlledBy(tc.xr), xptest.Reconciled()))
			p := Next(w, xp.RefTo(tc.xr))
			got := want{Lost: p.Lost, Waits: p.Patch == nil && p.Moving}
			if p.Patch != nil && p.Lost {
				got.Free = !xp.IsPaused(xptest.Merge(tc.xr, p.Patch))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\n%+v", tc.reason, diff, p)
			}
		})
	}
}

// The inherited fields have their managers of the backup, and the hold has this plugin.
func TestReturnInherited(t *testing.T) {
	managers := func(entries string) xptest.Option {
		return xptest.JSON(`{"metadata":{"managedFields":` + entries + `}}`)
	}
	item := xptest.XRV2("x", xptest.Refs(xptest.NamespacedMR("b")), managers(`[
		{"manager":"crossplane","operation":"Apply","apiVersion":"v1","fieldsV1":{"f:spec":{"f:crossplane":{"f:resourceRefs":{}}}}},
		{"manager":"crossplane","operation":"Update","apiVersion":"v1","fieldsV1":{"f:metadata":{"f:finalizers":{".":{},"v:\"a\"":{}}},"f:other":{}}},
		{"manager":"crossplane","operation":"Update","apiVersion":"v1","subresource":"status","fieldsV1":{"f:status":{}}}]`))
	taken := xptest.XRV2("x", xptest.Refs(xptest.NamespacedMR("b")), xptest.Annotated(AnnotationHold, "{}"), xptest.Annotated(xp.AnnotationPaused, "true"), managers(`[
		{"manager":"argocd","operation":"Apply","apiVersion":"v1","fieldsV1":{"f:spec":{"f:size":{}}}},
		{"manager":"`+FieldManager+`","operation":"Update","apiVersion":"v1","fieldsV1":{"f:metadata":{"f:annotations":{"f:crossplane.io/paused":{}},
			"f:finalizers":{".":{},"v:\"a\"":{}}},"f:spec":{"f:crossplane":{"f:resourceRefs":{}}}}}]`))
	p, ok := ReturnInherited(taken, item)
	if !ok {
		t.Fatal("there must be managers to return")
	}
	got := entriesOf(xptest.Merge(taken, p))
	want := entriesOf(xptest.XRV2("x", managers(`[
		{"manager":"argocd","operation":"Apply","apiVersion":"v1","fieldsV1":{"f:spec":{"f:size":{}}}},
		{"manager":"`+FieldManager+`","operation":"Update","apiVersion":"v1","fieldsV1":{"f:metadata":{"f:annotations":{"f:crossplane.io/paused":{}}}}},
		{"manager":"crossplane","operation":"Apply","apiVersion":"v1","fieldsV1":{"f:spec":{"f:crossplane":{"f:resourceRefs":{}}}}},
		{"manager":"crossplane","operation":"Update","apiVersion":"v1","fieldsV1":{"f:metadata":{"f:finalizers":{".":{},"v:\"a\"":{}}}}}]`)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if _, again := ReturnInherited(xptest.Merge(taken, p), item); again {
		t.Error("a second return must change nothing")
	}
}

var liveKey = Key("0123456789abcdef0123456789abcdef")

// heldLive returns a live object that the command hold holds.
func heldLive(t *testing.T, u *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
	t.Helper()
	change, why := liveKey.HoldLive(u, time.Unix(0, 0))
	if !why.IsZero() || change.Patch == nil {
		t.Fatalf("cannot hold %s: %s", xp.String(u), why)
	}

	return xptest.With(xptest.Merge(u, change.Patch), o...)
}

func TestHoldLive(t *testing.T) {
	held := heldLive(t, xptest.MR("b"), xptest.SeenPaused())
	copied := xptest.MR("c", xptest.Annotated(AnnotationHold, xp.Annotation(held, AnnotationHold)), xptest.Annotated(xp.AnnotationPaused, "true"))
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
		"XR":     {reason: "An XR is paused.", live: xptest.XR("x", xptest.Reconciled()), want: want{Step: StepHoldLive, Quiet: reason.NotQuiet}},
		"Claim":  {reason: "A claim is paused.", live: xptest.Claim("o", xptest.Reconciled()), want: want{Step: StepHoldLive, Quiet: reason.NotQuiet}},
		"MR":     {reason: "An MR is paused.", live: xptest.MR("b", xptest.Reconciled()), want: want{Step: StepHoldLive, Quiet: reason.NotQuiet}},
		"Own":    {reason: "A user's own pause gets the mark, too.", live: xptest.MR("b", xptest.Annotated(xp.AnnotationPaused, "true")), want: want{Step: StepHoldLive, Quiet: reason.NotQuiet}},
		"Held":   {reason: "What is held and quiet stays as it is.", live: held},
		"Unseen": {reason: "Until its provider reports the pause, a reconcile can be under way.", live: heldLive(t, xptest.MR("b")), want: want{Quiet: reason.AwaitingPauseReport}},
		"Unpause": {
			reason: "Another writer has removed the pause.", live: xptest.With(held, xptest.Annotated(xp.AnnotationPaused, "false"), xptest.Reconciled()),
			want: want{Step: StepHoldAgain, Quiet: reason.HoldRemoved},
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
		"BeingReleased":  {reason: "After a release that was interrupted it is held again.", live: consented(held), want: want{Step: StepHoldAgain, Quiet: reason.NotQuiet}},
		"NeverCreatedMR": {reason: "An MR without an external resource has nothing in flight.", live: xptest.MR("b"), want: want{Step: StepHoldLive, Quiet: reason.NotQuiet}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			change, why := liveKey.HoldLive(tc.live, time.Unix(0, 0))
			got := want{Step: change.Step, Why: why.Code, Quiet: liveKey.WhyNotQuiet(tc.live).Code}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if change.Patch == nil {
				return
			}
			after := xptest.Merge(tc.live, change.Patch)
			h, err := liveKey.HoldOf(after)
			if err != nil || !h.IsByCommand() || !xp.IsPaused(after) {
				t.Errorf("%s\nafter the change: %v, %v, paused: %t", tc.reason, h, err, xp.IsPaused(after))
			}
			back := xptest.Merge(after, ReleasePatch(after, h))
			if diff := cmp.Diff(asStored(tc.live), asStored(back)); diff != "" && tc.want.Step == StepHoldLive {
				t.Errorf("%s\n-before, +released:\n%s", tc.reason, diff)
			}
		})
	}
}

// signedBy returns an object with a signed hold.
func signedBy(t *testing.T, u *unstructured.Unstructured, h Hold) *unstructured.Unstructured {
	t.Helper()
	must(Put(u, h))
	if err := liveKey.Sign(u, u.GetNamespace()); err != nil {
		t.Fatal(err)
	}

	return u
}

// consented returns a held object whose release was interrupted.
func consented(held *unstructured.Unstructured) *unstructured.Unstructured {
	p, _ := liveKey.Consent(held)

	return xptest.Merge(held, p)
}

// Crossplane can't report during the hold why it fails. The restore compares with what it reported
// before: as broken as it was, the XR is adopted.
func TestHoldLiveNotesWhatFails(t *testing.T) {
	failing := xptest.XR("x", xptest.Synced("False", "ReconcileError", "no such function"))
	h, err := liveKey.HoldOf(heldLive(t, failing, xptest.SeenPaused()))
	if err != nil || h.Failing != FailingOf(failing) || h.Failing == "" {
		t.Fatalf("noted %+v, error %v", h, err)
	}
	restored, err := Put(heldLive(t, failing, xptest.SeenPaused()), Hold{Restore: "velero/moved"})
	if err != nil || restored.Failing != h.Failing {
		t.Errorf("restored with %+v, error %v", restored, err)
	}
}
