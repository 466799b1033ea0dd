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
	xr := xptest.ModernXR("x")
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
			reason: "By default a copy does nothing. Its operation fails, so that nobody takes the restore for complete.", item: xr, live: in(all, ""),
			want: copied{Op: xrOp, Held: true, Clone: "Order team-a/x", Paused: true},
		},
		"HeldXR": {
			reason: "The same if somebody says so.", item: xr, live: in(all, "hold"), want: copied{Op: xrOp, Held: true, Clone: "Order team-a/x", Paused: true},
		},
		"ObservedXR": {
			reason: "What its MRs observe its Composition may not have, so the XR is held, and the restore is complete.", item: xr, live: in(all, "observe"),
			want: copied{Held: true, Clone: "Order team-a/x", Paused: true},
		},
		"NewXR": {reason: "It composes anew.", item: xr, live: in(all, "new"), want: copied{Finalizers: []string{xp.FinalizerComposite}}},
		"Claim": {
			reason: "The same for a claim.", item: claim, live: in(all, ""), want: copied{Op: claimOp, Held: true, Clone: "OrderClaim team-a/o", Paused: true},
		},
		"ObservedClaim": {
			reason: "A claim has one XR, which is that of the original.", item: claim, live: in(all, "observe"),
			want: copied{Op: claimOp, Held: true, Clone: "OrderClaim team-a/o", Paused: true},
		},
		"NewClaim": {reason: "It gets an XR of its own.", item: claim, live: in(all, "new"), want: copied{Finalizers: []string{xp.FinalizerClaim}}},
		"MR": {
			reason: "An MR of the copy would manage the original's resource.", item: mr, live: in(all, ""),
			want: copied{Held: true, Clone: "Order team-a/x", Paused: true, ExternalName: "external"},
		},
		"ObservedMR": {
			reason: "To observe does no harm.", item: xptest.With(mr, policies(`["*"]`)), live: in(all, "observe"), want: copied{Policies: observe, ExternalName: "external", Finalizers: finalizer},
		},
		"NewMR": {reason: "The copy of the XR makes its own.", item: mr, live: in(all, "new"), want: copied{Skip: true}},
		"FreeMR": {
			reason: "An MR that nothing composed is one too.", item: free, live: in([]*unstructured.Unstructured{free}, ""),
			want: copied{Held: true, Clone: "Bucket team-a/b", Paused: true, ExternalName: "external", Op: "Bucket.v1alpha1.cloud.example.org/copy/b"},
		},
		"ObservedFreeMR": {
			reason: "The same.", item: xptest.With(free, policies(`["*"]`)), live: in([]*unstructured.Unstructured{free}, "observe"),
			want: copied{Policies: observe, ExternalName: "external", Finalizers: finalizer},
		},
		"ObservedWithoutPolicies": {
			reason: "The API server drops the policies of a kind that has none, and both would manage the same.", item: mr, live: in(all, "observe"),
			want: copied{Held: true, Clone: "Order team-a/x", Paused: true, ExternalName: "external"},
		},
		"NewFreeMR": {
			reason: "Without its external-name it makes a resource of its own.", item: free, live: in([]*unstructured.Unstructured{free}, "new"),
			want: copied{Finalizers: finalizer},
		},
		"NewFreeMRByName": {
			reason: "A provider that names the resource as the MR would find the original's.", item: xptest.NamespacedMR("b"),
			live: in([]*unstructured.Unstructured{xptest.NamespacedMR("b")}, "new"),
			want: copied{Held: true, Clone: "Bucket team-a/b", Paused: true, ExternalName: "b", Op: "Bucket.v1alpha1.cloud.example.org/copy/b"},
		},
		"AnothersMR": {
			reason: "Whoever manages the resource, there must not be two.", item: free, live: in([]*unstructured.Unstructured{other}, ""),
			want: copied{Held: true, Clone: "Bucket team-z/other", Paused: true, ExternalName: "external", Op: "Bucket.v1alpha1.cloud.example.org/copy/b"},
		},
		"MovedMR": {
			reason: "If the original is gone, it is no copy.", item: free, live: in(nil, ""), want: copied{ExternalName: "external", Finalizers: finalizer},
		},
		"Itself": {
			reason: "What is restored again is no copy of itself.", item: free, live: in([]*unstructured.Unstructured{self}, ""),
			want: copied{ExternalName: "external", Finalizers: finalizer},
		},
		"UnnamedMR": {
			reason: "An MR that was never made manages nothing.", item: xptest.With(free, xptest.Without("metadata", "annotations"),
				xptest.Annotated(xp.AnnotationCreateFailed, "2026-01-02T03:04:05Z")), live: in(all, ""),
			want: copied{Finalizers: finalizer},
		},
		"Secret": {
			reason: "A Secret does nothing by itself.", item: secret, live: in(all, ""), want: copied{},
		},
		"NewSecret": {reason: "The copy publishes its own.", item: secret, live: in(all, "new"), want: copied{Skip: true}},
		"Composed":  {reason: "What no provider reconciles does nothing by itself.", item: config, live: in(all, ""), want: copied{}},
		"Other":     {reason: "What an MR is reconciled with manages nothing.", item: plain, live: in(append(all, plain), ""), want: copied{}},
		"MovedXR": {
			reason: "If the original is gone, it is restored as any other.", item: xr, live: in(nil, ""),
			want: copied{Op: xrOp, Held: true, Paused: true, Finalizers: []string{xp.FinalizerComposite}},
		},
		"ClusterXR": {
			reason: "What is cluster-scoped is not copied.", item: xptest.XR("x"), live: in([]*unstructured.Unstructured{xptest.XR("x")}, ""),
			want: copied{Op: operation, Held: true, Paused: true, Finalizers: []string{xp.FinalizerComposite}},
		},
		"ComposedByCluster": {
			reason: "Nor is what it composes, as long as nobody else manages the resource.", item: xptest.NamespacedMR("b", xptest.ControlledBy(xptest.XR("x"))),
			live: in([]*unstructured.Unstructured{heldWith(xptest.XR("x"))}, ""), want: copied{ExternalName: "b", Finalizers: finalizer},
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
				t.Errorf("%s\nnobody is told: %v", tc.reason, out.logged)
			}
			if out.object != nil && xp.HasBackupMetadata(out.object) {
				t.Errorf("%s\nwhat a backup notes on its copy must not get into the cluster", tc.reason)
			}
		})
	}
}

// A copy with resources of its own must not refer to what the original composed.
func TestAdoptNewCopiesDropReferences(t *testing.T) {
	mr := xptest.NamespacedMR("b")
	xr := xptest.ModernXR("x", xptest.Refs(mr), xptest.Tree("a.b//c"), xptest.Annotated("theirs", "kept"), xptest.Annotated(xp.AnnotationExternalName, "x"))
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	free := xptest.NamespacedMR("b", xptest.Annotated(xp.AnnotationExternalName, "external"), xptest.Annotated(xp.AnnotationCreatePending, "p"),
		xptest.Annotated(xp.AnnotationCreateSucceeded, "s"), xptest.Annotated(xp.AnnotationCreateFailed, "f"), xptest.Annotated("theirs", "kept"))
	paused, automatic := xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Policy("Automatic")
	newXR := xptest.ModernXR("x", xptest.Annotated("theirs", "kept"))
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
		t.Errorf("The XR belongs to the claim where that is restored to; got %+v, %v", r, out.object.GetLabels())
	}
	h, err := adoption.HoldOf(out.object)
	want := []xp.Ref{xp.RefTo(xptest.NamespacedMR("b", xptest.In("copy"))), xp.RefTo(xptest.MR("c"))}
	if err != nil || h == nil {
		t.Fatal(h, err)
	}
	if diff := cmp.Diff(want, h.Refs); diff != "" {
		t.Errorf("What is waited for is where it is restored to: -want, +got:\n%s", diff)
	}
}

func TestAdoptCopiesErrors(t *testing.T) {
	xr, mr := xptest.ModernXR("x"), xptest.NamespacedMR("b")
	unreadable := xptest.ModernXR("x", xptest.JSON(`{"spec":{"crossplane":{"resourceRefs":7}}}`))
	oddXR := xptest.ModernXR("x", xptest.Field("x", "spec"), xptest.Annotated(adoption.AnnotationHold, `{"pinned":true,"compositionUpdatePolicy":"Manual"}`))
	anew := live(oddXR)
	anew.config = set("new")
	for name, tc := range map[string]struct {
		reason string
		item   *unstructured.Unstructured
		live   *cluster
		want   string
	}{
		"Original": {
			reason: "A failure that passes must not decide.",
			item:   xr, live: failingCluster(errAPI), want: "cannot find out whether Order team-a/x is a copy of something alive: ",
		},
		"Name":     {reason: "The same.", item: mr, live: failingCluster(errAPI), want: "cannot find out who else manages the external resource of Bucket team-a/b: "},
		"Refs":     {reason: "Refs that can't be read can't be checked later.", item: unreadable, live: live(xr), want: "cannot read the resourceRefs of Order "},
		"Settings": {reason: "Nor what can't have its own settings back.", item: oddXR, live: anew, want: "cannot set the composition update policy of Order "},
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
		t.Errorf("a copy is held, whoever looks after it: %+v", got)
	}
	if len(out.object.GetOwnerReferences()) > 0 || strings.Contains(fmt.Sprint(out.object.Object["metadata"]), `k:{"uid"`) {
		t.Errorf("the owner of the original is not that of its copy: %v", out.object.Object["metadata"])
	}
	for _, line := range out.logged {
		if strings.Contains(line, "Not restored") {
			t.Errorf("what is restored must not be said not to be: %s", line)
		}
	}
}
