//go:build matrix

package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A CompositionRevision of v1.20 has fields that v2 does not have, and the API server drops them. XRs that are pinned to it stay with what is left.
func TestMatrixRevisedV23(t *testing.T) {
	const dropped = "publishConnectionDetailsWithStoreConfigRef"
	ctx := t.Context()
	s := begin(t, &suite{version: stack.V1, newer: stack.V2})
	pinned := s.few(t, s.source, drill.Platform{Namespace: "pinned", UpdatePolicy: "Manual"}, 6)
	following := s.few(t, s.source, drill.Platform{Namespace: "following"}, 6)
	alone := s.tenant(t, s.source, drill.Platform{Namespace: "alone", UpdatePolicy: "Manual"})
	for _, n := range []*tenant{pinned, following, alone} {
		s.backUp(t, s.source, n)
		n.managers = nil // Crossplane v2 writes under another name.
	}
	following.revised = true
	kind := schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}
	revision := func(c *stack.Cluster) (string, bool) {
		all, err := list(ctx, c, kind, "", "crossplane.io/composition-name=environments-pinned")
		must(t, err)
		if len(all) == 0 {
			t.Fatal("there is no revision")
		}
		_, has, _ := unstructured.NestedMap(all[0].Object, "spec", dropped)

		return all[0].GetName(), has
	}
	before, had := revision(s.source)
	must(t, s.source.Destroy())

	var err error
	s.target, err = stack.NewCluster(ctx, s.host, stack.Options{Name: "target", Crossplane: stack.V2, VeleroArgs: oftener})
	must(t, err)
	must(t, drill.Platform{Crossplane: s.version}.Install(ctx, s.target))
	must(t, s.target.RestartVelero(ctx))
	t.Run("VeleroAlone", func(t *testing.T) { s.testVeleroAlone(t, alone) })
	for _, n := range []*tenant{pinned, following} {
		t.Run(n.Namespace, func(t *testing.T) {
			s.restore(t, n, n.Namespace)
			s.settle(t, n)
			s.wantSound(t, n)
		})
	}
	if after, has := revision(s.target); after != before || !had || has {
		t.Errorf("the revision was %s, with %s: %t, and is %s, with it: %t, so this test proves nothing", before, dropped, had, after, has)
	}
}
