package hold

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestCanTakeOver(t *testing.T) {
	fresh := xptest.Object("example.org/v1", "XOrder", "team-a", "x", xptest.Field("small", "spec", "size"))
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, bool]{
		"Fresh":    {Reason: "Crossplane has not reconciled the XR yet.", In: fresh, Want: true},
		"Paused":   {Reason: "Crossplane does not reconcile a paused XR.", In: xptest.With(fresh, xptest.Annotated(xp.AnnotationPaused, "true"), xptest.SeenPaused()), Want: true},
		"Composed": {Reason: "The listed resources exist or are about to be created.", In: xptest.With(xptest.XR("x"), xptest.Refs(xptest.MR("b")))},
		"Empty":    {Reason: "A reconciled XR with an empty list would delete the restored resources.", In: xptest.With(fresh, xptest.Reconciled())},
		"Claimed":  {Reason: "Crossplane created the XR for a claim.", In: xptest.With(fresh, xptest.ClaimedBy(xptest.Claim("o")))},
		"Bound":    {Reason: "The claim already has an XR.", In: xptest.Claim("o", xptest.OfXR(xptest.XR("x")))},
		"Deleting": {Reason: "The XR is being deleted.", In: xptest.With(fresh, xptest.Deleting())},
		"Restored": {Reason: "A restore created the XR.", In: xptest.With(fresh, xptest.Labelled(xp.LabelRestore, "monday"))},
		"Marked":   {Reason: "The XR is already held.", In: xptest.With(fresh, xptest.Annotated(Annotation, "{}"))},
	}, CanTakeOver)
}

// An XR that was taken over is held like a restored one, and keeps its spec.
func TestTakeOver(t *testing.T) {
	mr := xptest.NamespacedMR("b")
	backup := xptest.XRV2("x", xptest.Refs(mr), xptest.Field("small", "spec", "size"), xptest.Annotated(xp.AnnotationExternalName, "x-1"), xptest.Annotated("team", "theirs"))
	live := xptest.Object(backup.GetAPIVersion(), backup.GetKind(), backup.GetNamespace(), "x", xptest.Field("large", "spec", "size"), xptest.Annotated("team", "ours"))
	live.SetResourceVersion("7")
	change := xptest.Value(key.TakeOver(live, backup, Hold{Restore: "velero/monday"}, map[string]string{xp.LabelRestore: "monday"}))
	after := xptest.Merge(live, change.Patch)
	h := xptest.Value(key.HoldOf(after))
	size, _, _ := unstructured.NestedString(after.Object, "spec", "size")
	refs := xptest.Value(xp.CompositeFrom(after).ResourceRefs())
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
	want := result{Size: "large", Team: "ours", Name: "x-1", Version: "7", Restore: "monday", Refs: []xp.Ref{of}, Held: []xp.Ref{of}, Paused: true, Being: true, Whole: true}
	xptest.Same(t, want, got, "an XR that was taken over is held like a restored one, and keeps its spec")
	if metadata, _ := change.Patch["metadata"].(map[string]any); xp.Has(metadata, "finalizers") {
		t.Error("a takeover must not touch finalizers if the backup has none")
	}
	composed := xptest.With(after, xptest.Refs(xptest.NamespacedMR("anew")))
	if _, whole := key.IsBeingTakenOver(composed, backup); whole {
		t.Error("an XR with other composed resources must not count as whole")
	}
	back := xptest.Merge(composed, key.GiveUp(composed).Patch)
	if xp.IsPaused(back) || xp.HasAnnotation(back, Annotation) || xp.Label(back, xp.LabelRestore) != "" {
		t.Errorf("GiveUp must remove every mark of the takeover: %v %v", back.GetAnnotations(), back.GetLabels())
	}
}

// A claim gets the XR of the backup.
func TestTakeOverClaim(t *testing.T) {
	backup := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	live := xptest.Object(backup.GetAPIVersion(), backup.GetKind(), backup.GetNamespace(), "o")
	change := xptest.Value(Unverified.TakeOver(live, backup, Hold{Restore: "velero/monday"}, nil))
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
	change := xptest.Value(Unverified.TakeOver(live, xptest.XR("x", xptest.Refs(xptest.MR("b"))), Hold{Restore: "velero/monday"}, nil))
	if h := xptest.Value(Of(xptest.Merge(live, change.Patch))); h.Paused == nil || *h.Paused != "true" {
		t.Errorf("got %+v", h)
	}
}

func TestTakeOverRefuses(t *testing.T) {
	live := xptest.Object("example.org/v1", "XOrder", "", "x")
	if _, err := Unverified.TakeOver(live, xptest.XR("x"), Hold{}, nil); err == nil {
		t.Error("a takeover without backed-up fields must be refused")
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
	taken := xptest.XRV2("x", xptest.Refs(xptest.NamespacedMR("b")), xptest.Annotated(Annotation, "{}"), xptest.Annotated(xp.AnnotationPaused, "true"), managers(`[
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
	xptest.Same(t, want, got, "the inherited fields must have their managers of the backup, and the hold this plugin")
	if _, again := ReturnInherited(xptest.Merge(taken, p), item); again {
		t.Error("a second return must change nothing")
	}
}
