//go:build matrix

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// The kinds of Flux, and those that its example uses.
var (
	kustomizationKind = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
	gitRepositoryKind = schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}
)

// A gitRepository serves the files of a repository to a kustomize-controller, in place of Flux's
// source-controller.
type gitRepository struct {
	files     map[string]string
	revisions int
	server    *httptest.Server

	mu       sync.Mutex
	archives map[string][]byte
}

// newGitRepository returns a repository with the example folder.
func newGitRepository(t *testing.T) *gitRepository {
	t.Helper()
	root := repository(t)
	g := &gitRepository{files: map[string]string{}, archives: map[string][]byte{}}
	for _, folder := range []string{"gitops", "rbac", "v2", "velero"} {
		must(t, filepath.WalkDir(filepath.Join(root, "example", folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path) //nolint:gosec // Nobody else writes into the example.
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			g.files[name] = string(b)

			return err
		}))
	}
	g.server = httptest.NewServer(g)
	t.Cleanup(g.server.Close)

	return g
}

// ServeHTTP serves the archive of each revision.
func (g *gitRepository) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	archive, ok := g.archives[r.URL.Path]
	g.mu.Unlock()
	if !ok {
		http.NotFound(w, r)

		return
	}
	_, _ = w.Write(archive)
}

// push makes the files a new revision, and tells a cluster. It returns the revision.
func (g *gitRepository) push(t *testing.T, c *stack.Cluster) string {
	t.Helper()
	g.revisions++
	revision := fmt.Sprintf("main@sha1:%040x", g.revisions)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(g.files)) {
		must(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(g.files[name]))}))
		_, err := w.Write([]byte(g.files[name]))
		must(t, err)
	}
	must(t, errors.Join(w.Close(), z.Close()))
	path := fmt.Sprintf("/%d.tar.gz", g.revisions)
	g.mu.Lock()
	g.archives[path] = b.Bytes()
	g.mu.Unlock()

	repository := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"url": g.server.URL, "interval": "1m"}}}
	repository.SetGroupVersionKind(gitRepositoryKind)
	repository.SetNamespace(stack.FluxNamespace)
	repository.SetName(stack.FluxNamespace)
	must(t, c.ApplyObjects(t.Context(), repository))
	repository.Object["status"] = map[string]any{"artifact": map[string]any{
		"digest": fmt.Sprintf("sha256:%x", sha256.Sum256(b.Bytes())), "path": path, "url": g.server.URL + path, "revision": revision,
		"lastUpdateTime": time.Now().UTC().Format(time.RFC3339),
	}}
	must(t, c.ApplyStatus(t.Context(), repository))

	return revision
}

// setInstances makes the first instances of a tenant, and what they need, the content of Git.
func (g *gitRepository) setInstances(t *testing.T, n *tenant, count int) {
	t.Helper()
	composition, err := n.Composition()
	must(t, err)
	g.files["example/v2/composition.yaml"] = documents(t, composition)
	g.files["example/v2/environment.yaml"] = documents(t, n.manifests()[:count]...)
	g.files["example/gitops/apps/namespace.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + n.Namespace + "\n"
}

func documents(t *testing.T, objects ...*unstructured.Unstructured) string {
	t.Helper()
	var b bytes.Buffer
	for _, u := range objects {
		j, err := u.MarshalJSON()
		must(t, err)
		b.WriteString("---\n")
		b.Write(j)
	}

	return b.String()
}

// kustomization returns the revision that a Kustomization of Flux has applied, and an error with
// its state if it is not ready.
func kustomization(ctx context.Context, c *stack.Cluster, name string) (string, error) {
	u, err := get(ctx, c, kustomizationKind, stack.FluxNamespace, name)
	if err != nil {
		return "", err
	}
	revision, _, _ := unstructured.NestedString(u.Object, "status", "lastAppliedRevision")

	return revision, stack.HasCondition(u, "Ready", "True")
}

// awaitApplied waits until each step of the example is ready with a revision.
func awaitApplied(t *testing.T, c *stack.Cluster, revision string) {
	t.Helper()
	for _, name := range []string{"cluster", "platform", "restore", "apps"} {
		must(t, c.Wait(t.Context(), 3*time.Minute, "Flux to apply the step "+name, func(ctx context.Context) error {
			got, err := kustomization(ctx, c, name)
			if err == nil && got != revision {
				err = fmt.Errorf("it has applied %s, not %s", got, revision)
			}

			return err
		}))
	}
}

// restores returns the UIDs of all Restores, by name.
func restores(t *testing.T, c *stack.Cluster) map[string]string {
	t.Helper()
	r, err := c.Resource(t.Context(), veleroRestore, "velero")
	must(t, err)
	l, err := r.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	uids := map[string]string{}
	for _, u := range l.Items {
		uids[u.GetName()] = string(u.GetUID())
	}

	return uids
}
