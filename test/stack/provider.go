package stack

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// startsWorkers is what controller-runtime logs for each controller when it begins to work.
const startsWorkers = "Starting workers"

// startProvider starts the provider of the Host's cloud. With Crossplane v1 it has no namespaced managed resources.
func (c *Cluster) startProvider(ctx context.Context) error {
	provider, err := program(c.host.set, CloudProvider)
	if err != nil {
		return err
	}
	crds, err := filepath.Glob(filepath.Join(provider.Assets, "*.yaml"))
	if err != nil {
		return fmt.Errorf("cannot list the CRDs of %s: %w", CloudProvider, err)
	}
	scopes := "both"
	if c.options.Crossplane == V1 {
		scopes = "cluster"
		crds = slices.DeleteFunc(crds, func(file string) bool { return strings.Contains(filepath.Base(file), ".m.") })
	}
	if err := c.ApplyFiles(ctx, crds...); err != nil {
		return err
	}

	return c.run(ctx, &component{
		name: CloudProvider, path: provider.Path, ready: logs(startsWorkers, len(crds)),
		args: []string{"--cloud-url", c.host.cloudURL, "--poll", "10s", "--cluster-name", c.options.Name, "--scopes", scopes},
	})
}

// startNopProvider starts the provider whose resources are nowhere but in the cluster.
func (c *Cluster) startNopProvider(ctx context.Context) error {
	provider, err := program(c.host.set, NopProvider)
	if err != nil {
		return err
	}
	if err := c.ApplyFiles(ctx, provider.Assets); err != nil {
		return err
	}

	return c.run(ctx, &component{
		name: NopProvider, path: provider.Path, args: []string{"--max-reconcile-rate=100"},
		env:   []string{"TLS_SERVER_CERTS_DIR=" + c.pki.dir},
		ready: logs(startsWorkers, 1),
	})
}
