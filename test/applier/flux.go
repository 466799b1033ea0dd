package main

import (
	"context"

	"github.com/fluxcd/pkg/ssa"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The name of Flux's kustomize-controller for itself.
const (
	fluxManager = "kustomize-controller"
	fluxGroup   = "kustomize.toolkit.fluxcd.io"
)

// The Kustomization that it applies.
const (
	fluxName      = "team"
	fluxNamespace = "flux-system"
)

// flux applies as Flux's kustomize-controller does.
type flux struct{ manager *ssa.ResourceManager }

func newFlux(c client.Client) *flux {
	return &flux{manager: ssa.NewResourceManager(c, nil, ssa.Owner{Field: fluxManager, Group: fluxGroup})}
}

func (f *flux) apply(ctx context.Context, manifest, _ *unstructured.Unstructured) error {
	objects := []*unstructured.Unstructured{manifest}
	f.manager.SetOwnerLabels(objects, fluxName, fluxNamespace)
	_, err := f.manager.ApplyAll(ctx, objects, fluxOptions())

	return err //nolint:wrapcheck // The caller adds which object can't be applied.
}

// prune deletes as the garbage collection of kustomize-controller does
// (kustomization_controller.go, prune).
func (f *flux) prune(ctx context.Context, live *unstructured.Unstructured) error {
	_, err := f.manager.DeleteAll(ctx, []*unstructured.Unstructured{live}, ssa.DeleteOptions{
		PropagationPolicy: metav1.DeletePropagationBackground,
		Inclusions:        f.manager.GetOwnerLabels(fluxName, fluxNamespace),
		Exclusions:        map[string]string{fluxGroup + "/prune": "disabled", fluxGroup + "/reconcile": "disabled"},
	})

	return err //nolint:wrapcheck // The caller adds which object can't be pruned.
}

// fluxOptions are those of kustomize-controller (fluxcd/kustomize-controller
// internal/controller/kustomization_controller.go, apply).
func fluxOptions() ssa.ApplyOptions {
	options := ssa.DefaultApplyOptions()
	options.ExclusionSelector = map[string]string{fluxGroup + "/reconcile": "disabled", fluxGroup + "/ssa": "ignore"}
	options.IfNotPresentSelector = map[string]string{fluxGroup + "/ssa": "ifnotpresent"}
	options.ForceSelector = map[string]string{fluxGroup + "/force": "enabled"}
	options.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{corev1.LastAppliedConfigAnnotation, fluxGroup + "/checksum", "fluxcd.io/sync-checksum"},
		Labels:      []string{"fluxcd.io/sync-gc-mark"},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: fluxManager, OperationType: metav1.ManagedFieldsOperationUpdate},
		},
		Exclusions: map[string]string{fluxGroup + "/ssa": "merge"},
	}

	return options
}
