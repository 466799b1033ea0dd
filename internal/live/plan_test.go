package live

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A pass plans for XRs that may have changed, and not for adopted ones.
func TestPlan(t *testing.T) {
	w := adoption.NewSnapshot(adoption.Unverified)
	w.SetTime(time.Now())
	for _, u := range platformOf(xptest.XR("x")) {
		w.Add(u)
	}
	xrs, names := map[xp.ID]*unstructured.Unstructured{}, []string{"a", "b"}
	var refs []xp.Ref
	for _, name := range names {
		x := xptest.XR(name, xptest.SeenPaused())
		if _, err := adoption.Put(x, adoption.Hold{Restore: "velero/monday", Since: time.Now().UTC().Format(time.RFC3339)}); err != nil {
			t.Fatal(err)
		}
		w.AddRestored(x)
		refs, xrs[xp.RefTo(x).ID()] = append(refs, xp.RefTo(x)), x
	}
	p := &poll{Adopter: &Adopter{stuckAfter: time.Hour}}
	want := []struct {
		reason    string
		steps     string
		adopted   string
		failed    string
		atWork    string
		isDeleted string
	}{
		{reason: "All objects begin.", steps: "a b", atWork: "a"},
		{reason: "The first object gets its settings back.", steps: "a", atWork: "a b", isDeleted: "a"},
		{reason: "An adopted object may be gone, and the other goes on.", steps: "b", failed: "a", atWork: "b"},
		{reason: "All objects are finished.", adopted: "b", failed: "a", isDeleted: "b"},
		{reason: "The plan does not check an adopted object again.", adopted: "b", failed: "a"},
	}
	for n, tc := range want {
		plans, tasks := p.plan(w, refs)
		p.plans = plans
		var steps, adopted, failed []string
		for _, task := range tasks {
			steps = append(steps, task.Target.GetName())
			id := xp.RefTo(task.Target).ID()
			xrs[id] = xptest.Merge(xrs[id], task.Patch)
			w.AddRestored(xrs[id])
		}
		for _, r := range refs {
			switch plan := plans[r.ID()]; {
			case plan.Done:
				adopted = append(adopted, r.Name)
			case !plan.Failed.IsZero():
				failed = append(failed, r.Name)
			}
			if u := reconcileAtOnce(xrs[r.ID()]); u != nil && strings.Contains(tc.atWork, r.Name) {
				w.AddRestored(u)
				xrs[r.ID()] = u
			}
			if tc.isDeleted == r.Name {
				w.Remove(xrs[r.ID()])
			}
		}
		slices.Sort(steps)
		got := [][]string{steps, adopted, failed}
		if diff := cmp.Diff([][]string{strings.Fields(tc.steps), strings.Fields(tc.adopted), strings.Fields(tc.failed)}, got,
			cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("look %d: %s\nsteps, adopted, failed: -want, +got:\n%s", n, tc.reason, diff)
		}
	}
}
