package stack

import (
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// A client talks to one API server.
type client struct {
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

func newClient(config *rest.Config) (*client, error) {
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client of the API server: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a discovery client of the API server: %w", err)
	}

	return &client{dynamic: dyn, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))}, nil
}

// Name returns the name of the cluster.
func (c *Cluster) Name() string { return c.options.Name }

// Options returns the options that the cluster was made with.
func (c *Cluster) Options() Options { return c.options }

// REST returns a copy of the configuration of a client with all permissions.
func (c *Cluster) REST() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig returns the path of a kubeconfig file of a user with all permissions.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }
