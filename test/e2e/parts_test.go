package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A partialLoss is a namespace that is partly lost before it is restored. External resources survive.
type partialLoss struct {
	name    string
	reason  string
	lose    func(t *testing.T, p *partialLoss)
	restore []string
	judge   func(t *testing.T, p *partialLoss)

	tenant *tenant
	prints map[string]drill.Print
}

// partsOf returns the cases by namespace.
func partsOf(s *suite) map[string]*partialLoss {
	return map[string]*partialLoss{
		"member": {
			name:    "ComposedLost",
			reason:  "A lost resource that a live XR lists belongs to it again, also while a user pauses the XR.",
			lose:    s.loseDatabases,
			restore: []string{"--include-namespaces", "member"},
			judge:   s.testComposedLost,
		},
		"dropped": {
			name:    "NoLongerComposed",
			reason:  "A resource that a live XR does not list any more would have no controller, so it is not restored.",
			lose:    s.dropDatabases,
			restore: []string{"--include-namespaces", "dropped"},
			judge:   s.testNoLongerComposed,
		},
		"parent": {
			name:    "CompositeLost",
			reason:  "An XR adopts its composed resources, which have only lost their controller.",
			lose:    s.loseComposites,
			restore: []string{"--include-namespaces", "parent"},
			judge:   s.testCompositeLost,
		},
		"kept": {
			name:    "LiveChanged",
			reason:  "A live object is newer than the backup, with any policy for existing resources.",
			lose:    s.changeManaged,
			restore: []string{"--include-namespaces", "kept", "--existing-resource-policy", "update"},
			judge:   s.testLiveChanged,
		},
	}
}

// loseDatabases pauses the XRs as a user would, and deletes their databases.
func (s *suite) loseDatabases(t *testing.T, p *partialLoss) {
	t.Helper()
	xrs, err := p.tenant.Composites(t.Context(), s.target)
	must(t, err)
	s.pause(t, true, xrs...)
	s.eventually(t, "Crossplane to see the pause", func(ctx context.Context) error {
		xrs, err := p.tenant.Composites(ctx, s.target)
		for _, u := range xrs {
			if err == nil {
				err = stack.HasCondition(&u, "Synced", "False")
			}
		}

		return err
	})
	for _, u := range s.databases(t.Context(), t, p) {
		s.delete(t, &u, metav1.DeletePropagationBackground)
	}
	s.awaitNoDatabases(t, p)
}

func (s *suite) testComposedLost(t *testing.T, p *partialLoss) {
	s.awaitCompleted(t, p.tenant.Namespace)
	xrs, err := p.tenant.Composites(t.Context(), s.target)
	must(t, err)
	now, err := p.tenant.Record(t.Context(), s.target, s.cloud)
	must(t, err)
	if diff := cmp.Diff(p.tenant.before.Slots, now.Slots); diff != "" {
		t.Errorf("%s -before, +after:\n%s", p.reason, diff)
	}
	for _, u := range xrs {
		if !paused(&u) || drill.Held(&u) {
			t.Errorf("the user's own pause of %s is gone: %v", u.GetName(), u.GetAnnotations())
		}
	}
	s.pause(t, false, xrs...)
	s.settle(t, p.tenant)
	s.wantSound(t, p.tenant)
	s.wantNothingLeft(t, p.tenant)
}

// dropDatabases drops the databases from the Composition. Their external resources survive.
func (s *suite) dropDatabases(t *testing.T, p *partialLoss) {
	t.Helper()
	without := p.tenant.Platform
	without.Without = []string{"database"}
	must(t, without.Compose(t.Context(), s.target))
	s.awaitNoDatabases(t, p)
}

func (s *suite) testNoLongerComposed(t *testing.T, p *partialLoss) {
	n := p.tenant
	s.awaitCompleted(t, n.Namespace)
	logs, err := s.target.Velero(t.Context(), "restore", "logs", n.Namespace)
	must(t, err)
	for slot, holder := range n.before.Slots {
		if slot.Resource == "database" {
			wantMessage(t, "the log's problems of the restore", problems(logs), "level=warning", holder.Name, "resourceRefs")
		}
	}
	for _, policy := range []string{"none", "update"} {
		s.restore(t, n, n.Namespace+"-"+policy, "--existing-resource-policy", policy)
	}
	s.settle(t, n)
	if found := s.databases(t.Context(), t, p); len(found) > 0 {
		t.Errorf("%s There are %v", p.reason, names(found))
	}
	got, err := n.Compare(t.Context(), s.target, s.cloud, n.before)
	must(t, err)
	if diff := cmp.Diff(drill.Outcome{Adopted: 2 * few, Total: 3 * few, Orphans: few}, got); diff != "" {
		t.Errorf("%s -want, +got:\n%s", p.reason, diff)
	}
	dead, err := n.DeadOwners(t.Context(), s.target)
	must(t, err)
	for _, d := range dead {
		t.Errorf("after the restore of %s: %s", n.Namespace, d)
	}
}

// loseComposites deletes the XRs and keeps their composed resources. It removes the owner
// references itself: the garbage collector, which can orphan, deletes dependents that it does not
// know yet.
func (s *suite) loseComposites(t *testing.T, p *partialLoss) {
	t.Helper()
	ctx := t.Context()
	if s.version == stack.V1 { // A claim would create another XR at once.
		claims, err := p.tenant.Instances(ctx, s.target)
		must(t, err)
		s.pause(t, true, claims...)
		s.awaitAllPaused(t, p.tenant.Instances)
	}
	xrs, err := p.tenant.Composites(ctx, s.target)
	must(t, err)
	s.pause(t, true, xrs...)
	s.awaitAllPaused(t, p.tenant.Composites)
	composed, err := p.tenant.Managed(ctx, s.target)
	must(t, err)
	for _, u := range composed {
		must(t, drill.Patch(ctx, s.target, &u, map[string]any{"metadata": map[string]any{"ownerReferences": nil}}))
	}
	for _, u := range xrs {
		s.delete(t, &u, metav1.DeletePropagationOrphan)
		must(t, drill.Patch(ctx, s.target, &u, map[string]any{"metadata": map[string]any{"finalizers": nil}}))
	}
	s.eventually(t, "the XRs to be gone", func(ctx context.Context) error {
		xrs, err := p.tenant.Composites(ctx, s.target)
		if err == nil && len(xrs) > 0 {
			err = fmt.Errorf("there are %v", names(xrs))
		}

		return err
	})
	mrs, err := p.tenant.Managed(ctx, s.target)
	must(t, err)
	for _, u := range mrs {
		if u.GetDeletionTimestamp() != nil || len(u.GetOwnerReferences()) > 0 {
			t.Errorf("%s %s was not orphaned: deleted %v, owners %v", u.GetKind(), u.GetName(), u.GetDeletionTimestamp(), u.GetOwnerReferences())
		}
	}
	if len(mrs) != 3*few {
		t.Fatalf("there are %v", names(mrs))
	}
}

// awaitAllPaused waits until Crossplane has observed the pause of all.
func (s *suite) awaitAllPaused(t *testing.T, all func(context.Context, *stack.Cluster) ([]unstructured.Unstructured, error)) {
	t.Helper()
	s.eventually(t, "Crossplane to see the pause", func(ctx context.Context) error {
		paused, err := all(ctx, s.target)
		for _, u := range paused {
			if err == nil {
				err = stack.HasCondition(&u, "Synced", "False")
			}
		}

		return err
	})
}

func (s *suite) testCompositeLost(t *testing.T, p *partialLoss) {
	s.awaitCompleted(t, p.tenant.Namespace)
	if s.version == stack.V1 {
		claims, err := p.tenant.Instances(t.Context(), s.target)
		must(t, err)
		s.pause(t, false, claims...)
	}
	s.settle(t, p.tenant)
	s.wantSound(t, p.tenant)
	s.wantNothingLeft(t, p.tenant)
}

// changeManaged adds tags to the buckets, and gives each network another external-name.
func (s *suite) changeManaged(t *testing.T, p *partialLoss) {
	t.Helper()
	ctx := t.Context()
	mrs, err := p.tenant.Managed(ctx, s.target)
	must(t, err)
	for _, u := range mrs {
		switch u.GetKind() {
		case "Bucket":
			tags := map[string]any{"forProvider": map[string]any{"tags": map[string]any{"since": "the backup"}}}
			must(t, drill.Patch(ctx, s.target, &u, map[string]any{"spec": tags}))
		case "Network":
			cidr, _, _ := unstructured.NestedString(u.Object, "spec", "forProvider", "cidr")
			other, err := s.cloud.Create(ctx, api.Network, "", api.Spec{CIDR: cidr})
			must(t, err)
			annotations := map[string]any{"crossplane.io/external-name": other.ID}
			must(t, drill.Patch(ctx, s.target, &u, map[string]any{"metadata": map[string]any{"annotations": annotations}}))
		}
	}
	s.settle(t, p.tenant)
	p.prints, err = p.tenant.Prints(ctx, s.target)
	must(t, err)
}

func (s *suite) testLiveChanged(t *testing.T, p *partialLoss) {
	n := p.tenant
	s.awaitCompleted(t, n.Namespace)
	s.restore(t, n, n.Namespace+"-none")
	s.settle(t, n)
	after, err := n.Prints(t.Context(), s.target)
	must(t, err)
	if diff := cmp.Diff(p.prints, after, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s -before, +after:\n%s", p.reason, diff)
	}
	got, err := n.Compare(t.Context(), s.target, s.cloud, n.before)
	must(t, err)
	if got.Creates+got.Deletes+got.Holds > 0 {
		t.Errorf("%s %+v", p.reason, got)
	}
}

// pause pauses objects as a user would, or removes the pause.
func (s *suite) pause(t *testing.T, on bool, objects ...unstructured.Unstructured) {
	t.Helper()
	var value any
	if on {
		value = "true"
	}
	for _, u := range objects {
		patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"crossplane.io/paused": value}}}
		must(t, drill.Patch(t.Context(), s.target, &u, patch))
	}
}

func (s *suite) delete(t *testing.T, u *unstructured.Unstructured, policy metav1.DeletionPropagation) {
	t.Helper()
	r, err := s.target.Resource(t.Context(), u.GroupVersionKind(), u.GetNamespace())
	must(t, err)
	if err := r.Delete(t.Context(), u.GetName(), metav1.DeleteOptions{PropagationPolicy: &policy}); !apierrors.IsNotFound(err) {
		must(t, err)
	}
}

func (s *suite) databases(ctx context.Context, t *testing.T, p *partialLoss) []unstructured.Unstructured {
	t.Helper()
	mrs, err := p.tenant.Managed(ctx, s.target)
	must(t, err)

	return slices.DeleteFunc(mrs, func(u unstructured.Unstructured) bool { return u.GetKind() != "Database" })
}

func (s *suite) awaitNoDatabases(t *testing.T, p *partialLoss) {
	t.Helper()
	s.eventually(t, "the databases to be gone", func(ctx context.Context) error {
		if found := s.databases(ctx, t, p); len(found) > 0 {
			return fmt.Errorf("there are %v", names(found))
		}

		return nil
	})
}
