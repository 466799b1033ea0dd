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
	s.awaitManual(t, n)
	for _, u := range s.tree(ctx, t, n, n.Name(0)) {
		must(t, drill.Patch(ctx, s.source, &u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"crossplane.io/paused": "true"}}}))
	}
	s.awaitPaused(t, n)
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

func names(objects []unstructured.Unstructured) []string {
	var names []string
	for _, u := range objects {
		names = append(names, u.GetKind()+"/"+u.GetName())
	}

	return names
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

// awaitManual waits until the second instance's XR is Manual. On v1 it gets that from the claim.
func (s *suite) awaitManual(t *testing.T, n *tenant) {
	t.Helper()
	must(t, s.source.Wait(t.Context(), time.Minute, "the XR to be on Manual", func(ctx context.Context) error {
		xrs, err := n.Composites(ctx, s.source)
		if err != nil {
			return err
		}
		for _, u := range xrs {
			if pinned(&u) {
				return nil
			}
		}

		return fmt.Errorf("none of %d is", len(xrs))
	}))
}

// awaitPaused waits until Crossplane reports that the first instance is paused. It has then
// observed all earlier changes to the instance too.
func (s *suite) awaitPaused(t *testing.T, n *tenant) {
	t.Helper()
	must(t, s.source.Wait(t.Context(), time.Minute, "Crossplane to see the pause", func(ctx context.Context) error {
		for _, u := range s.tree(ctx, t, n, n.Name(0)) {
			if err := stack.HasCondition(&u, "Synced", "False"); err != nil {
				return err
			}
		}

		return nil
	}))
}

// testOwnSettings expects unchanged settings. wantSound compares them with the backup.
func (s *suite) testOwnSettings(t *testing.T, n *tenant) {
	s.restore(t, n, n.Namespace, "--include-namespaces", n.Namespace)
	s.settle(t, n)
	s.wantSound(t, n)

	instances, err := n.Instances(t.Context(), s.target)
	must(t, err)
	for _, u := range instances {
		if paused(&u) != (u.GetName() == n.Name(0)) || pinned(&u) != (u.GetName() == n.Name(1)) {
			t.Errorf("%s has other settings than before: paused %v, Manual %v", u.GetName(), paused(&u), pinned(&u))
		}
	}
}
