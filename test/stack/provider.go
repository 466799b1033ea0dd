package stack

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// startProvider starts the provider of the Host's cloud.
func (c *Cluster) startProvider(ctx context.Context) error {
	path, err := c.program(CloudProvider)
	if err != nil {
		return err
	}
	scopes := "both"
	if c.options.Crossplane == V1 {
		scopes = "cluster"
	}

	return c.run(ctx, &component{
		name: CloudProvider, path: path,
		ready: logs("Starting workers", 1), // What controller-runtime logs when a controller begins to work.
		args:  []string{"--cloud-url", c.host.cloudURL, "--poll", "10s", "--cluster-name", c.options.Name, "--scopes", scopes},
	})
}

// isNamespacedManaged says whether a CRD is of a managed resource of the cloud that is in a namespace, which Crossplane v1 has not.
func isNamespacedManaged(crd *unstructured.Unstructured) bool {
	return strings.HasSuffix(crd.GetName(), ".cloud.m.example.org")
}

// startNopProvider starts the provider whose resources are nowhere but in the cluster.
func (c *Cluster) startNopProvider(ctx context.Context) error {
	path, err := c.program(NopProvider)
	if err != nil {
		return err
	}

	return c.run(ctx, &component{
		name: NopProvider, path: path, args: []string{"--max-reconcile-rate=100"},
		env:   []string{"TLS_SERVER_CERTS_DIR=" + c.pki.dir},
		ready: logs("Serving webhook server", 1), // It works before it has the port, and ends if it can't get it.
	})
}
