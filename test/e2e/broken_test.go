package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// backUpBroken records the state of a tenant, and backs it up with a broken Composition.
func (s *suite) backUpBroken(t *testing.T, n *tenant) {
	t.Helper()
	s.remember(t, s.source, n)
	s.breakComposition(t, n)
	must(t, n.Backup(t.Context(), s.source, n.Namespace))
}

// breakComposition breaks a tenant's Composition so that Crossplane can't reconcile an XR, and waits
// until Crossplane reports that.
func (s *suite) breakComposition(t *testing.T, n *tenant) {
	t.Helper()
	ctx := t.Context()
	kind := schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"}
	compositions, err := list(ctx, s.source, kind, "", "")
	must(t, err)
	broken := false
	for _, u := range compositions {
		if strings.HasSuffix(u.GetName(), "-"+n.Namespace) {
			must(t, drill.Patch(ctx, s.source, &u, map[string]any{"spec": map[string]any{"pipeline": unreadable(t, &u)}}))
			broken = true
		}
	}
	if !broken {
		t.Fatalf("there is no Composition of %s", n.Namespace)
	}
	s.awaitSynced(t, s.source, n, "False")
}

// unreadable returns a Composition's pipeline with an input that its function can't decode.
func unreadable(t *testing.T, composition *unstructured.Unstructured) []any {
	t.Helper()
	pipeline, _, err := unstructured.NestedSlice(composition.Object, "spec", "pipeline")
	must(t, err)
	step, _ := pipeline[0].(map[string]any)
	must(t, unstructured.SetNestedField(step, "NoSuchType", "input", "patchSets"))

	return pipeline
}

// awaitSynced waits until each XR has that status of the condition Synced.
func (s *suite) awaitSynced(t *testing.T, c *stack.Cluster, n *tenant, synced string) {
	t.Helper()
	must(t, c.Wait(t.Context(), patience, "each XR to have Synced "+synced, func(ctx context.Context) error {
		xrs, err := n.Composites(ctx, c)
		if err != nil {
			return err
		}
		if len(xrs) != n.size {
			return fmt.Errorf("there are %d of %d XRs", len(xrs), n.size)
		}
		var errs []error
		for _, u := range xrs {
			errs = append(errs, stack.HasCondition(&u, "Synced", synced))
		}

		return errors.Join(errs...)
	}))
}

// testBroken checks that XRs that Crossplane could not reconcile at the backup are released as
// broken as they were: under the revision in the backup there is nothing else to wait for. With
// their own settings they follow the Composition of the target, which works.
func (s *suite) testBroken(t *testing.T, n *tenant) {
	s.restore(t, n, n.Namespace)
	s.awaitSynced(t, s.target, n, "True")
	s.settle(t, n)
	s.wantSound(t, n)
}
