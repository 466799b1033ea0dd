package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
)

// Managers of fields: kubectl's when it applies client-side, and Argo CD's.
const (
	clientSide = "kubectl-client-side-apply"
	argo       = "argocd-controller"
)

// manifestOf is what somebody has in Git for an instance: what it asks for, without what others have written.
func manifestOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	maps.DeleteFunc(spec, func(name string, _ any) bool {
		return !slices.Contains([]string{"region", "cidr", "compositionRef"}, name)
	})
	if ref, ok, _ := unstructured.NestedMap(u.Object, "spec", "crossplane", "compositionRef"); ok {
		spec["crossplane"] = map[string]any{"compositionRef": ref}
	}
	m := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	m.SetGroupVersionKind(u.GroupVersionKind())
	m.SetNamespace(u.GetNamespace())
	m.SetName(u.GetName())

	return m
}

// appliedClientSide has the instances of a tenant look as if "kubectl apply" had made them, and returns what was applied.
func (s *suite) appliedClientSide(t *testing.T, n *tenant) []*unstructured.Unstructured {
	t.Helper()
	ctx := t.Context()
	instances, err := n.Instances(ctx, s.source)
	must(t, err)
	var manifests []*unstructured.Unstructured
	for i := range instances {
		m := manifestOf(&instances[i])
		manifests = append(manifests, m)
		last, err := json.Marshal(m.Object)
		must(t, err)
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{corev1.LastAppliedConfigAnnotation: string(last)}}})
		must(t, err)
		r, err := s.source.Resource(ctx, m.GroupVersionKind(), m.GetNamespace())
		must(t, err)
		_, err = r.Patch(ctx, m.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: clientSide})
		must(t, err)
	}

	return manifests
}

// applyAgain applies manifests again and again, as a GitOps controller does, from the moment that their objects are there until the function that it returns is
// called: server-side and by force, and what was managed client-side becomes its own (kubernetes kubectl/pkg/cmd/apply, migrateToSSAIfNecessary).
func (s *suite) applyAgain(t *testing.T, manifests []*unstructured.Unstructured) (stop func() map[string]int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	applied := map[string]int{}
	var applying sync.WaitGroup
	applying.Go(func() {
		for ctx.Err() == nil {
			for _, m := range manifests {
				if s.applyOne(ctx, t, m) {
					applied[m.GetName()]++
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})

	return func() map[string]int {
		cancel()
		applying.Wait()

		return applied
	}
}

// applyOne applies a manifest if its object is there, and tells whether it is.
func (s *suite) applyOne(ctx context.Context, t *testing.T, m *unstructured.Unstructured) bool {
	t.Helper()
	r, err := s.target.Resource(ctx, m.GroupVersionKind(), m.GetNamespace())
	if err != nil {
		return false
	}
	if _, err := r.Get(ctx, m.GetName(), metav1.GetOptions{}); err != nil {
		return false
	}
	options := metav1.ApplyOptions{FieldManager: argo, Force: true}
	u, err := r.Apply(ctx, m.GetName(), m.DeepCopy(), options)
	if err != nil {
		if ctx.Err() == nil && !apierrors.IsConflict(err) {
			t.Errorf("cannot apply %s: %v", m.GetName(), err)
		}

		return false
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(u, sets.New(clientSide), argo)
	if err != nil || patch == nil {
		return err == nil
	}
	if _, err := r.Patch(ctx, m.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		return false // It has changed meanwhile; the next time does it.
	}
	_, err = r.Apply(ctx, m.GetName(), m.DeepCopy(), options)

	return err == nil
}

// testAppliedWhileHeld restores while a GitOps controller applies what comes back, which people had applied client-side before.
func (s *suite) testAppliedWhileHeld(t *testing.T, n *tenant, manifests []*unstructured.Unstructured) {
	stop := s.applyAgain(t, manifests)
	defer stop()
	s.restore(t, n, n.Namespace)
	s.settle(t, n)
	if applied := stop(); len(applied) != n.size {
		t.Errorf("of %d instances %v were applied, so it proves nothing", n.size, applied)
	}
	s.wantSound(t, n)
}
