package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// settings creates a user's own settings: the first instance, on v1 claim and XR, is paused, and
// the second is pinned to the first revision. Then the Composition gets its database, which only
// the other instances follow.
func (s *suite) settings(t *testing.T, n *tenant) {
	t.Helper()
	ctx := t.Context()
	must(t, n.AwaitReady(ctx, s.source, n.size))
	manual := map[string]any{"compositionUpdatePolicy": "Manual"}
	if s.version == stack.V2 {
		manual = map[string]any{"crossplane": manual}
	}
	must(t, drill.Patch(ctx, s.source, &s.tree(ctx, t, n, n.Name(1))[0], map[string]any{"spec": manual}))
	s.awaitSet(t, n, 1, pinned) // On v1 the XR gets that from the claim.
	for _, u := range s.tree(ctx, t, n, n.Name(0)) {
		must(t, drill.Patch(ctx, s.source, &u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"crossplane.io/paused": "true"}}}))
	}
	s.awaitSet(t, n, 0, func(u *unstructured.Unstructured) bool { return stack.HasCondition(u, "Synced", "False") == nil })
	n.Without = nil
	must(t, n.Compose(ctx, s.source))
	must(t, s.source.Wait(ctx, time.Minute, "the other instances to have databases", func(ctx context.Context) error {
		mrs, err := n.Managed(ctx, s.source)
		if err == nil && len(mrs) != 3*n.size-2 {
			err = fmt.Errorf("there are %d MRs: %v", len(mrs), names(mrs))
		}

		return err
	}))
}

// tree returns an instance and its XR, which on v2 are one.
func (s *suite) tree(ctx context.Context, t *testing.T, n *tenant, name string) []unstructured.Unstructured {
	t.Helper()
	instances, err := n.Instances(ctx, s.source)
	must(t, err)
	tree := slices.DeleteFunc(instances, func(u unstructured.Unstructured) bool { return u.GetName() != name })
	if s.version == stack.V2 {
		return tree
	}
	xrs, err := n.Composites(ctx, s.source)
	must(t, err)

	return append(tree, slices.DeleteFunc(xrs, func(u unstructured.Unstructured) bool {
		return u.GetLabels()["crossplane.io/claim-name"] != name
	})...)
}

// awaitSet waits until Crossplane has seen a setting on all of an instance's objects. It has then
// observed all earlier changes of them too.
func (s *suite) awaitSet(t *testing.T, n *tenant, i int, seen func(u *unstructured.Unstructured) bool) {
	t.Helper()
	must(t, s.source.Wait(t.Context(), time.Minute, "Crossplane to see the settings of "+n.Name(i), func(ctx context.Context) error {
		for _, u := range s.tree(ctx, t, n, n.Name(i)) {
			if !seen(&u) {
				return fmt.Errorf("%s %s is without", u.GetKind(), u.GetName())
			}
		}

		return nil
	}))
}
