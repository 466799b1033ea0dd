package exchange

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// An XR can list any object, and must not delete those that it does not control.
func TestWalk(t *testing.T) {
	xr, own, foreign, gone := xptest.XR("x"), xptest.MR("own"), xptest.MR("foreign"), xptest.MR("gone")
	own, foreign = xptest.With(own, xptest.ControlledBy(xr)), xptest.With(foreign, xptest.ControlledBy(xptest.XR("y")))
	xr = xptest.With(xr, xptest.Refs(own, foreign, gone, own))
	tree, err := Walk(xr, among([]*unstructured.Unstructured{own, foreign}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*unstructured.Unstructured{own}, tree.Below); diff != "" {
		t.Errorf("the composed resources: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]xp.Ref{xp.RefTo(foreign)}, tree.Foreign); diff != "" {
		t.Errorf("the objects of other owners: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]xp.Ref{xp.RefTo(gone)}, tree.Missing); diff != "" {
		t.Errorf("the missing objects: -want, +got:\n%s", diff)
	}
	if !tree.has(own) || tree.has(foreign) {
		t.Errorf("the tree must have its own objects and no others")
	}
	s := Snapshot{Live: tree, Saved: Tree{Root: xptest.XR("x", xptest.UID("old"), xptest.Refs(xptest.MR("old")))}}
	if p := s.Plan(); len(p.Items) != 1 || cmp.Diff(tree.Foreign, p.Foreign) != "" {
		t.Errorf("the plan must list the objects of other owners: %+v", p)
	}
}
