package exchange

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// snapshotOf returns the Snapshot of a live and a backed-up root and objects.
func snapshotOf(t *testing.T, root *unstructured.Unstructured, live []*unstructured.Unstructured, savedRoot *unstructured.Unstructured, saved []*unstructured.Unstructured) Snapshot {
	t.Helper()
	walk := func(root *unstructured.Unstructured, all []*unstructured.Unstructured) Tree {
		tree, err := Walk(root, among(all))
		if err != nil {
			t.Fatal(err)
		}

		return tree
	}
	s := Snapshot{Live: walk(root, live), Saved: walk(savedRoot, saved), Others: live, SavedOthers: saved}
	for _, u := range s.Saved.Below {
		if there := find(live, xp.RefTo(u)); there != nil {
			s.SameNames = append(s.SameNames, there)
		}
	}

	return s
}

func among(all []*unstructured.Unstructured) Finder {
	return func(refs []xp.Ref) (map[xp.ID]*unstructured.Unstructured, error) {
		found := map[xp.ID]*unstructured.Unstructured{}
		for _, r := range refs {
			found[r.ID()] = find(all, r)
		}

		return found, nil
	}
}

func find(all []*unstructured.Unstructured, r xp.Ref) *unstructured.Unstructured {
	for _, u := range all {
		if xp.RefTo(u).ID() == r.ID() {
			return u
		}
	}

	return nil
}

// mr returns an MR that its provider has reconciled.
func mr(name, external string, o ...xptest.Option) *unstructured.Unstructured {
	return xptest.MR(name, append([]xptest.Option{
		xptest.Annotated(xp.AnnotationExternalName, external), xptest.Reconciled(),
		xptest.Field([]any{"*"}, "spec", "managementPolicies"), xptest.Field("Delete", "spec", "deletionPolicy"),
	}, o...)...)
}

func TestPlan(t *testing.T) {
	old, anew := xptest.XR("x", xptest.UID("old")), xptest.XR("x", xptest.UID("new"))
	in := xptest.ControlledBy
	was := mr("a", "one", in(old))
	fresh := mr("b", "two", in(anew))
	type want struct {
		Goes, Comes []string
		Refused     []reason.Code
		Over        bool
	}
	cases := map[string]struct {
		reason      string
		root        *unstructured.Unstructured
		live, saved []*unstructured.Unstructured
		want        want
	}{
		"New": {
			reason: "The MR that the new XR created goes with its external resource, and the backed-up MR comes back.",
			live:   []*unstructured.Unstructured{fresh}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b two"}, Comes: []string{"a one"}},
		},
		"SameExternal": {
			reason: "The old MR manages the same external resource, which must stay when the new MR goes.",
			live:   []*unstructured.Unstructured{mr("b", "one", in(anew))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b one stays"}, Comes: []string{"a one"}},
		},
		"SameNameOtherExternal": {
			reason: "An MR with the same name and another external resource goes with its external resource.",
			live:   []*unstructured.Unstructured{mr("a", "two", in(anew))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"a two"}, Comes: []string{"a one"}},
		},
		"NeededElsewhere": {
			reason: "Another MR in the cluster manages the same external resource.",
			live:   []*unstructured.Unstructured{fresh, mr("c", "two")}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b two stays"}, Comes: []string{"a one"}},
		},
		"NeededElsewhereInBackup": {
			reason: "An MR of another tree in the backup manages the external resource and needs it once it is restored.",
			live:   []*unstructured.Unstructured{fresh}, saved: []*unstructured.Unstructured{was, mr("c", "two")},
			want: want{Goes: []string{"b two stays"}, Comes: []string{"a one"}},
		},
		"SameID": {
			reason: "The provider reports the ID of the old external resource.",
			live:   []*unstructured.Unstructured{xptest.With(fresh, xptest.Field("one", "status", "atProvider", "id"))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b two stays"}, Comes: []string{"a one"}},
		},
		"OwnPolicies": {
			reason: "The deletionPolicy of the MR keeps the external resource.",
			live:   []*unstructured.Unstructured{xptest.With(fresh, xptest.Field("Orphan", "spec", "deletionPolicy"))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b two stays"}, Comes: []string{"a one"}},
		},
		"Same": {
			reason: "The cluster has the same objects as the backup, so there is nothing to exchange.",
			live:   []*unstructured.Unstructured{mr("a", "one", in(anew))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"a one stays"}, Comes: []string{"a one"}, Refused: []reason.Code{reason.NothingToExchange}},
		},
		"Emptied": {
			reason: "An exchange has done all steps but the restore.",
			root:   xptest.With(anew, xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Annotated(xp.AnnotationExchange, "now")),
			saved:  []*unstructured.Unstructured{was}, want: want{Comes: []string{"a one"}, Over: true},
		},
		"Interrupted": {
			reason: "All objects are gone, although the XR still lists one.",
			root: xptest.With(anew, xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Annotated(xp.AnnotationExchange, "now"),
				xptest.Refs(fresh)),
			saved: []*unstructured.Unstructured{was}, want: want{Comes: []string{"a one"}},
		},
		"NeverComposed": {
			reason: "A restore is enough for an XR that never composed anything.", root: anew, saved: []*unstructured.Unstructured{was}, want: want{Refused: []reason.Code{reason.NothingToExchange}},
		},
		"Held": {
			reason: "A restore is adopting the XR, and an exchange would interfere.", root: xptest.With(anew, xptest.Annotated(adoption.AnnotationHold, "{}")),
			live: []*unstructured.Unstructured{fresh}, saved: []*unstructured.Unstructured{was}, want: want{Refused: []reason.Code{reason.Held}},
		},
		"Restored": {
			reason: "A restore created this XR, so it was not in the cluster before the restore.", root: xptest.With(anew, xptest.Labelled(xp.LabelRestore, "monday")),
			live: []*unstructured.Unstructured{fresh}, saved: []*unstructured.Unstructured{was}, want: want{Refused: []reason.Code{reason.CreatedByRestore}},
		},
		"NotNew": {
			reason: "The live XR is the backed-up one, so its composed resources changed on purpose.", root: xptest.With(anew, xptest.UID("old")),
			live: []*unstructured.Unstructured{mr("b", "two", in(old))}, saved: []*unstructured.Unstructured{was}, want: want{Refused: []reason.Code{reason.ExistedAtBackup}},
		},
		"Paused": {
			reason: "The exchange pauses the XR itself and would mistake the pause of a user for its own.", root: xptest.With(anew, xptest.Annotated(xp.AnnotationPaused, "true")),
			live: []*unstructured.Unstructured{fresh}, saved: []*unstructured.Unstructured{was}, want: want{Refused: []reason.Code{reason.PausedByUser}},
		},
		"Deleting": {
			reason: "The XR is being deleted and needs no exchange.", root: xptest.With(anew, xptest.Deleting()),
			live: []*unstructured.Unstructured{fresh}, saved: []*unstructured.Unstructured{was}, want: want{Refused: []reason.Code{reason.BeingDeleted}},
		},
		"Protected": {
			reason: "A Usage protects the MR from deletion.",
			live:   []*unstructured.Unstructured{xptest.With(fresh, xptest.Labelled(xp.LabelInUse, "true"))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b two"}, Comes: []string{"a one"}, Refused: []reason.Code{reason.ProtectedByUsage}},
		},
		"InFlight": {
			reason: "The external resource of a create in flight is not known yet.",
			live: []*unstructured.Unstructured{xptest.With(fresh, xptest.Annotated(xp.AnnotationCreatePending, "2026-01-01T00:00:00Z"),
				xptest.Synced("False", "ReconcileError", ""))},
			saved: []*unstructured.Unstructured{was},
			want:  want{Goes: []string{"b two"}, Comes: []string{"a one"}, Refused: []reason.Code{reason.CreatePending}},
		},
		"NoProvider": {
			reason: "Without a running provider the external resource would stay.",
			live:   []*unstructured.Unstructured{xptest.With(fresh, xptest.Without("status"))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b two"}, Comes: []string{"a one"}, Refused: []reason.Code{reason.Stuck}},
		},
		"NoPolicies": {
			reason: "Without policies nothing keeps the provider from deleting the shared external resource.",
			live: []*unstructured.Unstructured{
				xptest.With(mr("b", "one", in(anew)), xptest.Without("spec", "managementPolicies"), xptest.Without("spec", "deletionPolicy")),
			},
			saved: []*unstructured.Unstructured{was},
			want:  want{Goes: []string{"b one stays"}, Comes: []string{"a one"}, Refused: []reason.Code{reason.KeepUnsupported}},
		},
		"Taken": {
			reason: "Another XR controls the object that is to come back.",
			live:   []*unstructured.Unstructured{fresh, mr("a", "one", in(xptest.XR("other")))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b two"}, Comes: []string{"a one"}, Refused: []reason.Code{reason.ControlledByAnother}},
		},
		"Ownerless": {
			reason: "Without a controller the owner of the live object is unknown.",
			live:   []*unstructured.Unstructured{fresh, mr("a", "one")}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b two"}, Comes: []string{"a one"}, Refused: []reason.Code{reason.Uncontrolled}},
		},
		"Namespace": {
			reason: "A Namespace would go with all objects in it.",
			live:   []*unstructured.Unstructured{xptest.Object("v1", "Namespace", "", "n", in(anew))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"n "}, Comes: []string{"a one"}, Refused: []reason.Code{reason.DeletesOthers}},
		},
		"NotInBackup": {
			reason: "A restored XR would wait for an object that the backup lacks.", live: []*unstructured.Unstructured{fresh},
			want: want{Goes: []string{"b two"}, Refused: []reason.Code{reason.NotInBackup}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := tc.root
			if root == nil || len(tc.live) > 0 {
				root = xptest.With(orElse(root, anew), xptest.Refs(tc.live...))
			}
			s := snapshotOf(t, root, tc.live, xptest.With(old, xptest.Refs(was)), tc.saved)
			p := s.Plan()
			got := want{Over: p.OnlyRestoreLeft}
			for _, i := range p.Items {
				line := i.Ref.Name + " " + i.External
				if i.Stays != "" {
					line += " stays"
				}
				got.Goes = append(got.Goes, line)
			}
			for _, r := range p.Returns {
				got.Comes = append(got.Comes, r.Ref.Name+" "+r.External)
			}
			for _, why := range p.Refused {
				got.Refused = append(got.Refused, why.Code)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func orElse(u, other *unstructured.Unstructured) *unstructured.Unstructured {
	if u != nil {
		return u
	}

	return other
}

// An XR below an XR, and the MR below that, are deleted with the root.
func TestPlanNested(t *testing.T) {
	old, anew := xptest.XR("x", xptest.UID("old")), xptest.XR("x", xptest.UID("new"))
	inner := xptest.XR("inner", xptest.ControlledBy(anew))
	leaf := mr("leaf", "two", xptest.ControlledBy(inner))
	inner = xptest.With(inner, xptest.Refs(leaf))
	was := mr("a", "one", xptest.ControlledBy(old))
	s := snapshotOf(t, xptest.With(anew, xptest.Refs(inner)), []*unstructured.Unstructured{inner, leaf}, xptest.With(old, xptest.Refs(was)), []*unstructured.Unstructured{was})
	p := s.Plan()
	var got []string
	for _, i := range p.Items {
		got = append(got, i.Ref.String())
	}
	if diff := cmp.Diff([]string{"XOrder inner", "Bucket leaf"}, got); diff != "" || len(p.Refused) > 0 || len(p.Deletes()) != 1 {
		t.Errorf("refused %v, and deletes %v; -want, +got:\n%s", p.Refused, p.Deletes(), diff)
	}
}

// A claim replaces the XR that Crossplane has created for it with the restored XR of the backup.
func TestPlanClaim(t *testing.T) {
	claim := xptest.Claim("c")
	of := func(name string) (*unstructured.Unstructured, *unstructured.Unstructured, *unstructured.Unstructured) {
		xr := xptest.XR(name, xptest.ClaimedBy(claim))
		below := mr(name+"-mr", name, xptest.ControlledBy(xr))
		xr = xptest.With(xr, xptest.Refs(below))

		return xptest.With(claim, xptest.OfXR(xr), xptest.UID(types.UID(name))), xr, below
	}
	live, xr, below := of("new")
	saved, oldXR, oldBelow := of("old")
	s := snapshotOf(t, live, []*unstructured.Unstructured{xr, below, oldXR, oldBelow}, saved, []*unstructured.Unstructured{oldXR, oldBelow})
	p := s.Plan()
	var goes, comes []string
	for _, i := range p.Items {
		goes = append(goes, i.Ref.Name)
	}
	for _, r := range p.Returns {
		if r.Back {
			comes = append(comes, r.Ref.Name)
		}
	}
	if diff := cmp.Diff([][]string{{"new", "new-mr"}, {"old", "old-mr"}}, [][]string{goes, comes}); diff != "" || len(p.Refused) > 0 {
		t.Errorf("refused %v; -want, +got:\n%s", p.Refused, diff)
	}
}

func TestBeyond(t *testing.T) {
	a, b := Item{UID: "a", Managed: true, External: "one", Ref: xp.Ref{Kind: "Bucket", Name: "a"}}, Item{UID: "b", Ref: xp.Ref{Kind: "Bucket", Name: "b"}}
	stays := a
	stays.Stays = "it is needed"
	renamed := a
	renamed.External = "two"
	cases := map[string]struct {
		reason         string
		confirmed, now []Item
		want           []string
	}{
		"Same":    {reason: "The plan is the one that the user confirmed.", confirmed: []Item{a, b}, now: []Item{a, b}},
		"Fewer":   {reason: "An object that is already gone needs no confirmation.", confirmed: []Item{a, b}, now: []Item{b}},
		"More":    {reason: "The user has not confirmed this deletion.", confirmed: []Item{a}, now: []Item{a, b}, want: []string{"Bucket b"}},
		"Renamed": {reason: "The MR manages another external resource now.", confirmed: []Item{a}, now: []Item{renamed}, want: []string{"Bucket a"}},
		"Lost":    {reason: "The user confirmed a plan that keeps the external resource.", confirmed: []Item{stays}, now: []Item{a}, want: []string{"Bucket a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Plan{Items: tc.now}.Unconfirmed(Plan{Items: tc.confirmed})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKeep(t *testing.T) {
	cases := map[string]struct {
		reason      string
		of          *unstructured.Unstructured
		deletes, ok bool
	}{
		"Both":     {reason: "A legacy MR has both policies.", of: mr("a", "one"), deletes: true, ok: true},
		"Policies": {reason: "A namespaced MR has no deletionPolicy.", of: xptest.With(mr("a", "one"), xptest.Without("spec", "deletionPolicy")), deletes: true, ok: true},
		"Neither": {
			reason: "A kind without policies can't keep its external resource.", of: xptest.With(mr("a", "one"), xptest.Without("spec", "deletionPolicy"), xptest.Without("spec", "managementPolicies")),
			deletes: true,
		},
		"Some":     {reason: "The managementPolicies of the MR exclude Delete.", of: mr("a", "one", xptest.Field([]any{"Observe", "Update"}, "spec", "managementPolicies")), ok: true},
		"Override": {reason: "Policies other than the default override the deletionPolicy.", of: mr("a", "one", xptest.Field([]any{"Delete"}, "spec", "managementPolicies"), xptest.Field("Orphan", "spec", "deletionPolicy")), deletes: true, ok: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			patch, ok := Keep(tc.of)
			if got := Deletes(tc.of); got != tc.deletes || ok != tc.ok {
				t.Errorf("%s: deletes %v, can be kept %v", tc.reason, got, ok)
			}
			if ok && Deletes(xptest.Merge(tc.of, patch)) {
				t.Errorf("%s: the patch %v does not keep it", tc.reason, patch)
			}
		})
	}
}
