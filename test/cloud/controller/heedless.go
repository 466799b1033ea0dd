package controller

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AnnotationHeedless on a managed resource has this provider reconcile it though it is paused, as
// providers on a crossplane-runtime before v0.16 do.
const AnnotationHeedless = "cloud.example.org/heedless"

// annotationAside is where the pause is while such a resource is reconciled, so that it is written
// back.
const annotationAside = AnnotationHeedless + "-paused"

// heedless is a manager whose client does not show that such resources are paused.
type heedless struct {
	ctrl.Manager
}

// GetClient returns a client for reconcilers.
func (h heedless) GetClient() client.Client { return unpausing{h.Manager.GetClient()} }

type unpausing struct {
	client.Client
}

// Get takes the pause off what it returns.
func (u unpausing) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := u.Client.Get(ctx, key, o, opts...)
	if err == nil && o.GetAnnotations()[AnnotationHeedless] != "" {
		rename(o, meta.AnnotationKeyReconciliationPaused, annotationAside)
	}

	return err //nolint:wrapcheck // The reconciler looks at what it is.
}

// Update writes it back.
func (u unpausing) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	rename(o, annotationAside, meta.AnnotationKeyReconciliationPaused)

	return u.Client.Update(ctx, o, opts...) //nolint:wrapcheck // The reconciler looks at what it is.
}

func rename(o client.Object, from, to string) {
	annotations := o.GetAnnotations()
	if value, ok := annotations[from]; ok {
		delete(annotations, from)
		annotations[to] = value
		o.SetAnnotations(annotations)
	}
}
