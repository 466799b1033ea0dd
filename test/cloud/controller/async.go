package controller

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A Mode is how the resources of a kind are created, and where the cloud's ID is stored.
type Mode string

const (
	// Sync waits for the cloud's answer to a create, and stores its external-name at once.
	Sync Mode = ""

	// Async is upjet's UseAsync: a create reports success and goes on in the background, and only
	// this process' memory has the cloud's ID until an observation late-initializes it (upjet
	// pkg/controller/external_async_tfpluginsdk.go and external_tfpluginsdk.go). Without
	// LateInitialize among the management policies that never happens (upjet issues 531 and 561).
	Async Mode = "async"

	// AsyncARN is Async with an ID in the status that differs from the external-name.
	AsyncARN Mode = "async-arn"

	// Unruled is Sync with a provider without managementPolicies.
	Unruled Mode = "unruled"
)

// Modes are the modes of the kinds that are not Sync.
type Modes map[schema.GroupKind]Mode

// Set the mode of kinds, such as Database.cloud.example.org,Network.cloud.example.org.
func (m Modes) Set(mode Mode, kinds string) error {
	for kind := range strings.SplitSeq(kinds, ",") {
		gk := schema.ParseGroupKind(kind)
		if gk.Kind == "" || gk.Group == "" {
			return fmt.Errorf("cannot make %q %s: it is not a kind and its group, such as Database.cloud.example.org", kind, mode)
		}

		m[gk] = mode
	}

	return nil
}

// A tracker has the resources that this process has created or is creating.
type tracker struct {
	mu      sync.Mutex
	creates map[types.UID]creation
}

type creation struct {
	running bool
	id      string
}

func (t *tracker) get(uid types.UID) creation {
	t.mu.Lock()
	defer t.mu.Unlock()

	return t.creates[uid]
}

func (t *tracker) set(uid types.UID, c creation) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if t.creates == nil {
		t.creates = map[types.UID]creation{}
	}

	t.creates[uid] = c
}

// An AsyncExternal is a client of the cloud for one managed resource. It does not wait for the end
// of a create.
type AsyncExternal struct {
	External

	tracker *tracker
}

// Observe the resource of the external-name, or the one that this process has created.
func (e *AsyncExternal) Observe(ctx context.Context, mg Managed) (managed.ExternalObservation, error) {
	if meta.GetExternalName(mg) != "" {
		return e.External.Observe(ctx, mg)
	}

	c := e.tracker.get(mg.GetUID())
	if c.running {
		mg.SetConditions(xpv2.Creating())

		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
	}

	if c.id == "" {
		return managed.ExternalObservation{}, nil
	}

	// The API server gets this only if the reconciler late-initializes.
	meta.SetExternalName(mg, c.id)

	o, err := e.External.Observe(ctx, mg)
	o.ResourceLateInitialized = o.ResourceExists

	return o, err
}

// Create starts to create the resource and returns success at once. If the creation fails, the next
// observation finds nothing.
func (e *AsyncExternal) Create(ctx context.Context, mg Managed) (managed.ExternalCreation, error) {
	mg.SetConditions(xpv2.Creating())

	uid, kind, spec := mg.GetUID(), mg.CloudKind(), e.desired(mg)
	e.tracker.set(uid, creation{running: true})

	go func() {
		// If this fails there is no resource, and so no ID.
		r, _ := e.cloud.Create(context.WithoutCancel(ctx), kind, "", spec)
		e.tracker.set(uid, creation{id: r.ID})
	}()

	return managed.ExternalCreation{}, nil
}
