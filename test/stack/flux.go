package stack

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FluxNamespace is the namespace of the objects of Flux.
const FluxNamespace = "flux-system"

// sourceCRD is the CRD of a kind of Flux's source-controller, without its fields: only the
// kustomize-controller reads such objects here.
const sourceCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.source.toolkit.fluxcd.io
spec:
  group: source.toolkit.fluxcd.io
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]s, singular: %[3]s}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources: {status: {}}
`

// appendSourceCRDs appends the CRDs of the sources that the kustomize-controller watches.
func appendSourceCRDs(crds []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	for plural, kind := range map[string]string{"gitrepositories": "GitRepository", "ocirepositories": "OCIRepository", "buckets": "Bucket"} {
		crd, err := Parse(fmt.Appendf(nil, sourceCRD, plural, kind, strings.ToLower(kind)))
		if err != nil {
			return nil, err
		}
		crds = slices.Concat(crds, crd)
	}

	return crds, nil
}

// startFlux starts the kustomize-controller, and creates its namespace.
func (c *Cluster) startFlux(ctx context.Context) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, []byte("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "+FluxNamespace+"\n")); err != nil {
		return err
	}
	health := loopback(ports[0])

	return c.run(ctx, &component{
		name: Flux, ready: answers(http.DefaultClient, "http://"+health+"/readyz"),
		args: []string{"--metrics-addr=0", "--health-addr=" + health, "--requeue-dependency=2s", "--log-level=info"},
		env:  []string{"RUNTIME_NAMESPACE=" + FluxNamespace},
	})
}
