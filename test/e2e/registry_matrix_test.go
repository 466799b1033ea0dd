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

// A packageRegistry is one of OCI images that outlives clusters. It listens on a loopback address, with which Crossplane speaks plain HTTP.
type packageRegistry struct{ host string }

func newRegistry(t *testing.T) *packageRegistry {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)

	return &packageRegistry{host: strings.TrimPrefix(server.URL, "http://")}
}

// push publishes a package: an image whose layer with the annotation has one file, with what the package is ahead of what is in it.
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
