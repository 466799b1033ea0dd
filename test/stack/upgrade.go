package stack

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Crossplane that elects a leader reads its namespace from the path of a Pod's ServiceAccount,
// and no flag changes that. So it gets a /run of its own.
const podScript = `exec unshare --mount -- /bin/sh -ec '
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$(readlink -f /var/run)"
mkdir -p /var/run/secrets/kubernetes.io/serviceaccount
printf %s ` + crossplaneNamespace + ` >/var/run/secrets/kubernetes.io/serviceaccount/namespace
exec "$@"
' sh "$@"
`

// AddCrossplane starts another Crossplane with its own component name beside the running ones, as a
// second replica or the new Pod of an upgrade. For another version it first does the work of that
// version's init container. Without LeaderElection all of them work at the same time. Stop stops
// it. If AddCrossplane fails, part of it may be left.
func (c *Cluster) AddCrossplane(ctx context.Context, name string, version Version) error {
	if version != c.options.Crossplane {
		if err := c.initCrossplane(ctx, version); err != nil {
			return fmt.Errorf("cannot upgrade cluster %s to %s: %w", c.options.Name, version, err)
		}
		c.options.Crossplane = version
	}

	return c.runCrossplaneAs(ctx, name)
}

// initCrossplane does the work of the init container of Crossplane v2 in a cluster with an older
// one: it applies CRDs and migrates stored objects. The certificates that it creates are not used
// here. It also sets the capabilities of functions, which v1 does not have: Crossplane's package
// manager does that only for packages that are not paused.
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
			return fmt.Errorf("cannot set the capabilities of %s %s: %w", u.GetKind(), u.GetName(), err)
		}

		return c.ApplyStatus(ctx, status)
	})
}
