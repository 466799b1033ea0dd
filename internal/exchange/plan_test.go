package exchange

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
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
			s.There = append(s.There, there)
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
		Goes, Comes, Refused []string
		Over                 bool
	}
	cases := map[string]struct {
		reason      string
		root        *unstructured.Unstructured
		live, saved []*unstructured.Unstructured
		want        want
	}{
		"Anew": {
			reason: "What was made anew goes with its external resource, and what was there before comes.",
			live:   []*unstructured.Unstructured{fresh}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b two"}, Comes: []string{"a one"}},
		},
		"SameExternal": {
			reason: "The old one manages the same external resource, which must not go with the new one.",
			live:   []*unstructured.Unstructured{mr("b", "one", in(anew))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b one stays"}, Comes: []string{"a one"}},
		},
		"SameNameOtherExternal": {
			reason: "What is only called the same goes with what it manages.",
			live:   []*unstructured.Unstructured{mr("a", "two", in(anew))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"a two"}, Comes: []string{"a one"}},
		},
		"NeededElsewhere": {
			reason: "Another one in the cluster manages it too.",
			live:   []*unstructured.Unstructured{fresh, mr("c", "two")}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b two stays"}, Comes: []string{"a one"}},
		},
		"NeededElsewhereInBackup": {
			reason: "What another tree of the backup manages is needed when that comes back.",
			live:   []*unstructured.Unstructured{fresh}, saved: []*unstructured.Unstructured{was, mr("c", "two")},
			want: want{Goes: []string{"b two stays"}, Comes: []string{"a one"}},
		},
		"SameID": {
			reason: "The provider calls it what the old one is called.",
			live:   []*unstructured.Unstructured{xptest.With(fresh, xptest.Field("one", "status", "atProvider", "id"))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b two stays"}, Comes: []string{"a one"}},
		},
		"OwnPolicies": {
			reason: "It is not to be deleted with it anyway.",
			live:   []*unstructured.Unstructured{xptest.With(fresh, xptest.Field("Orphan", "spec", "deletionPolicy"))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b two stays"}, Comes: []string{"a one"}},
		},
		"Same": {
			reason: "There is nothing to exchange.",
			live:   []*unstructured.Unstructured{mr("a", "one", in(anew))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"a one stays"}, Comes: []string{"a one"}, Refused: []string{"nothing to exchange"}},
		},
		"Emptied": {
			reason: "An exchange has done all but the restore.",
			root:   xptest.With(anew, xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Annotated(xp.AnnotationExchange, "now")),
			saved:  []*unstructured.Unstructured{was}, want: want{Comes: []string{"a one"}, Over: true},
		},
		"Interrupted": {
			reason: "All is gone, and the XR still lists it.",
			root: xptest.With(anew, xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Annotated(xp.AnnotationExchange, "now"),
				xptest.Refs(fresh)),
			saved: []*unstructured.Unstructured{was}, want: want{Comes: []string{"a one"}},
		},
		"NeverComposed": {
			reason: "The restore gives it what it composed.", root: anew, saved: []*unstructured.Unstructured{was}, want: want{Refused: []string{"restore again"}},
		},
		"Held": {
			reason: "A restore is at it.", root: xptest.With(anew, xptest.Annotated(adoption.AnnotationHold, "{}")),
			live: []*unstructured.Unstructured{fresh}, saved: []*unstructured.Unstructured{was}, want: want{Refused: []string{"a restore holds it"}},
		},
		"Restored": {
			reason: "It was not first.", root: xptest.With(anew, xptest.Labelled(xp.LabelRestore, "monday")),
			live: []*unstructured.Unstructured{fresh}, saved: []*unstructured.Unstructured{was}, want: want{Refused: []string{"the restore monday"}},
		},
		"NotAnew": {
			reason: "What it composes has changed since the backup, as it should.", root: xptest.With(anew, xptest.UID("old")),
			live: []*unstructured.Unstructured{mr("b", "two", in(old))}, saved: []*unstructured.Unstructured{was}, want: want{Refused: []string{"when it was backed up"}},
		},
		"Paused": {
			reason: "Nobody would know that the pause is a person's.", root: xptest.With(anew, xptest.Annotated(xp.AnnotationPaused, "true")),
			live: []*unstructured.Unstructured{fresh}, saved: []*unstructured.Unstructured{was}, want: want{Refused: []string{"paused"}},
		},
		"Deleting": {
			reason: "It goes by itself.", root: xptest.With(anew, xptest.Deleting()),
			live: []*unstructured.Unstructured{fresh}, saved: []*unstructured.Unstructured{was}, want: want{Refused: []string{"being deleted"}},
		},
		"Protected": {
			reason: "A person has protected it.",
			live:   []*unstructured.Unstructured{xptest.With(fresh, xptest.Labelled(xp.LabelInUse, "true"))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b two"}, Comes: []string{"a one"}, Refused: []string{"Usage"}},
		},
		"InFlight": {
			reason: "Nobody knows yet what it manages.",
			live: []*unstructured.Unstructured{xptest.With(fresh, xptest.Annotated(xp.AnnotationCreatePending, "2026-01-01T00:00:00Z"),
				xptest.Synced("False", "ReconcileError", ""))},
			saved: []*unstructured.Unstructured{was},
			want:  want{Goes: []string{"b two"}, Comes: []string{"a one"}, Refused: []string{"being created"}},
		},
		"NoProvider": {
			reason: "Nobody would delete its external resource.",
			live:   []*unstructured.Unstructured{xptest.With(fresh, xptest.Without("status"))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b two"}, Comes: []string{"a one"}, Refused: []string{"is its provider running"}},
		},
		"NoPolicies": {
			reason: "Nothing keeps the provider from deleting what the old one manages.",
			live: []*unstructured.Unstructured{
				xptest.With(mr("b", "one", in(anew)), xptest.Without("spec", "managementPolicies"), xptest.Without("spec", "deletionPolicy")),
			},
			saved: []*unstructured.Unstructured{was},
			want:  want{Goes: []string{"b one stays"}, Comes: []string{"a one"}, Refused: []string{"neither managementPolicies"}},
		},
		"Taken": {
			reason: "What is to come back is somebody else's here.",
			live:   []*unstructured.Unstructured{fresh, mr("a", "one", in(xptest.XR("other")))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b two"}, Comes: []string{"a one"}, Refused: []string{"belongs to XOrder other"}},
		},
		"Ownerless": {
			reason: "Nobody knows whose it is.",
			live:   []*unstructured.Unstructured{fresh, mr("a", "one")}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"b two"}, Comes: []string{"a one"}, Refused: []string{"nothing controls it"}},
		},
		"Namespace": {
			reason: "With it would go what is in it.",
			live:   []*unstructured.Unstructured{xptest.Object("v1", "Namespace", "", "n", in(anew))}, saved: []*unstructured.Unstructured{was},
			want: want{Goes: []string{"n "}, Comes: []string{"a one"}, Refused: []string{"by hand"}},
		},
		"NotInBackup": {
			reason: "A restored XR would wait for it for ever.", live: []*unstructured.Unstructured{fresh},
			want: want{Goes: []string{"b two"}, Refused: []string{"is not in the backup"}},
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
			got := want{Over: p.Over}
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
			for n, why := range p.Refused {
				if n < len(tc.want.Refused) && strings.Contains(why, tc.want.Refused[n]) {
					why = tc.want.Refused[n]
				}
				got.Refused = append(got.Refused, why)
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
		t.Errorf("refused %v, deletes %v; -want, +got:\n%s", p.Refused, p.Deletes(), diff)
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
		"Same":    {reason: "It is what was confirmed.", confirmed: []Item{a, b}, now: []Item{a, b}},
		"Fewer":   {reason: "What is gone need not go.", confirmed: []Item{a, b}, now: []Item{b}},
		"More":    {reason: "Nobody has agreed to it.", confirmed: []Item{a}, now: []Item{a, b}, want: []string{"Bucket b"}},
		"Renamed": {reason: "It manages something else now.", confirmed: []Item{a}, now: []Item{renamed}, want: []string{"Bucket a"}},
		"Lost":    {reason: "Its external resource was to stay.", confirmed: []Item{stays}, now: []Item{a}, want: []string{"Bucket a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Plan{Items: tc.now}.Beyond(Plan{Items: tc.confirmed})
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
		"Both":     {reason: "A legacy MR has both.", of: mr("a", "one"), deletes: true, ok: true},
		"Policies": {reason: "A namespaced one has no deletionPolicy.", of: xptest.With(mr("a", "one"), xptest.Without("spec", "deletionPolicy")), deletes: true, ok: true},
		"Neither": {
			reason: "Its kind can't say it.", of: xptest.With(mr("a", "one"), xptest.Without("spec", "deletionPolicy"), xptest.Without("spec", "managementPolicies")),
			deletes: true,
		},
		"Some":     {reason: "It says so itself.", of: mr("a", "one", xptest.Field([]any{"Observe", "Update"}, "spec", "managementPolicies")), ok: true},
		"Override": {reason: "Policies that are not the default override.", of: mr("a", "one", xptest.Field([]any{"Delete"}, "spec", "managementPolicies"), xptest.Field("Orphan", "spec", "deletionPolicy")), deletes: true, ok: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			patch, ok := Keep(tc.of)
			if got := Deletes(tc.of); got != tc.deletes || ok != tc.ok {
				t.Errorf("%s: deletes %v, can be kept %v", tc.reason, got, ok)
			}
			if ok && Deletes(xptest.Merge(tc.of, patch)) {
				t.Errorf("%s: it is not kept by %v", tc.reason, patch)
			}
		})
	}
}
