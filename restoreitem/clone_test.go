package restoreitem

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
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
	h, _ := hold.Of(u)
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
	plain := xptest.Object("m.example.org/v1", "ProviderConfig", "team-a", "default")
	mapped := restoreOf(toCopy())
	all := []*unstructured.Unstructured{xr, mr, claim, secret}
	other := xptest.NamespacedMR("other", xptest.In("team-z"), xptest.Annotated(xp.AnnotationExternalName, "external"))
	self := xptest.With(free, xptest.In("copy"))
	const xrOp, claimOp = "Order.v1.example.org/copy/x", "OrderClaim.v1alpha1.example.org/copy/o"
	observe, finalizer := []string{"Observe"}, []string{xp.FinalizerManaged}
	runAdopts(t, map[string]adoptCase[copied]{
		"XR": {
			reason: "A copy stays held by default, and its operation fails so that the restore is not reported as complete.", item: xr, restore: mapped, live: live(all...),
			want: copied{Op: xrOp, Held: true, Clone: "Order team-a/x", Paused: true},
		},
		"ObservedXR": {
			reason: "The Composition may not support observing, so the XR stays held, and the restore is complete.", item: xr, restore: mapped, live: live(all...), config: set("observe"),
			want: copied{Held: true, Clone: "Order team-a/x", Paused: true},
		},
		"ObservedClaim": {
			reason: "A claim has one XR, and that XR belongs to the original.", item: claim, restore: mapped, live: live(all...), config: set("observe"),
			want: copied{Op: claimOp, Held: true, Clone: "OrderClaim team-a/o", Paused: true},
		},
		"NewXR": {reason: "The copy composes new resources.", item: xr, restore: mapped, live: live(all...), config: set("new"), want: copied{Finalizers: []string{xp.FinalizerComposite}}},
		"Claim": {
			reason: "A copied claim stays held by default.", item: claim, restore: mapped, live: live(all...), want: copied{Op: claimOp, Held: true, Clone: "OrderClaim team-a/o", Paused: true},
		},
		"MR": {
			reason: "A copied MR would manage the external resource of the original.", item: mr, restore: mapped, live: live(all...),
			want: copied{Held: true, Clone: "Order team-a/x", Paused: true, ExternalName: "external"},
		},
		"ObservedMR": {
			reason: "Two MRs can observe the same external resource.", item: xptest.With(mr, policies(`["*"]`)), restore: mapped, live: live(all...), config: set("observe"), want: copied{Policies: observe, ExternalName: "external", Finalizers: finalizer},
		},
		"NewMR": {reason: "The copied XR composes a new MR.", item: mr, restore: mapped, live: live(all...), config: set("new"), want: copied{Skip: true}},
		"FreeMR": {
			reason: "An MR without an XR can be a copy too.", item: free, restore: mapped, live: live(free),
			want: copied{Held: true, Clone: "Bucket team-a/b", Paused: true, ExternalName: "external", Op: "Bucket.v1alpha1.cloud.example.org/copy/b"},
		},
		"ObservedWithoutPolicies": {
			reason: "The API server drops policies that the kind lacks, so both MRs would manage one resource.", item: mr, restore: mapped, live: live(all...), config: set("observe"),
			want: copied{Held: true, Clone: "Order team-a/x", Paused: true, ExternalName: "external"},
		},
		"NewFreeMR": {
			reason: "Without its external-name the copy creates its own external resource.", item: free, restore: mapped, live: live(free), config: set("new"),
			want: copied{Finalizers: finalizer},
		},
		"NewFreeMRByName": {
			reason: "A provider that derives the external-name from the MR's name would find the original's resource.", item: xptest.NamespacedMR("b"),
			restore: mapped, live: live(xptest.NamespacedMR("b")), config: set("new"),
			want: copied{Held: true, Clone: "Bucket team-a/b", Paused: true, ExternalName: "b", Op: "Bucket.v1alpha1.cloud.example.org/copy/b"},
		},
		"ManagedByOtherMR": {
			reason: "Two MRs must not manage one external resource.", item: free, restore: mapped, live: live(other),
			want: copied{Held: true, Clone: "Bucket team-z/other", Paused: true, ExternalName: "external", Op: "Bucket.v1alpha1.cloud.example.org/copy/b"},
		},
		"MovedMR": {
			reason: "The original is gone, so the MR is no copy.", item: free, restore: mapped, live: live(), want: copied{ExternalName: "external", Finalizers: finalizer},
		},
		"Itself": {
			reason: "An MR that is restored again is not a copy of itself.", item: free, restore: mapped, live: live(self),
			want: copied{ExternalName: "external", Finalizers: finalizer},
		},
		"UnnamedMR": {
			reason: "An MR that was never created manages no external resource.", item: xptest.With(free, xptest.Without("metadata", "annotations"),
				xptest.Annotated(xp.AnnotationCreateFailed, "2026-01-02T03:04:05Z")), restore: mapped, live: live(all...),
			want: copied{Finalizers: finalizer},
		},
		"Secret":    {reason: "No controller reconciles a Secret.", item: secret, restore: mapped, live: live(all...)},
		"NewSecret": {reason: "The copied publisher creates a new Secret.", item: secret, restore: mapped, live: live(all...), config: set("new"), want: copied{Skip: true}},
		"Other":     {reason: "An object that MRs only refer to manages no external resource.", item: plain, restore: mapped, live: live(append(all, plain)...), want: copied{}},
		"MovedXR": {
			reason: "The original is gone, so the XR is no copy.", item: xr, restore: mapped, live: live(),
			want: copied{Op: xrOp, Held: true, Paused: true, Finalizers: []string{xp.FinalizerComposite}},
		},
		"ComposedByCluster": {
			reason: "Resources of a cluster-scoped XR are no copies while no other MR manages them.", item: xptest.NamespacedMR("b", xptest.ControlledBy(xptest.XR("x"))),
			restore: mapped, live: live(heldWith(xptest.XR("x", xptest.Refs(self)))), want: copied{ExternalName: "b", Finalizers: finalizer},
		},
	}, func(t *testing.T, out adopted) copied {
		t.Helper()
		got := copyOf(out)
		if got.Clone != "" && (len(out.logged) == 0 || !strings.Contains(out.logged[len(out.logged)-1], got.Clone)) {
			t.Errorf("want a warning, got: %v", out.logged)
		}
		if out.object != nil && xp.HasBackupMetadata(out.object) {
			t.Error("the plugin's fields in the backup must not get into the cluster")
		}

		return got
	})
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
		"XRHeldAsACopy":    {item: copiedXR(xr), want: newXR},
		"HeldClaimOwn":     {item: heldWith(xptest.With(claim, paused, automatic)), want: xptest.Claim("o", paused, automatic)},
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
	h := out.hold(t)
	if r, _ := xp.CompositeFrom(out.object).ClaimRef(); r.Namespace != "copy" || out.object.GetLabels()[xp.LabelClaimNamespace] != "copy" {
		t.Errorf("The XR must name the claim in the mapped namespace; got %+v, %v", r, out.object.GetLabels())
	}
	want := []xp.Ref{xp.RefTo(xptest.NamespacedMR("b", xptest.In("copy"))), xp.RefTo(xptest.MR("c"))}
	if diff := cmp.Diff(want, h.Refs); diff != "" {
		t.Errorf("The hold must name objects in the mapped namespace: -want, +got:\n%s", diff)
	}
}

func TestAdoptCopiesErrors(t *testing.T) {
	xr, mr := xptest.XRV2("x"), xptest.NamespacedMR("b")
	unreadable := xptest.XRV2("x", xptest.JSON(`{"spec":{"crossplane":{"resourceRefs":7}}}`))
	oddXR := xptest.XRV2("x", xptest.Field("x", "spec"), xptest.Annotated(hold.Annotation, `{"pinned":true,"compositionUpdatePolicy":"Manual"}`))
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

// Velero restores the status only of what the same restore created, and can be killed before it
// does.
func TestAdoptReturnsStatus(t *testing.T) {
	x := xptest.XR("x", xptest.Reconciled(), xptest.Field("10.0.0.1", "status", "address"))
	failing := xptest.MR("b", xptest.ControlledBy(x), xptest.Synced("False", "ReconcileError", "no credentials"), xptest.Field("i-1", "status", "atProvider", "id"))
	claim := xptest.Claim("c", xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Field("10.0.0.1", "status", "address"))
	status, _, _ := unstructured.NestedMap(failing.Object, "status")
	runAdopts(t, map[string]adoptCase[map[string]map[string]any]{
		"XR": {
			reason: "An earlier restore created the XR with its status.", item: x, live: live(x),
			want: map[string]map[string]any{xp.RefTo(x).String(): {"address": "10.0.0.1"}},
		},
		"MR": {
			reason: "An earlier restore created the MR, and its provider cannot reconcile it.", item: failing, live: live(failing),
			want: map[string]map[string]any{xp.RefTo(failing).String(): status},
		},
		"PausedClaim": {
			reason: "An earlier restore created the claim, which its user had paused, and nobody else writes its status.", item: claim, live: live(claim),
			want: map[string]map[string]any{xp.RefTo(claim).String(): {"address": "10.0.0.1"}},
		},
		"New":    {reason: "Velero writes the status of an object that it creates.", item: x, live: live()},
		"Needed": {reason: "Crossplane writes this status again.", item: xptest.XR("x", xptest.Reconciled()), live: live(x)},
	}, func(_ *testing.T, out adopted) map[string]map[string]any { return out.cluster.returned })
}

// Without the setting no status is requested, and a warning names what is missing.
func TestAdoptWithoutStatus(t *testing.T) {
	x := xptest.XR("x", xptest.Reconciled(), xptest.Field("10.0.0.1", "status", "address"), xptest.Field("big", "status", "size"))
	failing := xptest.MR("b", xptest.ControlledBy(x), xptest.Synced("False", "ReconcileError", "no credentials"), xptest.Field("i-1", "status", "atProvider", "id"))
	id := xptest.Field("i-1", "status", "atProvider", "id")
	none, needed := map[string]string{"restore-status": "none"}, map[string]string{"restore-status": "needed"}
	there := live(heldWith(xptest.XR("x", xptest.Refs(failing))))
	type want struct {
		Held, Asked, Warned bool
		Waits               []string
	}
	runAdopts(t, map[string]adoptCase[want]{
		"XR":     {reason: "A function may read the status, so the plugin names the loss.", item: x, live: there, config: none, want: want{Held: true, Warned: true}},
		"MR":     {reason: "The plugin names the MR's loss, but does not hold it for that.", item: failing, live: there, config: none, want: want{Warned: true}},
		"Plain":  {reason: "Crossplane writes this status again, so nothing is lost.", item: xptest.XR("x", xptest.Reconciled()), live: there, config: none, want: want{Held: true}},
		"Needed": {reason: "By default the plugin restores it.", item: x, live: there, config: needed, want: want{Held: true, Asked: true, Waits: []string{"address", "size"}}},
		"Unsafe": {reason: "The setting also drops an id that later backups could use.", item: unnamed(xptest.Reconciled(), id), live: there, config: none, want: want{Held: true}},
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		got := want{Warned: slices.Contains(out.codes, reason.StatusNotRestored)}
		if h := out.hold(t); h != nil {
			got.Held, got.Waits = true, h.Status
		}
		got.Asked = out.object != nil && xp.Annotation(out.object, xp.AnnotationRestoreStatus) == "true"

		return got
	})
}

// Nobody writes the status of what a user has paused before they unpause it.
func TestAdoptAsksForStatusOfPaused(t *testing.T) {
	byUser, conditions := xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Reconciled()
	mr := xptest.MR("b", xptest.Field("i-1", "status", "atProvider", "id"), conditions)
	whole := []string{"atProvider", "conditions"}
	runAdopts(t, map[string]adoptCase[[]string]{
		"XR":            {reason: "Crossplane does not reconcile it.", item: xptest.XRV2("x", byUser, conditions), want: []string{"conditions"}},
		"Claim":         {reason: "Crossplane does not reconcile it.", item: xptest.Claim("c", byUser, conditions), want: []string{"conditions"}},
		"MR":            {reason: "Its provider does not reconcile it.", item: xptest.With(mr, byUser), want: whole},
		"HeldAndPaused": {reason: "A hold keeps the pause of the user.", item: marked(xptest.With(mr, byUser)), want: whole},
		"OnlyHeld":      {reason: "The pause was that of an earlier restore, which ends.", item: marked(xptest.XRV2("x", conditions))},
	}, func(t *testing.T, out adopted) []string {
		t.Helper()
		got := out.hold(t).Status
		if asks := xp.Annotation(out.object, xp.AnnotationRestoreStatus) == "true"; asks != (len(got) > 0) {
			t.Errorf("asks for status: %t, and waits for %v", asks, got)
		}

		return got
	})
}

// Each XR, claim and MR is checked for what an earlier restore left out, and an error never stops
// the item.
func TestAdoptReturnsManagers(t *testing.T) {
	xr := xptest.XR("x")
	for want, item := range map[string]*unstructured.Unstructured{
		"XOrder x": xr, "OrderClaim team-a/o": xptest.Claim("o", xptest.OfXR(xr)), "Bucket b": xptest.MR("b"), "Bucket c": xptest.MR("c", xptest.ControlledBy(xr)), "": xptest.Secret("s"),
	} {
		c := live(xptest.With(xr, xptest.UID("live"), xptest.Refs(xptest.MR("c"))))
		c.managedErr = errAPI
		if out := adopt(t, c, item, restoreOf(nil)); out.err != nil || strings.Join(c.managed, " ") != want {
			t.Errorf("%s: field managers were returned to %v, error %v", xp.String(item), c.managed, out.err)
		}
	}
}
