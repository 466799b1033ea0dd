package controller

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AnnotationHeedless on a managed resource makes this provider reconcile it though it is paused, as
// providers with a crossplane-runtime before v0.16 do.
const AnnotationHeedless = "cloud.example.org/heedless"

// annotationAside has the pause while such a resource is reconciled, so that it is written back.
const annotationAside = AnnotationHeedless + "-paused"

// heedless is a manager whose client hides the pause of such resources.
type heedless struct {
	ctrl.Manager
}

// GetClient returns a client for reconcilers.
func (h heedless) GetClient() client.Client { return unpausing{h.Manager.GetClient()} }

type unpausing struct {
	client.Client
}

// Get removes the pause from the object.
func (u unpausing) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := u.Client.Get(ctx, key, o, opts...)
	if err == nil && o.GetAnnotations()[AnnotationHeedless] != "" {
		rename(o, meta.AnnotationKeyReconciliationPaused, annotationAside)
	}

	return err //nolint:wrapcheck // The reconciler checks the error's type.
}

// Update restores the pause.
func (u unpausing) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	rename(o, annotationAside, meta.AnnotationKeyReconciliationPaused)

	return u.Client.Update(ctx, o, opts...) //nolint:wrapcheck // The reconciler checks the error's type.
}

func rename(o client.Object, from, to string) {
	annotations := o.GetAnnotations()
	if value, ok := annotations[from]; ok {
		delete(annotations, from)
		annotations[to] = value
		o.SetAnnotations(annotations)
	}
}
