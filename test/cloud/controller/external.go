// Package controller reconciles the kinds in package apis with the cloud, on the managed reconciler
// of crossplane-runtime.
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

// What Crossplane writes on a resource that it composes (crossplane-runtime pkg/xcrd).
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

// A Managed resource of this provider. Its kind and its scope make no difference to how it is
// reconciled.
type Managed interface {
	resource.Managed

	// CloudKind is what the cloud calls the kind.
	CloudKind() api.Kind

	// Desired is what to ask the cloud for.
	Desired() api.Spec

	// SetObserved records what was seen of the resource in the cloud.
	SetObserved(r api.Resource)
}

// A Connector connects to the cloud in the name of a managed resource.
type Connector struct {
	cloud   *api.Client
	cluster string
	typer   runtime.ObjectTyper
	mode    Mode
	tracker *tracker
	secrets secrets
}

// NewConnector returns a Connector that says it calls from the cluster, and knows kinds from the
// typer.
func NewConnector(cloud *api.Client, cluster string, typer runtime.ObjectTyper) *Connector {
	return &Connector{cloud: cloud, cluster: cluster, typer: typer, tracker: &tracker{}}
}

// In returns a Connector for a kind that is in a mode. What one Connector has created, another does
// not know.
func (c *Connector) In(mode Mode) *Connector {
	in := *c
	in.mode, in.tracker = mode, &tracker{}

	return &in
}

// Connect to the cloud.
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

// callerFor says who the managed resource is. Its kind can't be read from it: it has none after it
// was written (Update).
func (c *Connector) callerFor(mg Managed) (api.Caller, error) {
	gvk, err := resource.GetKind(mg, c.typer)
	if err != nil {
		return api.Caller{}, fmt.Errorf("cannot tell the cloud who calls: %w", err)
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

// An External client of the cloud, for one managed resource.
type External struct {
	cloud *api.Client
	arn   bool // The ID in the status is not the external name.

	password string // The one that the managed resource names.
}

// desired is what to ask the cloud for.
func (e *External) desired(mg Managed) api.Spec {
	spec := mg.Desired()
	spec.Password = e.password

	return spec
}

// Observe the resource that the external name means. There is none without an external name.
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

// Create the resource. The external name becomes what the cloud calls it.
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

// Update the resource to what is desired.
func (e *External) Update(ctx context.Context, mg Managed) (managed.ExternalUpdate, error) {
	_, err := e.cloud.Update(ctx, mg.CloudKind(), meta.GetExternalName(mg), e.desired(mg))
	return managed.ExternalUpdate{}, err
}

// Delete the resource. It is no error if somebody else did.
func (e *External) Delete(ctx context.Context, mg Managed) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())

	if err := e.cloud.Delete(ctx, mg.CloudKind(), meta.GetExternalName(mg)); err != nil && !api.IsNotFound(err) {
		return managed.ExternalDelete{}, err
	}

	return managed.ExternalDelete{}, nil
}

// Disconnect has nothing to do.
func (e *External) Disconnect(_ context.Context) error { return nil }

// ownsName reports whether the external name is ours to choose. The cloud chooses it for every
// other kind.
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
