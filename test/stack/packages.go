package stack

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// packagesTimeout is long enough for the package manager to retry its first failures.
const packagesTimeout = 4 * time.Minute

// crossplaneAccount is the ServiceAccount of Crossplane's chart. The ServiceAccounts of packages
// get its pull secrets.
const crossplaneAccount = `
apiVersion: v1
kind: ServiceAccount
metadata:
  namespace: crossplane-system
  name: crossplane
`

// deploymentStatus is the status of a provider's Deployment when its Pod runs.
const deploymentStatus = `
status:
  conditions:
  - type: Available
    status: "True"
    reason: MinimumReplicasAvailable
    lastTransitionTime: "2025-01-01T00:00:00Z"
    lastUpdateTime: "2025-01-01T00:00:00Z"
`

// packageTLS is the Secret of a package with webhooks. A package runtime creates it, and the
// package manager does not go on without it.
const packageTLS = `
apiVersion: v1
kind: Secret
metadata:
  namespace: crossplane-system
  name: %s
data:
  tls.crt: %s
`

// revisionStatus is the status that a function runtime sets on the active revision.
const revisionStatus = `
status:
  endpoint: dns:///localhost:%d
  tlsServerSecretName: function-tls
  conditions:
  - {type: RuntimeHealthy, status: "True", reason: HealthyPackageRevision, lastTransitionTime: "2025-01-01T00:00:00Z"}
`

// endpointStatus is the part of revisionStatus that v1 has.
const endpointStatus = `
status:
  endpoint: dns:///localhost:%d
`

// RunPackages acts as the kubelet and as the function runtime in a cluster with Packaged: it runs
// function and provider, and sets the status of the objects that the package manager creates for
// them, until each package is Healthy. It does not activate the provider's kinds: the package
// manager must.
func (c *Cluster) RunPackages(ctx context.Context) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	if err := c.runFunction(ctx, Function, ports[0]); err != nil {
		return err
	}
	if err := c.applyTLS(ctx, "function-tls"); err != nil {
		return err
	}
	if err := c.Wait(ctx, packagesTimeout, "packages", func(ctx context.Context) error { return c.runPackages(ctx, ports[0]) }); err != nil {
		return err
	}
	if err := c.Wait(ctx, readyTimeout, "the provider's kinds", c.awaitKinds); err != nil {
		return err
	}

	return c.startProvider(ctx)
}

// applyAllTLS creates the Secrets that the package revisions of v1 name.
func (c *Cluster) applyAllTLS(ctx context.Context) error {
	var errs []error
	for _, kind := range []string{"ProviderRevision", "FunctionRevision"} {
		errs = append(errs, c.each(ctx, packageKind(kind), "", func(u *unstructured.Unstructured) error {
			name, _, err := unstructured.NestedString(u.Object, "spec", "tlsServerSecretName")

			return errors.Join(err, c.applyTLS(ctx, name))
		}))
	}

	return errors.Join(errs...)
}

// applyTLS creates the Secret that a package revision names.
func (c *Cluster) applyTLS(ctx context.Context, name string) error {
	return c.Apply(ctx, fmt.Appendf(nil, packageTLS, name, base64.StdEncoding.EncodeToString(c.pki.ca)))
}

func (c *Cluster) runPackages(ctx context.Context, port int) error {
	err := c.each(ctx, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, crossplaneNamespace, func(u *unstructured.Unstructured) error {
		return c.setStatus(ctx, u, deploymentStatus)
	})
	if err != nil {
		return err
	}
	status := fmt.Sprintf(revisionStatus, port)
	if c.options.Crossplane.IsV1() {
		status = fmt.Sprintf(endpointStatus, port)
		if err := c.applyAllTLS(ctx); err != nil {
			return err
		}
	}
	err = c.each(ctx, packageKind("FunctionRevision"), "", func(u *unstructured.Unstructured) error {
		if state, _, _ := unstructured.NestedString(u.Object, "spec", "desiredState"); state != "Active" {
			return nil
		}

		return c.setStatus(ctx, u, status)
	})
	if err != nil {
		return err
	}
	for _, kind := range []string{"Provider", "Function", "Configuration"} {
		n := 0
		err := c.each(ctx, packageKind(kind), "", func(u *unstructured.Unstructured) error {
			n++

			return errors.Join(HasCondition(u, "Installed", "True"), HasCondition(u, "Healthy", "True"))
		})
		if err == nil && n == 0 {
			err = fmt.Errorf("there is no %s", kind)
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// awaitKinds returns an error until the provider finds all of its kinds.
func (c *Cluster) awaitKinds(ctx context.Context) error {
	a, err := program(c.host.set, CloudProvider)
	if err != nil {
		return err
	}
	crds, err := read(a.Assets)
	if err != nil {
		return err
	}
	for _, crd := range crds {
		live, err := c.dynamic.Resource(crdResource).Get(ctx, crd.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := HasCondition(live, "Established", "True"); err != nil {
			return err
		}
	}

	return nil
}

// each calls a function for each object of a kind.
func (c *Cluster) each(ctx context.Context, gvk schema.GroupVersionKind, namespace string, do func(u *unstructured.Unstructured) error) error {
	r, err := c.Resource(ctx, gvk, namespace)
	if err != nil {
		return err
	}
	list, err := r.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot list %s: %w", gvk.Kind, err)
	}
	for i := range list.Items {
		if err := do(&list.Items[i]); err != nil {
			return err
		}
	}

	return nil
}

// setStatus applies a status in YAML to an object.
func (c *Cluster) setStatus(ctx context.Context, of *unstructured.Unstructured, status string) error {
	objects, err := Parse([]byte("apiVersion: " + of.GetAPIVersion() + "\nkind: " + of.GetKind() + status))
	if err != nil {
		return err
	}
	objects[0].SetNamespace(of.GetNamespace())
	objects[0].SetName(of.GetName())

	return c.ApplyStatus(ctx, objects[0])
}

func packageKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: kind}
}
