package restoreitem

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// copied is the result for an item that is restored from team-a to the namespace copy.
type copied struct {
	Skip bool
	Op   string
	// Clone is the original in the hold, and Held reports whether there is a hold.
	Clone  string
	Held   bool
	Paused bool
	// Policies are the managementPolicies.
	Policies     []string
	ExternalName string
	Finalizers   []string
}

func copyOf(out adopted) copied {
	got := copied{Skip: out.SkipRestore, Op: out.OperationID}
	u := out.object
	if u == nil {
		return got
	}
	h, _ := adoption.HoldOf(u)
	if h != nil {
		got.Held, got.Clone = true, h.Clone
	}
	got.Paused, got.ExternalName, got.Finalizers = xp.IsPaused(u), u.GetAnnotations()[xp.AnnotationExternalName], u.GetFinalizers()
	got.Policies, _, _ = unstructured.NestedStringSlice(u.Object, "spec", "managementPolicies")

	return got
}

func toCopy() map[string]string { return map[string]string{"team-a": "copy"} }

func set(clone string) map[string]string { return map[string]string{"clone": clone} }

// Two objects that manage the same external resource undo each other's changes, and deleting one
// deletes the other's resource.
func TestAdoptCopies(t *testing.T) {
	xr := xptest.XRV2("x")
	free := xptest.NamespacedMR("b", xptest.Annotated(xp.AnnotationExternalName, "external"))
	mr := xptest.With(free, xptest.ControlledBy(xr))
	xr = xptest.With(xr, xptest.Refs(mr))
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")), xptest.PublishesTo("", "s"))
	secret := xptest.Secret("s", xptest.ControlledBy(claim))
	config := xptest.Object("example.org/v1", "Thing", "team-a", "t", xptest.ControlledBy(xr))
	plain := xptest.Object("m.example.org/v1", "ProviderConfig", "team-a", "default")
	in := func(objects []*unstructured.Unstructured, clone string) *cluster {
		c := live(objects...)
		if clone != "" {
			c.config = set(clone)
		}

		return c
	}
	all := []*unstructured.Unstructured{xr, mr, claim, secret}
	other := xptest.NamespacedMR("other", xptest.In("team-z"), xptest.Annotated(xp.AnnotationExternalName, "external"))
	self := xptest.With(free, xptest.In("copy"))
	const xrOp, claimOp = "Order.v1.example.org/copy/x", "OrderClaim.v1alpha1.example.org/copy/o"
	observe, finalizer := []string{"Observe"}, []string{xp.FinalizerManaged}
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		live   *cluster
		want   copied
	}{
		"XR": {
			reason: "A copy stays held by default, and its operation fails so that the restore is not reported as complete.", item: xr, live: in(all, ""),
			want: copied{Op: xrOp, Held: true, Clone: "Order team-a/x", Paused: true},
		},
		"HeldXR": {
			reason: "The setting can name the default.", item: xr, live: in(all, "hold"), want: copied{Op: xrOp, Held: true, Clone: "Order team-a/x", Paused: true},
		},
		"ObservedXR": {
			reason: "The Composition may not support observing, so the XR stays held, and the restore is complete.", item: xr, live: in(all, "observe"),
			want: copied{Held: true, Clone: "Order team-a/x", Paused: true},
		},
		"NewXR": {reason: "The copy composes new resources.", item: xr, live: in(all, "new"), want: copied{Finalizers: []string{xp.FinalizerComposite}}},
		"Claim": {
			reason: "A copied claim stays held by default.", item: claim, live: in(all, ""), want: copied{Op: claimOp, Held: true, Clone: "OrderClaim team-a/o", Paused: true},
		},
		"ObservedClaim": {
			reason: "A claim has one XR, and that XR belongs to the original.", item: claim, live: in(all, "observe"),
			want: copied{Op: claimOp, Held: true, Clone: "OrderClaim team-a/o", Paused: true},
		},
		"NewClaim": {reason: "The copied claim gets its own XR.", item: claim, live: in(all, "new"), want: copied{Finalizers: []string{xp.FinalizerClaim}}},
		"MR": {
			reason: "A copied MR would manage the external resource of the original.", item: mr, live: in(all, ""),
			want: copied{Held: true, Clone: "Order team-a/x", Paused: true, ExternalName: "external"},
		},
		"ObservedMR": {
			reason: "Two MRs can observe the same external resource.", item: xptest.With(mr, policies(`["*"]`)), live: in(all, "observe"), want: copied{Policies: observe, ExternalName: "external", Finalizers: finalizer},
		},
		"NewMR": {reason: "The copied XR composes a new MR.", item: mr, live: in(all, "new"), want: copied{Skip: true}},
		"FreeMR": {
			reason: "An MR without an XR can be a copy too.", item: free, live: in([]*unstructured.Unstructured{free}, ""),
			want: copied{Held: true, Clone: "Bucket team-a/b", Paused: true, ExternalName: "external", Op: "Bucket.v1alpha1.cloud.example.org/copy/b"},
		},
		"ObservedFreeMR": {
			reason: "A copied MR without an XR can observe too.", item: xptest.With(free, policies(`["*"]`)), live: in([]*unstructured.Unstructured{free}, "observe"),
			want: copied{Policies: observe, ExternalName: "external", Finalizers: finalizer},
		},
		"ObservedWithoutPolicies": {
			reason: "The API server drops policies that the kind lacks, so both MRs would manage one resource.", item: mr, live: in(all, "observe"),
			want: copied{Held: true, Clone: "Order team-a/x", Paused: true, ExternalName: "external"},
		},
		"NewFreeMR": {
			reason: "Without its external-name the copy creates its own external resource.", item: free, live: in([]*unstructured.Unstructured{free}, "new"),
			want: copied{Finalizers: finalizer},
		},
		"NewFreeMRByName": {
			reason: "A provider that derives the external-name from the MR's name would find the original's resource.", item: xptest.NamespacedMR("b"),
			live: in([]*unstructured.Unstructured{xptest.NamespacedMR("b")}, "new"),
			want: copied{Held: true, Clone: "Bucket team-a/b", Paused: true, ExternalName: "b", Op: "Bucket.v1alpha1.cloud.example.org/copy/b"},
		},
		"ManagedByOtherMR": {
			reason: "Two MRs must not manage one external resource.", item: free, live: in([]*unstructured.Unstructured{other}, ""),
			want: copied{Held: true, Clone: "Bucket team-z/other", Paused: true, ExternalName: "external", Op: "Bucket.v1alpha1.cloud.example.org/copy/b"},
		},
		"MovedMR": {
			reason: "The original is gone, so the MR is no copy.", item: free, live: in(nil, ""), want: copied{ExternalName: "external", Finalizers: finalizer},
		},
		"Itself": {
			reason: "An MR that is restored again is not a copy of itself.", item: free, live: in([]*unstructured.Unstructured{self}, ""),
			want: copied{ExternalName: "external", Finalizers: finalizer},
		},
		"UnnamedMR": {
			reason: "An MR that was never created manages no external resource.", item: xptest.With(free, xptest.Without("metadata", "annotations"),
				xptest.Annotated(xp.AnnotationCreateFailed, "2026-01-02T03:04:05Z")), live: in(all, ""),
			want: copied{Finalizers: finalizer},
		},
		"Secret": {
			reason: "No controller reconciles a Secret.", item: secret, live: in(all, ""), want: copied{},
		},
		"NewSecret": {reason: "The copied publisher creates a new Secret.", item: secret, live: in(all, "new"), want: copied{Skip: true}},
		"Composed":  {reason: "No provider reconciles this composed resource.", item: config, live: in(all, ""), want: copied{}},
		"Other":     {reason: "An object that MRs only refer to manages no external resource.", item: plain, live: in(append(all, plain), ""), want: copied{}},
		"MovedXR": {
			reason: "The original is gone, so the XR is no copy.", item: xr, live: in(nil, ""),
			want: copied{Op: xrOp, Held: true, Paused: true, Finalizers: []string{xp.FinalizerComposite}},
		},
		"ClusterXR": {
			reason: "A namespace mapping does not copy cluster-scoped objects.", item: xptest.XR("x"), live: in([]*unstructured.Unstructured{xptest.XR("x")}, ""),
			want: copied{Op: operation, Held: true, Paused: true, Finalizers: []string{xp.FinalizerComposite}},
		},
		"ComposedByCluster": {
			reason: "Resources of a cluster-scoped XR are no copies while no other MR manages them.", item: xptest.NamespacedMR("b", xptest.ControlledBy(xptest.XR("x"))),
			live: in([]*unstructured.Unstructured{heldWith(xptest.XR("x", xptest.Refs(self)))}, ""), want: copied{ExternalName: "b", Finalizers: finalizer},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := adopt(t, tc.live, tc.item, restoreOf(toCopy()))
			if out.err != nil {
				t.Fatal(out.err)
			}
			if diff := cmp.Diff(tc.want, copyOf(out), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if tc.want.Clone != "" && (len(out.logged) == 0 || !strings.Contains(out.logged[len(out.logged)-1], tc.want.Clone)) {
				t.Errorf("%s\nwant a warning, got: %v", tc.reason, out.logged)
			}
			if out.object != nil && xp.HasBackupMetadata(out.object) {
				t.Errorf("%s\nthe plugin's fields in the backup must not get into the cluster", tc.reason)
			}
		})
	}
}

// A copy with resources of its own must not refer to what the original composed.
func TestAdoptNewCopiesDropReferences(t *testing.T) {
	mr := xptest.NamespacedMR("b")
	xr := xptest.XRV2("x", xptest.Refs(mr), xptest.RestoreFirst("a.b//c"), xptest.Annotated("theirs", "kept"), xptest.Annotated(xp.AnnotationExternalName, "x"))
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	free := xptest.NamespacedMR("b", xptest.Annotated(xp.AnnotationExternalName, "external"), xptest.Annotated(xp.AnnotationCreatePending, "p"),
		xptest.Annotated(xp.AnnotationCreateSucceeded, "s"), xptest.Annotated(xp.AnnotationCreateFailed, "f"), xptest.Annotated("theirs", "kept"))
	paused, automatic := xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Policy("Automatic")
	newXR := xptest.XRV2("x", xptest.Annotated("theirs", "kept"))
	newMR := xptest.NamespacedMR("b", xptest.Without("metadata", "annotations"), xptest.Annotated("theirs", "kept"))
	for name, tc := range map[string]struct{ item, want *unstructured.Unstructured }{
		"XR":    {item: xr, want: newXR},
		"Claim": {item: claim, want: xptest.Claim("o")},
		"MR":    {item: free, want: newMR},
		// No operation releases an item that was held at backup time, so it comes back with its own
		// settings.
		"HeldXR":           {item: heldWith(xr), want: newXR},
		"HeldXROwn":        {item: heldWith(xptest.With(xr, paused, automatic)), want: xptest.With(newXR, paused, automatic)},
		"HeldXRUnpinned":   {item: heldWith(xptest.With(xr, xptest.NeverComposed())), want: xptest.With(newXR, xptest.NeverComposed())},
		"XRHeldAsACopy":    {item: copiedXR(xr), want: newXR},
		"HeldClaim":        {item: heldWith(claim), want: xptest.Claim("o")},
		"HeldClaimOwn":     {item: heldWith(xptest.With(claim, paused, automatic)), want: xptest.Claim("o", paused, automatic)},
		"HeldMR":           {item: marked(free), want: newMR},
		"HeldMROwn":        {item: marked(xptest.With(free, paused)), want: xptest.With(newMR, paused)},
		"NotHeldButPaused": {item: xptest.With(free, paused), want: xptest.With(newMR, paused)},
	} {
		c := live(tc.item)
		c.config = set("new")
		out := adopt(t, c, tc.item, restoreOf(toCopy()))
		if out.err != nil {
			t.Fatal(out.err)
		}
		if len(out.object.GetAnnotations()) == 0 {
			out.object.SetAnnotations(nil) // The API server does the same.
		}
		if diff := cmp.Diff(stripped(tc.want), out.object, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
}

func TestAdoptMapsReferences(t *testing.T) {
	claim := xptest.Claim("o")
	xr := xptest.XR("x", xptest.ClaimedBy(claim), xptest.Labelled(xp.LabelClaimNamespace, "team-a"), xptest.Refs(xptest.NamespacedMR("b"), xptest.MR("c")))
	out := adopt(t, live(), xr, restoreOf(toCopy()))
	if out.err != nil {
		t.Fatal(out.err)
	}
	if r, _ := xp.CompositeFrom(out.object).ClaimRef(); r.Namespace != "copy" || out.object.GetLabels()[xp.LabelClaimNamespace] != "copy" {
		t.Errorf("The XR must name the claim in the mapped namespace; got %+v, %v", r, out.object.GetLabels())
	}
	h, err := adoption.HoldOf(out.object)
	want := []xp.Ref{xp.RefTo(xptest.NamespacedMR("b", xptest.In("copy"))), xp.RefTo(xptest.MR("c"))}
	if err != nil || h == nil {
		t.Fatal(h, err)
	}
	if diff := cmp.Diff(want, h.Refs); diff != "" {
		t.Errorf("The hold must name objects in the mapped namespace: -want, +got:\n%s", diff)
	}
}

func TestAdoptCopiesErrors(t *testing.T) {
	xr, mr := xptest.XRV2("x"), xptest.NamespacedMR("b")
	unreadable := xptest.XRV2("x", xptest.JSON(`{"spec":{"crossplane":{"resourceRefs":7}}}`))
	oddXR := xptest.XRV2("x", xptest.Field("x", "spec"), xptest.Annotated(adoption.AnnotationHold, `{"pinned":true,"compositionUpdatePolicy":"Manual"}`))
	anew := live(oddXR)
	anew.config = set("new")
	for name, tc := range map[string]struct {
		reason string
		item   *unstructured.Unstructured
		live   *cluster
		want   string
	}{
		"Original": {
			reason: "A temporary API error must not decide whether an XR is a copy.",
			item:   xr, live: failingCluster(errAPI), want: "cannot find out whether Order team-a/x is a copy of something alive: ",
		},
		"Name":     {reason: "A temporary API error must not decide whether an MR is a copy.", item: mr, live: failingCluster(errAPI), want: "cannot find out who else manages the external resource of Bucket team-a/b: "},
		"Refs":     {reason: "Unreadable resourceRefs cannot be checked later.", item: unreadable, live: live(xr), want: "cannot read the resourceRefs of Order "},
		"Settings": {reason: "The plugin must be able to restore the XR's own settings later.", item: oddXR, live: anew, want: "cannot set the composition update policy of Order "},
	} {
		out := adopt(t, tc.live, tc.item, restoreOf(toCopy()))
		if out.err == nil || !strings.HasPrefix(out.err.Error(), tc.want) || tc.live.err != nil && !errors.Is(out.err, errAPI) {
			t.Errorf("%s: %s\ngot error %v, want %s", name, tc.reason, out.err, tc.want)
		}
	}
}

// A live cluster-scoped XR lists the original, so it owns that and not the copy.
func TestAdoptHeldCopiesHaveNoOldOwners(t *testing.T) {
	xr := xptest.XR("x", xptest.Refs(xptest.NamespacedMR("b")))
	mr := xptest.NamespacedMR("b", xptest.ControlledBy(xr), xptest.Field([]any{map[string]any{
		"manager": "crossplane", "fieldsV1": map[string]any{"f:metadata": map[string]any{"f:ownerReferences": map[string]any{`k:{"uid":"` + string(xr.GetUID()) + `"}`: map[string]any{}}}},
	}}, "metadata", "managedFields"))
	out := adopt(t, live(xr, mr), mr, restoreOf(toCopy()))
	if out.err != nil {
		t.Fatal(out.err)
	}
	if got := copyOf(out); !got.Held || got.Skip {
		t.Errorf("a copy must stay held, whatever its owner: %+v", got)
	}
	if len(out.object.GetOwnerReferences()) > 0 || strings.Contains(fmt.Sprint(out.object.Object["metadata"]), `k:{"uid"`) {
		t.Errorf("a copy must not have the owner of the original: %v", out.object.Object["metadata"])
	}
	for _, line := range out.logged {
		if strings.Contains(line, "not restored") {
			t.Errorf("the log must not deny the restore: %s", line)
		}
	}
}
