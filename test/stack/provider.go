package stack

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// startProvider starts the provider of the Host's cloud.
func (c *Cluster) startProvider(ctx context.Context) error {
	scopes := "both"
	if c.options.Crossplane.IsV1() {
		scopes = "cluster"
	}

	return c.run(ctx, &component{
		name:  CloudProvider,
		ready: logs("Starting workers", 1), // controller-runtime logs this when a controller starts.
		args: append([]string{"--cloud-url", c.host.cloudURL, "--poll", "10s", "--cluster-name", c.options.Name, "--scopes", scopes},
			c.options.ProviderArgs...),
	})
}

// The ProviderConfigs that the upjet provider's MRs use by default, in both scopes. The cloud needs
// no credentials.
const (
	upjetConfig = `
apiVersion: upjet.example.org/v1beta1
kind: ProviderConfig
metadata: {name: default}
spec: {credentials: {source: None}}
`
	upjetClusterConfig = `---
apiVersion: upjet.m.example.org/v1beta1
kind: ClusterProviderConfig
metadata: {name: default}
spec: {credentials: {source: None}}
`
)

// startUpjetProvider starts the upjet provider of the Host's cloud. Its controllers start once the
// CRDs of their kinds exist.
func (c *Cluster) startUpjetProvider(ctx context.Context) error {
	configs := upjetConfig
	if !c.options.Crossplane.IsV1() {
		configs += upjetClusterConfig
	}
	if err := c.Apply(ctx, []byte(configs)); err != nil {
		return err
	}

	return c.run(ctx, &component{
		name:  UpjetProvider,
		ready: logs("Starting workers", 2), // The first controller starts the others.
		args: append([]string{
			"--cloud-url", c.host.cloudURL, "--poll", "10s", "--cluster-name", c.options.Name, "--webhook-port=" + strconv.Itoa(c.conversion[UpjetProvider]),
		}, c.options.UpjetArgs...),
		env: []string{"TLS_SERVER_CERTS_DIR=" + c.pki.dir},
	})
}

// isNamespacedManaged reports whether a CRD is of a provider's namespaced kind, which Crossplane v1
// has not. Their groups have an m after the provider's name, such as kubernetes.m.crossplane.io.
func isNamespacedManaged(crd *unstructured.Unstructured) bool {
	return strings.Contains(crd.GetName(), ".m.")
}

// KubernetesProviderConfig is the path of the cluster's kubeconfig for provider-kubernetes and
// provider-helm, relative to their working directory. With the source InjectedIdentity they would
// read files in a directory of root's, and a machine has only one of those.
const KubernetesProviderConfig = "../kubeconfig"

// startKubernetesProvider starts the provider whose managed resources are Kubernetes objects.
func (c *Cluster) startKubernetesProvider(ctx context.Context) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	health := loopback(ports[0])

	return c.run(ctx, &component{
		name: KubernetesProvider, ready: answers(http.DefaultClient, "http://"+health+"/readyz"),
		args: []string{
			"--enable-watches", "--poll=10s", "--metrics-bind-address=0", "--health-probe-bind-addr=" + health,
			"--webhook-port=" + strconv.Itoa(c.conversion[KubernetesProvider]),
		},
		env: []string{"TLS_SERVER_CERTS_DIR=" + c.pki.dir},
	})
}

// startHelmProvider starts the provider whose managed resources are Helm releases. It caches charts
// by name in a directory that all processes of the machine share.
func (c *Cluster) startHelmProvider(ctx context.Context) error {
	return c.run(ctx, &component{
		name: HelmProvider, args: []string{"--poll=10s", "--debug"},
		ready: logs("helm.crossplane.io/v1beta1, Kind=Release", 1), // It starts when its kinds are served.
	})
}

// setConversion sets the address of a provider's conversion webhook in its CRDs, as Crossplane's
// package manager does.
func (c *Cluster) setConversion(provider string, crds []*unstructured.Unstructured) error {
	for _, crd := range crds {
		path, found, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "service", "path")
		if !found {
			continue
		}
		if c.conversion[provider] == 0 {
			ports, err := freePorts(1)
			if err != nil {
				return err
			}
			if c.conversion == nil {
				c.conversion = map[string]int{}
			}
			c.conversion[provider] = ports[0]
		}
		config := map[string]any{
			"url":      "https://" + loopback(c.conversion[provider]) + path,
			"caBundle": base64.StdEncoding.EncodeToString(c.pki.ca),
		}
		if err := unstructured.SetNestedMap(crd.Object, config, "spec", "conversion", "webhook", "clientConfig"); err != nil {
			return fmt.Errorf("cannot set the conversion webhook of %s: %w", describe(crd), err)
		}
	}

	return nil
}
