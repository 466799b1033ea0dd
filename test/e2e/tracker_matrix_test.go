//go:build matrix

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// From v2.4 on Crossplane records the dependencies of an XR when it composes it, and finds the XR
// there when one of them changes. A held XR composes nothing.
func TestMatrixTracked(t *testing.T) { eachVersion(t, testTracked, stack.V24, stack.V2) }

// testTracked changes composed resources during a hold and after it, without Crossplane's poll.
func testTracked(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	ctx := t.Context()
	n := s.few(t, s.source, drill.Platform{Namespace: "tracked"}, 2)
	s.backUp(t, s.source, n)
	s.loseSource(t, n)
	s.restore(t, n, n.Namespace, "--annotations", "velero.crossplane.io/release=by-hand")
	mrs, err := n.Managed(ctx, s.target)
	must(t, err)
	mrs = slices.DeleteFunc(mrs, func(u unstructured.Unstructured) bool { return u.GetKind() != "Bucket" })
	was := map[string]string{}
	for _, u := range mrs {
		was[u.GetName()] = regionOf(&u)
		moveAway(t, s, &u)
	}

	// Each MR is reconciled with its change, and its XR is not.
	for _, u := range mrs {
		s.eventually(t, u.GetName()+" to be reconciled with its change", func(ctx context.Context) error {
			live, err := get(ctx, s.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
			if err != nil {
				return err
			}
			if got := regionOf(live); got != drifted {
				t.Fatalf("the region of %s is %q, though its XR is held", u.GetName(), got)
			}

			return stack.HasCondition(live, "Synced", "True")
		})
	}
	s.released(t, "--restore", n.Namespace)
	s.awaitRegions(t, "changes while the XRs were held to be undone when they are released", mrs, was)
	s.settle(t, n)
	for _, u := range mrs {
		moveAway(t, s, &u)
	}
	s.awaitRegions(t, "later changes to be undone", mrs, was)

	// Crossplane notices the deletion of a composed resource too. It derives the name of the new
	// one from the current UID of the XR.
	gone := mrs[0]
	since := s.seq(t)
	remove(t, s.target, gone.GroupVersionKind(), gone.GetNamespace(), gone.GetName())
	s.eventually(t, "its XR to create another "+gone.GetName(), func(ctx context.Context) error {
		made, err := s.cloud.Journal(ctx, since, api.Create)
		if err == nil && len(made) != 1 {
			err = fmt.Errorf("%d were created: %v", len(made), made)
		}

		return err
	})
}

const drifted = "eu-drift"

func regionOf(mr *unstructured.Unstructured) string {
	region, _, _ := unstructured.NestedString(mr.Object, "spec", "forProvider", "region")

	return region
}

// moveAway changes the region of an MR, as another writer would.
func moveAway(t *testing.T, s *suite, mr *unstructured.Unstructured) {
	t.Helper()
	must(t, drill.Patch(t.Context(), s.target, mr, map[string]any{"spec": map[string]any{"forProvider": map[string]any{"region": drifted}}}))
}

// awaitRegions waits until the MRs are in their earlier regions again.
func (s *suite) awaitRegions(t *testing.T, what string, mrs []unstructured.Unstructured, was map[string]string) {
	t.Helper()
	for _, u := range mrs {
		s.eventually(t, what+": "+u.GetName(), func(ctx context.Context) error {
			live, err := get(ctx, s.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
			if err != nil {
				return err
			}
			if got := regionOf(live); got != was[u.GetName()] {
				return fmt.Errorf("its region is %q, not %q", got, was[u.GetName()])
			}

			return nil
		})
	}
}
