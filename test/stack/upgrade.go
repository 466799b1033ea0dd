package stack

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Crossplane asks for its namespace at the path where a Pod has it when it is to elect a leader,
// and has no flag for that. So it gets a /run of its own.
const podScript = `exec unshare --mount -- /bin/sh -ec '
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$(readlink -f /var/run)"
mkdir -p /var/run/secrets/kubernetes.io/serviceaccount
printf %s ` + crossplaneNamespace + ` >/var/run/secrets/kubernetes.io/serviceaccount/namespace
exec "$@"
' sh "$@"
`

// AddCrossplane starts another Crossplane beside those that run, under a name of its own, as a
// second replica is or the new Pod of an upgrade: in another version, what its init container does
// comes first. Without LeaderElection both work at the same time. Stop takes one away. If it fails,
// part of it may be there.
func (c *Cluster) AddCrossplane(ctx context.Context, name string, version Version) error {
	if version != c.options.Crossplane {
		if err := c.initCrossplane(ctx, version); err != nil {
			return fmt.Errorf("cannot upgrade cluster %s to %s: %w", c.options.Name, version, err)
		}
		c.options.Crossplane = version
	}

	return c.runCrossplaneAs(ctx, name)
}

// initCrossplane does what the init container of Crossplane v2 does in a cluster that has an older
// one: it brings CRDs, migrates what is stored, and makes certificates, which nobody uses here.
// What functions can do, which v1 has no word for, its package manager would say of those that are
// not paused.
func (c *Cluster) initCrossplane(ctx context.Context, version Version) error {
	if version.IsV1() {
		return fmt.Errorf("cannot have %s bring its CRDs: it looks for them in one place only", version)
	}
	a, err := program(c.host.set, string(version))
	if err != nil {
		return err
	}
	env := []string{
		"KUBECONFIG=" + c.kubeconfig, "CRDS_PATH=" + a.Assets, "TLS_CA_SECRET_NAME=crossplane-root-ca", "TLS_CLIENT_SECRET_NAME=crossplane-tls-client",
	}
	_, err = c.outputWith(ctx, env, a.Path, "core", "init", "--namespace="+crossplaneNamespace, "--webhook-enabled=false", "--activation=*")
	if err != nil || !c.options.Crossplane.IsV1() {
		return err
	}

	return c.each(ctx, packageKind("FunctionRevision"), "", func(u *unstructured.Unstructured) error {
		status := &unstructured.Unstructured{Object: map[string]any{"status": u.Object["status"]}}
		status.SetGroupVersionKind(u.GroupVersionKind())
		status.SetName(u.GetName())
		if err := unstructured.SetNestedStringSlice(status.Object, []string{"composition"}, "status", "capabilities"); err != nil {
			return fmt.Errorf("cannot say of %s %s what it can do: %w", u.GetKind(), u.GetName(), err)
		}

		return c.ApplyStatus(ctx, status)
	})
}
