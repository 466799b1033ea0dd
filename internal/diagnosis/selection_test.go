package diagnosis

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestSelect(t *testing.T) {
	x := xptest.XR("x", xptest.Reconciled())
	nested := xptest.XR("n", xptest.ControlledBy(x), xptest.Reconciled())
	mr := xptest.MR("b", xptest.ControlledBy(nested), xptest.Labelled(xp.LabelComposite, "x"), xptest.Labelled(xp.LabelRestore, "monday"), ready("True"),
		xptest.Annotated(xp.AnnotationExternalName, "i-1"))
	claim := xptest.Claim("c", xptest.OfXR(x), xptest.Reconciled())
	other := xptest.XRV2("o", xptest.Reconciled())
	orphan := xptest.MR("orphan", xptest.ControlledBy(x), ready("True"))
	duplicate := xptest.MR("duplicate", ready("False"), xptest.Annotated(xp.AnnotationExternalName, "i-1"))
	objects := []*unstructured.Unstructured{
		xptest.With(x, xptest.Refs(nested), xptest.ClaimedBy(claim)), xptest.With(nested, xptest.Refs(mr)), mr, claim, held(other), orphan, duplicate,
		xptest.MR("far", ready("False")),
	}
	of := []string{"problem Orphaned Bucket orphan", "problem Duplicated Bucket duplicate"}
	leaked := "problem LeakedHold Order team-a/o"
	cases := map[string]struct {
		reason   string
		choice   Selection
		trees    []string
		problems []string
	}{
		"Everything": {
			reason: "Without a choice the report must have everything.", trees: []string{"team-a/c", "team-a/o", "duplicate", "far", "orphan"},
			problems: append([]string{leaked, "warning NotReady Bucket duplicate", "warning NotReady Bucket far"}, of...),
		},
		"Claim": {
			reason: "A tree must bring its orphans and the duplicates of its MRs.", choice: Selection{Names: []string{"team-a/c"}},
			trees: []string{"team-a/c", "duplicate", "orphan"}, problems: of,
		},
		"Nested": {
			reason: "A nested XR must select its whole tree.", choice: Selection{Names: []string{"n"}}, trees: []string{"team-a/c", "duplicate", "orphan"}, problems: of,
		},
		"Restore": {
			reason: "A Restore must select each tree with an object that it created.", choice: Selection{Restore: "velero/monday", Label: "monday"}, trees: []string{"team-a/c", "duplicate", "orphan"}, problems: of,
		},
		"RestoreHolds": {
			reason: "A Restore must select the objects that it holds.", choice: Selection{Restore: "velero/r", Label: "r"}, trees: []string{"team-a/o"}, problems: []string{leaked},
		},
		"RestoreOfNothing": {
			reason: "A Restore without any object must be a problem.", choice: Selection{Restore: "velero/tuesday", Label: "tuesday"},
			problems: []string{"problem NotFound Restore velero/tuesday"},
		},
		"Namespace": {
			reason: "A namespace must select each tree with an object in it.", choice: Selection{Namespace: xptest.Namespace},
			trees: []string{"team-a/c", "team-a/o", "duplicate", "orphan"}, problems: append([]string{leaked}, of...),
		},
		"NotFound": {
			reason: "A name without an object must be a problem.", choice: Selection{Names: []string{"team-b/c", "nobody"}},
			problems: []string{"problem NotFound * team-b/c", "problem NotFound * nobody"},
		},
		"Both": {reason: "Several choices must all hold.", choice: Selection{Namespace: xptest.Namespace, Names: []string{"far"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := objectsOf(objects...)
			trees, problems := o.Select(tc.choice, o.Trees(), Validate(o, ClusterState{Now: now}))
			got := []string{}
			for _, n := range trees {
				got = append(got, n.Path())
			}
			if diff := cmp.Diff(append([]string{}, tc.trees...), got); diff != "" {
				t.Errorf("%s\ntrees: -want, +got:\n%s", tc.reason, diff)
			}
			found := summaries(problems)
			slices.Sort(found)
			slices.Sort(tc.problems)
			if diff := cmp.Diff(tc.problems, found); diff != "" {
				t.Errorf("%s\nproblems: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSelectSuggestsNames(t *testing.T) {
	o := objectsOf(xptest.Claim("c", xptest.Reconciled()))
	_, problems := o.Select(Selection{Names: []string{"c"}}, o.Trees(), nil)
	if len(problems) != 1 || problems[0].Next != "did you mean team-a/c?" {
		t.Errorf("got %+v", problems)
	}
	_, problems = o.Select(Selection{Restore: "velero/gone", Label: "gone", Gone: true}, o.Trees(), nil)
	if len(problems) != 1 || problems[0].Next != "list the Restores: velero restore get" {
		t.Errorf("got %+v", problems)
	}
}

func TestExplain(t *testing.T) {
	waits, fails := held(xptest.XR("x")), held(xptest.XR("y"))
	o := objectsOf(waits, fails, xptest.XR("z"))
	trees := o.Trees()
	ClusterState{Plans: map[xp.ID]adoption.Plan{
		xp.RefTo(waits).ID(): {Waiting: []reason.Message{{Text: "a"}, {Text: "b"}}}, xp.RefTo(fails).ID(): {Failed: reason.Message{Text: "no"}, Waiting: []reason.Message{{Text: "c"}}},
	}}.Explain(trees)
	got := map[string][]string{}
	for _, n := range trees {
		if n.Hold != nil {
			got[n.Name] = n.Hold.Waiting
		}
	}
	if diff := cmp.Diff(map[string][]string{"x": {"a", "b"}, "y": {"no"}}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestStates(t *testing.T) {
	x := xptest.XR("x")
	mine := func(name string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.MR(name, append([]xptest.Option{xptest.ControlledBy(x)}, o...)...)
	}
	lost := xptest.With(mine("lost"), xptest.Without("metadata", "ownerReferences"))
	children := []*unstructured.Unstructured{mine("adopted"), mine("deleting", deleted(time.Hour)), lost, xptest.MR("missing")}
	states := func(xr *unstructured.Unstructured) map[string]report.State {
		o := objectsOf(append([]*unstructured.Unstructured{xr, xptest.MR("alone")}, children[:3]...)...)
		got := map[string]report.State{}
		for _, n := range o.Trees() {
			got[n.Name] = n.State
			for _, c := range n.Children {
				got[c.Name] = c.State
			}
		}

		return got
	}
	xr := xptest.With(x, xptest.Refs(children...))
	want := map[string]report.State{
		"x": report.Adopted, "adopted": report.Adopted, "deleting": report.Deleting, "lost": report.Foreign, "missing": report.Missing, "alone": report.Alone,
	}
	if diff := cmp.Diff(want, states(xr)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	want["x"], want["adopted"], want["lost"] = report.Held, report.Held, report.Held
	if diff := cmp.Diff(want, states(held(xr))); diff != "" {
		t.Errorf("The composed resources of a held XR must wait with it: -want, +got:\n%s", diff)
	}
}
