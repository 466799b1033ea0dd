// Package controller reconciles the kinds of package apis with the cloud, with the managed
// reconciler of crossplane-runtime.
package controller

import (
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
)

// The annotations and labels that Crossplane writes on a composed resource (crossplane-runtime
// pkg/xcrd).
const (
	labelComposite                    = "crossplane.io/composite"
	annotationCompositionResourceName = "crossplane.io/composition-resource-name"
)

// Keys of the connection secret of a database.
const (
	keyEndpoint = "endpoint"
	keyUsername = "username"
	keyPassword = "password"
)

// A Managed resource of this provider. The reconciler is the same for each kind and scope.
type Managed interface {
	resource.Managed

	// CloudKind returns the cloud's kind.
	CloudKind() api.Kind

	// Desired returns the spec for the cloud.
	Desired() api.Spec

	// SetObserved stores the observed resource in the status.
	SetObserved(r api.Resource)
}

// A Connector makes the cloud's client for a managed resource.
type Connector struct {
	cloud   *api.Client
	cluster string
	typer   runtime.ObjectTyper // Knows the kinds of objects.
	mode    Mode
	tracker *tracker
	secrets secrets
}

// Connect returns a client for the managed resource.
func (c *Connector) Connect(ctx context.Context, mg Managed) (managed.TypedExternalClient[Managed], error) {
	caller, err := c.callerFor(mg)
	if err != nil {
		return nil, err
	}

	password, err := c.secrets.password(ctx, mg)
	if err != nil {
		return nil, err
	}

	e := External{cloud: c.cloud.As(caller), arn: c.mode == AsyncARN, password: password}
	if c.mode == Sync || c.mode == Unruled {
		return &e, nil
	}

	return &AsyncExternal{External: e, tracker: c.tracker}, nil
}

// callerFor returns the caller of a managed resource. The resource has no kind in it after a write
// (Update).
func (c *Connector) callerFor(mg Managed) (api.Caller, error) {
	gvk, err := resource.GetKind(mg, c.typer)
	if err != nil {
		return api.Caller{}, fmt.Errorf("cannot identify the caller: %w", err)
	}

	name := mg.GetName()
	if ns := mg.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}

	return api.Caller{
		Cluster:                 c.cluster,
		ManagedBy:               fmt.Sprintf("%s, %s, %s, %s", gvk.GroupVersion(), gvk.Kind, name, mg.GetUID()),
		Composite:               mg.GetLabels()[labelComposite],
		CompositionResourceName: mg.GetAnnotations()[annotationCompositionResourceName],
	}, nil
}

// An External is a client of the cloud for one managed resource.
type External struct {
	cloud *api.Client
	arn   bool // The status' ID differs from the external-name.

	password string // The password in the Secret of the managed resource.
}

// desired returns the spec for the cloud.
func (e *External) desired(mg Managed) api.Spec {
	spec := mg.Desired()
	spec.Password = e.password

	return spec
}

// Observe the resource of the external-name. Without an external-name there is none.
func (e *External) Observe(ctx context.Context, mg Managed) (managed.ExternalObservation, error) {
	id := meta.GetExternalName(mg)
	if id == "" {
		return managed.ExternalObservation{}, nil
	}

	r, err := e.cloud.Get(ctx, mg.CloudKind(), id)
	if api.IsNotFound(err) {
		return managed.ExternalObservation{}, nil
	}

	if err != nil {
		return managed.ExternalObservation{}, err
	}

	seen := r
	if e.arn {
		seen.ID = "arn:cloud:" + strings.ToLower(string(r.Kind)) + ":" + r.ID
	}

	mg.SetObserved(seen)

	if r.State == api.Available {
		mg.SetConditions(xpv2.Available())
	} else {
		mg.SetConditions(xpv2.Creating())
	}

	return managed.ExternalObservation{
		ResourceExists:    true,
		ResourceUpToDate:  r.Spec.Equal(e.desired(mg)),
		ConnectionDetails: connectionDetails(r),
	}, nil
}

// Create the resource. The external-name becomes the cloud's ID.
func (e *External) Create(ctx context.Context, mg Managed) (managed.ExternalCreation, error) {
	mg.SetConditions(xpv2.Creating())

	id := ""
	if ownsName(mg) {
		id = meta.GetExternalName(mg)
	}

	r, err := e.cloud.Create(ctx, mg.CloudKind(), id, e.desired(mg))
	if err != nil {
		return managed.ExternalCreation{}, err
	}

	meta.SetExternalName(mg, r.ID)

	return managed.ExternalCreation{ConnectionDetails: connectionDetails(r)}, nil
}

// Update the resource to the desired spec.
func (e *External) Update(ctx context.Context, mg Managed) (managed.ExternalUpdate, error) {
	_, err := e.cloud.Update(ctx, mg.CloudKind(), meta.GetExternalName(mg), e.desired(mg))
	return managed.ExternalUpdate{}, err
}

// Delete the resource. A missing resource is no error.
func (e *External) Delete(ctx context.Context, mg Managed) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())

	if err := e.cloud.Delete(ctx, mg.CloudKind(), meta.GetExternalName(mg)); err != nil && !api.IsNotFound(err) {
		return managed.ExternalDelete{}, err
	}

	return managed.ExternalDelete{}, nil
}

// Disconnect does nothing.
func (e *External) Disconnect(_ context.Context) error { return nil }

// ownsName reports whether the creator chooses the ID. The cloud chooses it for every other kind.
func ownsName(mg Managed) bool { return mg.CloudKind() == api.Bucket }

func connectionDetails(r api.Resource) managed.ConnectionDetails {
	if r.Connection == nil {
		return nil
	}

	return managed.ConnectionDetails{
		keyEndpoint: []byte(r.Connection.Endpoint),
		keyUsername: []byte(r.Connection.Username),
		keyPassword: []byte(r.Connection.Password),
	}
}
