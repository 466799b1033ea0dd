//go:build matrix

package e2e

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// installation is what a user installs: a Configuration, which depends on the rest, and the address
// of the images. The packages' own address does not exist.
const installation = `
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata:
  name: mirror
spec:
  matchImages:
  - {type: Prefix, prefix: registry.invalid/shop/}
  rewriteImage:
    prefix: %s/shop/
---
apiVersion: pkg.crossplane.io/v1
kind: Configuration
metadata:
  name: shop
spec:
  package: registry.invalid/shop/platform:v1.0.0
`

// activation activates the composed kinds. On v1 all kinds are active.
const activation = `
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceActivationPolicy
metadata:
  name: shop
spec:
  activate:
  - buckets.cloud.m.example.org
  - networks.cloud.m.example.org
`

const packageMeta = `
apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata:
  name: provider-cloud
spec:
  capabilities: [safe-start]
---
apiVersion: meta.pkg.crossplane.io/v1
kind: Function
metadata:
  name: function-patch-and-transform
spec:
  capabilities: [composition]
---
apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata:
  name: platform
spec:
  dependsOn:
  - {apiVersion: pkg.crossplane.io/v1, kind: Provider, package: registry.invalid/shop/provider-cloud, version: ">=v1.0.0"}
  - {apiVersion: pkg.crossplane.io/v1, kind: Function, package: registry.invalid/shop/function-patch-and-transform, version: ">=v1.0.0"}
`

// A packageRegistry is a registry of OCI images that outlives clusters. It listens on a loopback
// address, with which Crossplane speaks plain HTTP.
type packageRegistry struct{ host string }

func newRegistry(t *testing.T) *packageRegistry {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)

	return &packageRegistry{host: strings.TrimPrefix(server.URL, "http://")}
}

// push publishes a package: an image with one file, in the layer with the annotation. The first
// object of the file is the metadata of the package.
func (r *packageRegistry) push(t *testing.T, image string, content ...*unstructured.Unstructured) {
	t.Helper()
	var text bytes.Buffer
	for _, u := range content {
		b, err := yaml.Marshal(u.Object)
		must(t, err)
		text.WriteString("---\n")
		text.Write(b)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must(t, w.WriteHeader(&tar.Header{Name: "package.yaml", Mode: 0o644, Size: int64(text.Len())}))
	_, err := w.Write(text.Bytes())
	must(t, err)
	must(t, w.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	must(t, err)
	img, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer, Annotations: map[string]string{"io.crossplane.xpkg": "base"},
	})
	must(t, err)
	ref, err := name.ParseReference(r.host + "/" + image)
	must(t, err)
	must(t, remote.Write(ref, img, remote.WithContext(t.Context())))
}
