package printer

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func TestNames(t *testing.T) {
	child := &report.Node{Ref: xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "a", Name: "s"}}
	root := &report.Node{Ref: xp.Ref{APIVersion: "example.org/v1", Kind: "Order", Namespace: "a", Name: "o"}, Children: []*report.Node{child, child}}
	got := printed(t, &report.Report{Trees: []*report.Node{root}}, Name, Options{})
	if diff := cmp.Diff("order.example.org/o\nsecret/s\n", got); diff != "" {
		t.Errorf("each object has one line: -want, +got:\n%s", diff)
	}
	held := releaseOf([]report.Release{hold(root.Ref, report.Released), hold(child.Ref, report.StillHeld)})
	if diff := cmp.Diff("order.example.org/o\nsecret/s\n", printed(t, held, Name, Options{})); diff != "" {
		t.Errorf("the objects of hold and release are in no tree: -want, +got:\n%s", diff)
	}
}
