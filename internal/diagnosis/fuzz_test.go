package diagnosis

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// FuzzDiagnose diagnoses a backup and a cluster with one arbitrary object.
func FuzzDiagnose(f *testing.F) {
	xptest.Seeds(func(animal uint8, patch []byte) { f.Add(animal, patch, true) })
	f.Fuzz(func(t *testing.T, animal uint8, patch []byte, live bool) {
		u, ok := xptest.Patched(animal, patch)
		if !ok {
			return
		}
		objects := map[xp.ID]*unstructured.Unstructured{}
		for _, o := range append(xptest.HostileObjects(), u) {
			objects[xp.RefTo(o).ID()] = o
		}
		o := NewObjects()
		for _, each := range objects {
			o.Add(each)
		}
		var problems []report.Problem
		s := ClusterState{Now: now, Restores: map[string]string{"velero/monday": "Completed"}}
		if live {
			problems = Validate(o, s)
		} else {
			problems = Inspect(o)
		}
		trees := o.Trees()
		s.Explain(trees)
		for _, p := range problems {
			if p.Code == "" || p.Object.Kind == "" || p.Reason == "" || p.Next == "" {
				t.Errorf("a problem lacks its code, object, reason or next step: %+v", p)
			}
		}
		_, _, _, _ = o.Missing(), o.Controllers(), o.Composed(), o.Versions()
		checkDepth(t, trees, 0)
		_, _ = o.Select(Selection{Names: []string{u.GetName()}}, trees, problems)
	})
}

// checkDepth fails if a tree is endless.
func checkDepth(t *testing.T, nodes []*report.Node, n int) {
	t.Helper()
	if n > len(xptest.HostileObjects())+1 {
		t.Fatal("a tree has more levels than there are objects")
	}
	for _, node := range nodes {
		checkDepth(t, node.Children, n+1)
	}
}

// A chain of XRs, each composed by the previous one, must cost time linear in its length and no
// stack.
func TestLongChain(t *testing.T) {
	const long = 5_000
	o := NewObjects()
	next := xptest.MR("end")
	for n := range long {
		xr := xptest.XR(fmt.Sprint("x", n), xptest.Refs(next))
		o.Add(xptest.With(next, xptest.ControlledBy(xr)))
		next = xr
	}
	o.Add(next)
	trees := o.Trees()
	if len(trees) != long/maxDepth {
		t.Errorf("the number of trees is %d", len(trees))
	}
	found := 0
	for _, n := range trees {
		for ; ; n = n.Children[0] {
			found++
			if len(n.Children) == 0 {
				break
			}
		}
	}
	if found != long+1 {
		t.Errorf("the trees have %d objects", found)
	}
}
