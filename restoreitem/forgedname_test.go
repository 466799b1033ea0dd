package restoreitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Any user can write another's external-name onto an MR. If the MR in another namespace can manage
// the same external resource, the restored MR may have to wait. Whatever the setting, nothing is
// created in the cloud or left out because of it.
func TestAdoptBesideForgedNames(t *testing.T) {
	external := xptest.Annotated(xp.AnnotationExternalName, "external")
	uses := func(kind, name string) xptest.Option {
		return xptest.Field(map[string]any{"kind": kind, "name": name}, "spec", "providerConfigRef")
	}
	wide, local := uses("ClusterProviderConfig", "cloud"), uses("ProviderConfig", "cloud")
	xr := xptest.XRV2("x")
	free := xptest.NamespacedMR("b", external, wide)
	mr, localMR := xptest.With(free, xptest.ControlledBy(xr)), xptest.With(free, local)
	squatter := func(namespace string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.NamespacedMR("s", append([]xptest.Option{xptest.In(namespace), external, wide}, o...)...)
	}
	whole := copied{ExternalName: "external", Finalizers: []string{xp.FinalizerManaged}}
	waits := func(namespace string) copied {
		return copied{Op: "Bucket.v1alpha1.cloud.example.org/copy/b", Held: true, Clone: "Bucket " + namespace + "/s", Paused: true, ExternalName: "external"}
	}
	composed := waits("team-z")
	composed.Op = "" // The operation of its XR is its own.
	every := func(c copied) map[string]copied { return map[string]copied{"hold": c, "observe": c, "new": c} }
	for name, tc := range map[string]struct {
		reason string
		item   *unstructured.Unstructured
		live   []*unstructured.Unstructured
		// want is the result for each clone setting.
		want map[string]copied
	}{
		"SameAccount": {
			reason: "Both MRs may manage the same external resource.", item: free, live: []*unstructured.Unstructured{squatter("team-z")}, want: every(waits("team-z")),
		},
		"Composed": {
			reason: "Another team's MR must not keep a composed resource out.", item: mr, live: []*unstructured.Unstructured{squatter("team-z")}, want: every(composed),
		},
		"OtherConfig": {
			reason: "External-names are unique only within one account.", item: mr,
			live: []*unstructured.Unstructured{squatter("team-z", uses("ClusterProviderConfig", "other")), heldWith(xptest.With(xr, xptest.In("copy"), xptest.Refs(xptest.With(free, xptest.In("copy")))))},
			want: every(whole),
		},
		"LocalConfigs": {
			reason: "Two namespaces can have ProviderConfigs of the same name.", item: localMR, live: []*unstructured.Unstructured{squatter("team-z", local)}, want: every(whole),
		},
		"LocalConfigThere": {
			reason: "Both MRs use the same ProviderConfig in the target namespace.", item: localMR, live: []*unstructured.Unstructured{squatter("copy", local)},
			want: every(waits("copy")),
		},
		"Observes": {
			reason: "An MR that only observes is safe.", item: free, want: every(whole),
			live: []*unstructured.Unstructured{squatter("team-z", xptest.Field([]any{"Observe"}, "spec", "managementPolicies"))},
		},
		"SameNamespace": {
			reason: "The target namespace belongs to the same owner, who may have renamed the MR.", item: free,
			live: []*unstructured.Unstructured{squatter("team-a", uses("ClusterProviderConfig", "other"))},
			want: map[string]copied{
				"hold": waits("team-a"), "observe": {Policies: []string{"Observe"}, ExternalName: "external", Finalizers: whole.Finalizers}, "new": {Finalizers: whole.Finalizers},
			},
		},
		"Both": {
			reason: "The original takes precedence over other MRs with the same external-name.", item: free, live: []*unstructured.Unstructured{squatter("copy"), squatter("team-z"), free},
			want: map[string]copied{
				"hold":    {Op: "Bucket.v1alpha1.cloud.example.org/copy/b", Held: true, Clone: "Bucket team-a/b", Paused: true, ExternalName: "external"},
				"observe": {Policies: []string{"Observe"}, ExternalName: "external", Finalizers: whole.Finalizers}, "new": {Finalizers: whole.Finalizers},
			},
		},
	} {
		for choice, want := range tc.want {
			t.Run(name+"/"+choice, func(t *testing.T) {
				c := live(tc.live...)
				c.config = set(choice)
				item := tc.item
				if len(want.Policies) > 0 {
					item = xptest.With(item, policies(`["*"]`)) // Only what has policies can observe only.
				}
				out := adopt(t, c, item, restoreOf(toCopy()))
				h := out.hold(t)
				if diff := cmp.Diff(want, copyOf(out), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
				if strings.HasSuffix(want.Clone, "/s") && want.Clone != "Bucket team-a/s" && !strings.HasSuffix(h.Reason, "[PossibleDuplicate]") {
					t.Errorf("%s\ngot the reason %s", tc.reason, h.Reason)
				}
			})
		}
	}
}

// An MR that waits because of another is adopted by its XR after its release, so it has its owner.
// It is left out if its XR is reconciled without it.
func TestAdoptBesideForgedNamesKeepsOwners(t *testing.T) {
	mr := xptest.NamespacedMR("b", xptest.ControlledBy(xptest.XRV2("x")), xptest.Annotated(xp.AnnotationExternalName, "external"))
	squatter := xptest.NamespacedMR("s", xptest.In("team-z"), xptest.Annotated(xp.AnnotationExternalName, "external"))
	xr := xptest.XRV2("x", xptest.In("copy"), xptest.UID("new"), xptest.Refs(xptest.With(mr, xptest.In("copy"))),
		xptest.Annotated(xp.AnnotationPaused, "true"))
	out := adopt(t, live(squatter, xr), mr, restoreOf(toCopy()))
	if out.err != nil || out.object == nil || len(out.object.GetOwnerReferences()) != 1 || out.object.GetOwnerReferences()[0].UID != "new" {
		t.Errorf("the MR must come back with its live owner: %v, %v", out.object, out.err)
	}
	out = adopt(t, live(squatter, xptest.With(xr, xptest.Refs(), xptest.Without("metadata", "annotations"))), mr, restoreOf(toCopy()))
	if out.err != nil || !out.SkipRestore {
		t.Errorf("an MR that its XR does not list must stay out: %v, %v", out.object, out.err)
	}
}

// If a namespace is restored to another one, and once more under its own name, two MRs would manage
// one external resource.
func TestAdoptHoldsWhatWasMoved(t *testing.T) {
	external := xptest.Annotated(xp.AnnotationExternalName, "external")
	uses := func(kind string) xptest.Option {
		return xptest.Field(map[string]any{"kind": kind, "name": "cloud"}, "spec", "providerConfigRef")
	}
	restored := func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{xp.LabelRestore: "moved"}) }
	mr := xptest.NamespacedMR("b", external, uses("ClusterProviderConfig"))
	moved := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.With(mr, append([]xptest.Option{xptest.In("team-b"), restored}, o...)...)
	}
	const operation = "Bucket.v1alpha1.cloud.example.org/team-a/b"
	runAdopts(t, map[string]adoptCase[copied]{
		"Moved": {
			reason: "The moved MR manages the external resource now.", item: mr, live: live(moved()),
			want: copied{Op: operation, Held: true, Clone: "Bucket team-b/b", Paused: true, ExternalName: "external"},
		},
		"LocalConfig": {
			reason: "The ProviderConfig moved with the MR.", item: xptest.With(mr, uses("ProviderConfig")), live: live(moved(uses("ProviderConfig"))),
			want: copied{Op: operation, Held: true, Clone: "Bucket team-b/b", Paused: true, ExternalName: "external"},
		},
		"Itself":        {reason: "Velero leaves the live MR as it is.", item: mr, live: live(moved(xptest.In("team-a")))},
		"Another":       {reason: "External-names need not be unique.", item: mr, live: live(moved(func(u *unstructured.Unstructured) { u.SetName("c") }))},
		"Account":       {reason: "The same external-name in two accounts is two external resources.", item: mr, live: live(moved(uses("ProviderConfig")))},
		"Observes":      {reason: "The moved MR only observes.", item: mr, live: live(moved(xptest.Field([]any{"Observe"}, "spec", "managementPolicies")))},
		"ClusterScoped": {reason: "A namespace mapping does not move cluster-scoped MRs.", item: xptest.MR("b", external), live: live(xptest.MR("b", external, restored))},
		"Made":          {reason: "No restore created the other MR, so it was not moved.", item: mr, live: live(moved(xptest.Without("metadata", "labels")))},
	}, func(_ *testing.T, out adopted) copied { return copyOf(out) })
	c := live()
	c.movedErr = errAPI
	if out := adopt(t, c, mr, restoreOf(nil)); out.err == nil || !strings.HasPrefix(out.err.Error(), "cannot find out whether Bucket team-a/b was restored to another namespace: ") {
		t.Errorf("an unreadable original must not lead to a second external resource; got %v", out.err)
	}
}
