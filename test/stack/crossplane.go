package stack

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const crossplaneNamespace = "crossplane-system"

// Objects that `crossplane core init` creates beside CRDs and certificates, and that the core
// needs.
const crossplaneObjects = `
apiVersion: v1
kind: Namespace
metadata:
  name: crossplane-system
---
apiVersion: pkg.crossplane.io/v1beta1
kind: Lock
metadata:
  name: lock
---
apiVersion: pkg.crossplane.io/v1beta1
kind: DeploymentRuntimeConfig
metadata:
  name: default
`

const activationPolicy = `
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceActivationPolicy
metadata:
  name: default
spec:
  activate:
  - "*"
`

// The webhook that refuses to delete objects that a Usage protects. `crossplane core init` creates
// it from cluster/webhookconfigurations/usage.yaml of Crossplane's module, with a Service in place
// of the process' address.
const usageWebhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: crossplane-no-usages
webhooks:
- name: nousages.%s
  admissionReviewVersions:
  - v1
  clientConfig:
    url: https://%s/validate-no-usages
    caBundle: %s
  failurePolicy: Fail
  objectSelector:
    matchLabels:
      crossplane.io/in-use: "true"
  rules:
  - apiGroups:
    - "*"
    apiVersions:
    - "*"
    operations:
    - DELETE
    resources:
    - "*"
  sideEffects: None
`

// Crossplane does not look for a paused Function in a registry. It calls the endpoint that the
// active revision names.
const functionObjects = `
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: function-patch-and-transform
  annotations:
    crossplane.io/paused: "true"
spec:
  package: registry.invalid/function-patch-and-transform:v0.5.0
---
apiVersion: pkg.crossplane.io/v1
kind: FunctionRevision
metadata:
  name: function-patch-and-transform-stack
  annotations:
    crossplane.io/paused: "true"
  labels:
    pkg.crossplane.io/package: function-patch-and-transform
spec:
  desiredState: Active
  image: registry.invalid/function-patch-and-transform:v0.5.0
  revision: 1
`

const functionStatus = `
apiVersion: pkg.crossplane.io/v1
kind: FunctionRevision
metadata:
  name: function-patch-and-transform-stack
status:
  endpoint: dns:///localhost:%d
`

// Crossplane v2 calls only functions whose revision lists their capabilities.
const functionCapabilities = `  capabilities:
  - composition
`

func (c *Cluster) startCrossplane(ctx context.Context) error {
	objs := []string{crossplaneObjects}
	if !c.options.Crossplane.IsV1() {
		objs = append(objs, activationPolicy)
	}
	if c.options.Packaged {
		objs = append(objs, crossplaneAccount)
	}
	for _, o := range objs {
		if err := c.Apply(ctx, []byte(o)); err != nil {
			return err
		}
	}

	starts := []func() error{func() error { return c.runCrossplane(ctx) }}
	for _, name := range c.functions() {
		starts = append(starts, func() error { return c.startFunction(ctx, name) })
	}

	return parallel(starts...)
}

func (c *Cluster) runCrossplane(ctx context.Context) error {
	return c.runCrossplaneAs(ctx, Crossplane)
}

// runCrossplaneAs runs Crossplane as a component with that name.
func (c *Cluster) runCrossplaneAs(ctx context.Context, name string) error {
	path, err := c.program(string(c.options.Crossplane))
	if err != nil {
		return err
	}
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, c.usageWebhook(ports[2])); err != nil {
		return err
	}
	runtime := "External"
	if c.options.Packaged && !c.options.Crossplane.IsV1() { // v1 has one runtime for all packages.
		runtime = "Provider=Deployment;Function=External"
	}
	args := []string{
		"core", "start", "--namespace=" + crossplaneNamespace, "--package-runtime=" + runtime,
		"--xpkg-cache-dir=" + c.dir, "--tls-client-certs-dir=" + c.pki.dir, "--tls-server-certs-dir=" + c.pki.dir,
		"--poll-interval=10s", "--health-probe-port=" + strconv.Itoa(ports[0]), "--metrics-port=" + strconv.Itoa(ports[1]),
		"--webhook-port=" + strconv.Itoa(ports[2]),
	}
	if !c.options.Crossplane.IsV1() && c.options.Crossplane != V20 {
		// With the defaults the circuit breaker opens when some twenty XRs are created at once.
		args = append(args, "--circuit-breaker-burst=10000", "--circuit-breaker-refill-rate=1000")
	}
	args = append(args, c.options.CrossplaneArgs...)
	if c.options.LeaderElection {
		args = append([]string{"-ec", podScript, "sh", path}, append(args, "--leader-election")...)
		path = "/bin/sh"
	}

	return c.run(ctx, &component{
		name: name, path: path, args: args,
		ready: answers(http.DefaultClient, "http://"+loopback(ports[0])+"/readyz"),
	})
}

// usageWebhook returns the configuration of the webhook that Crossplane serves on a port.
func (c *Cluster) usageWebhook(port int) []byte {
	group := "protection.crossplane.io"
	if c.options.Crossplane.IsV1() {
		group = "apiextensions.crossplane.io"
	}

	return fmt.Appendf(nil, usageWebhook, group, loopback(port), base64.StdEncoding.EncodeToString(c.pki.ca))
}

// AddRBACManager starts Crossplane's RBAC manager in a cluster without one.
func (c *Cluster) AddRBACManager(ctx context.Context) error {
	if c.options.RBACManager || c.options.Crossplane == None {
		return fmt.Errorf("cannot add an RBAC manager to cluster %s: it has one, or has no Crossplane", c.options.Name)
	}
	c.options.RBACManager = true

	return c.startRBACManager(ctx)
}

func (c *Cluster) startRBACManager(ctx context.Context) error {
	path, err := c.program(string(c.options.Crossplane))
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	profile := loopback(ports[0])

	return c.run(ctx, &component{
		name: RBACManager, path: path, args: []string{"rbac", "start", "--profile=" + profile},
		ready: answers(http.DefaultClient, "http://"+profile+"/debug/pprof/cmdline"), // It has no health probe, and logs nothing when it is ready.
	})
}

// functions returns the functions that run beside Crossplane and are not installed as packages.
func (c *Cluster) functions() []string {
	switch {
	case c.options.Packaged:
		return nil
	case c.options.Gate:
		return []string{Function, Gate, AutoReady}
	default:
		return []string{Function}
	}
}

func (c *Cluster) startFunction(ctx context.Context, name string) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	objects, status := strings.ReplaceAll(functionObjects, Function, name), strings.ReplaceAll(fmt.Sprintf(functionStatus, ports[0]), Function, name)
	if !c.options.Crossplane.IsV1() {
		status += functionCapabilities
	}

	return parallel(
		func() error { return c.runFunction(ctx, name, ports[0]) },
		func() error {
			if err := c.Apply(ctx, []byte(objects)); err != nil {
				return err
			}
			objs, err := Parse([]byte(status))
			if err != nil {
				return err
			}

			return c.ApplyStatus(ctx, objs[0])
		},
	)
}

func (c *Cluster) runFunction(ctx context.Context, name string, port int) error {
	address := loopback(port)

	return c.run(ctx, &component{
		name: name, args: []string{"--address=" + address, "--tls-certs-dir=" + c.pki.dir}, ready: accepts(address, c.pki.tls),
	})
}
