package diagnosis

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// claimAndXR has the marks of both a claim and an XR. Each role references the other object.
func claimAndXR(name, other string) *unstructured.Unstructured {
	ref := claimNamed(other)

	return xptest.Claim(name, xptest.Finalizers(xp.FinalizerClaim, xp.FinalizerComposite), xptest.Field(ref, "spec", "resourceRef"), xptest.Field(ref, "spec", "claimRef"),
		xptest.Field([]any{ref}, "spec", "resourceRefs"), xptest.Reconciled())
}

func claimNamed(name string) map[string]any {
	return map[string]any{"apiVersion": xptest.LegacyVersion, "kind": xptest.ClaimKind, "namespace": xptest.Namespace, "name": name}
}

func TestForgedClaimsAndXRs(t *testing.T) {
	x, y := xptest.XR("x"), xptest.XR("y")
	ring := []*unstructured.Unstructured{xptest.With(x, xptest.Refs(y), xptest.ControlledBy(y)), xptest.With(y, xptest.Refs(x), xptest.ControlledBy(x))}
	claim := xptest.Claim("c")
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		// trees are the objects in the order of the trees. forged are those that are reported.
		trees, forged []string
	}{
		"Self": {
			reason: "An object that is its own claim and XR must appear once, without children.", objects: []*unstructured.Unstructured{claimAndXR("a", "a")},
			trees: []string{"OrderClaim team-a/a"}, forged: []string{"OrderClaim team-a/a"},
		},
		"Two": {
			reason: "Two objects that name each other as claim and XR must appear once each.", objects: []*unstructured.Unstructured{claimAndXR("a", "b"), claimAndXR("b", "a")},
			trees: []string{"OrderClaim team-a/a", "OrderClaim team-a/b"}, forged: []string{"OrderClaim team-a/a", "OrderClaim team-a/b"},
		},
		"OfAClaim": {
			reason: "A claim must not have such an object as its XR.", objects: []*unstructured.Unstructured{xptest.With(claim, xptest.Field(claimNamed("a"), "spec", "resourceRef")), claimAndXR("a", "c")},
			trees: []string{"OrderClaim team-a/c", "OrderClaim team-a/a"}, forged: []string{"OrderClaim team-a/a"},
		},
		"OfAnXR": {
			reason: "Such an object that an XR lists must not count as the XR's own.", objects: []*unstructured.Unstructured{xptest.With(x, xptest.Refs(claimAndXR("a", "a"))), xptest.With(claimAndXR("a", "a"), xptest.ControlledBy(x))},
			trees: []string{"XOrder x", "OrderClaim team-a/a (foreign)", "OrderClaim team-a/a"}, forged: []string{"OrderClaim team-a/a"},
		},
		"SelfComposed": {
			reason: "An XR that composes itself must end its tree.", objects: []*unstructured.Unstructured{xptest.With(x, xptest.Refs(x), xptest.ControlledBy(x))},
			trees: []string{"XOrder x", "XOrder x (foreign)"},
		},
		"Ring": {reason: "XRs that compose each other must end their tree.", objects: ring, trees: []string{"XOrder x", "XOrder y", "XOrder x (foreign)"}},
	}
	for name, tc := range cases {
		for _, marked := range []bool{false, true} {
			o := NewObjects()
			for _, u := range tc.objects {
				if marked {
					u = xptest.With(u, xptest.Annotated("velero.crossplane.io/claim-hold", `{"restore":"velero/r"}`), xptest.Annotated("velero.crossplane.io/hold", `{"restore":"velero/r"}`))
				}
				o.Add(u)
			}
			var trees, forged []string
			var visit func(nodes []*report.Node)
			visit = func(nodes []*report.Node) {
				for _, n := range nodes {
					s := n.String()
					if n.State == report.Foreign {
						s += " (foreign)"
					}
					trees = append(trees, s)
					visit(n.Children)
				}
			}
			all := o.Trees()
			visit(all)
			if diff := cmp.Diff(tc.trees, trees); diff != "" {
				t.Errorf("%s: %s trees: -want, +got:\n%s", name, tc.reason, diff)
			}
			for _, p := range slices.Concat(Inspect(o), Validate(o, ClusterState{Now: now})) {
				if p.Code == reason.Malformed && !slices.Contains(forged, p.Object.String()) {
					forged = append(forged, p.Object.String())
				}
			}
			if diff := cmp.Diff(tc.forged, forged); diff != "" {
				t.Errorf("%s: %s forged: -want, +got:\n%s", name, tc.reason, diff)
			}
			_, _, _, _ = o.Missing(), o.Controllers(), o.Composed(), o.Versions()
			_, _ = o.Select(Selection{Names: []string{"team-a/a"}, Namespace: xptest.Namespace}, all, nil)
		}
	}
}

// countedSource counts the reads of the complete object.
type countedSource struct {
	memorySource

	fullReads *int
}

func (r countedSource) Part(shape *pack.Shape) *unstructured.Unstructured {
	if shape == nil {
		*r.fullReads++
	}

	return r.memorySource.Part(shape)
}

// An XR's references cost time linear in their number: the XR is not read again for each.
func TestLongLists(t *testing.T) {
	const long = 15_000
	for name, here := range map[string]bool{"missing": false, "uncontrolled": true} {
		fullReads := 0
		o := NewObjects()
		x := xptest.XR("x")
		var composed []*unstructured.Unstructured
		for n := range long {
			mr := xptest.MR(fmt.Sprint("b", n), xptest.Labelled(xp.LabelComposite, "x"))
			composed = append(composed, mr)
			if here {
				o.Add(mr)
			}
		}
		o.AddFrom(countedSource{memorySource: memorySource{xptest.With(x, xptest.Refs(composed...))}, fullReads: &fullReads})
		began := time.Now()
		for _, problems := range [][]report.Problem{Inspect(o), Validate(o, ClusterState{Now: now})} {
			if len(problems) < long {
				t.Errorf("%s: got %d problems", name, len(problems))
			}
		}
		if trees := o.Trees(); len(trees) != 1 || len(trees[0].Children) != long {
			t.Errorf("%s: got %d trees", name, len(trees))
		}
		if fullReads > 100 {
			t.Errorf("%s: the XR was read %d times", name, fullReads)
		}
		t.Logf("%s: %s, %d reads", name, time.Since(began), fullReads)
	}
}

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
