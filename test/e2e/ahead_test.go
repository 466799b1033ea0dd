package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

var (
	kindDeployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	kindObject     = schema.GroupVersionKind{Group: "kubernetes.crossplane.io", Version: "v1alpha2", Kind: "Object"}
)

// testAhead loses a cluster in which provider-kubernetes manages Deployments that are in the backup
// too and that another writer has scaled. A provider that reconciles its Object before Velero
// restores the Deployment creates another one. more are scenes of creates in progress.
func testAhead(t *testing.T, version stack.Version, dir string, more map[string]*shape) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	shapes := map[string]*shape{}
	for _, name := range []string{"ahead", "reversed"} {
		shapes[name] = &shape{
			reason: "No provider creates again what Velero restores later.",
			Scene:  drill.Scene{Count: 2, Size: 14}, last: scaleDown,
		}
	}
	maps.Copy(shapes, more)
	for name, n := range shapes {
		n.Name, n.Dir = name, filepath.Join("testdata", dir, "ahead")
	}
	s := newStage(t, version)
	none := func(*shape) string { return "source.yaml" }
	s.source = s.platform(t, "source", none, shapes)
	if n, ok := shapes[interrupted]; ok {
		s.makeInterrupted(t, n)
	}
	for name, n := range shapes {
		if name != interrupted {
			must(t, n.Make(ctx, s.source))
		}
	}
	must(t, s.source.RestartVelero(ctx))
	must(t, s.source.UsePlugin(ctx, true))
	for _, n := range shapes {
		s.store(t, n)
	}
	must(t, s.source.Destroy())

	s.target = s.platform(t, "target", none, shapes)
	must(t, s.target.RestartVelero(ctx))
	t.Run("Reversed", func(t *testing.T) { s.testReversed(t, shapes["reversed"]) })
	must(t, s.target.UsePlugin(ctx, true))
	t.Run("Ahead", func(t *testing.T) { s.testNothingAhead(t, shapes["ahead"]) })
	if len(more) > 0 {
		t.Run("Interrupted", func(t *testing.T) { s.testInterrupted(t, shapes[interrupted]) })
		t.Run("Doubtful", func(t *testing.T) { s.testDoubtful(t, shapes[doubtful]) })
	}
}

// scaleDown scales the Deployments of a scene. The manifests of the Objects set no replicas.
func scaleDown(ctx context.Context, c *stack.Cluster, n drill.Scene) error {
	all, err := list(ctx, c, kindDeployment, n.Name, "")
	if err == nil && len(all) != max(n.Count, 1) {
		err = fmt.Errorf("there are the Deployments %v", names(all))
	}
	for _, u := range all {
		err = errors.Join(err, drill.Patch(ctx, c, &u, map[string]any{"spec": map[string]any{"replicas": 0}}))
	}

	return err
}

// A deployed is what a test compares of a Deployment.
type deployed struct {
	Restore  string
	Replicas int64
}

// deployments returns the Deployments of a scene, one for each instance.
func (s *suite) deployments(t *testing.T, n *shape) []deployed {
	t.Helper()
	all, err := list(t.Context(), s.target, kindDeployment, n.Name, "")
	must(t, err)
	found := make([]deployed, 0, len(all))
	for _, u := range all {
		replicas, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		found = append(found, deployed{Restore: u.GetLabels()[labelRestore], Replicas: replicas})
	}

	return found
}

// made returns an error if an Object of a scene has no Deployment yet.
func (s *suite) made(ctx context.Context, n *shape) error {
	objects, err := list(ctx, s.target, kindObject, "", "")
	if err != nil {
		return err
	}
	for _, u := range objects {
		if !strings.HasPrefix(u.GetName(), n.Name+"-") {
			continue
		}
		name, _, _ := unstructured.NestedString(u.Object, "spec", "forProvider", "manifest", "metadata", "name")
		if _, err := get(ctx, s.target, kindDeployment, n.Name, name); err != nil {
			return err
		}
	}

	return nil
}

// testReversed is the control: Velero alone restores the Objects before the Deployments, which a
// user can ask for. What users have set is lost.
func (s *suite) testReversed(t *testing.T, n *shape) {
	ctx := t.Context()
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": n.Name}}}
	must(t, s.target.ApplyObjects(ctx, namespace))
	must(t, drill.Platform{}.StartRestore(ctx, s.target, n.Name+"-objects", n.Name, clusterResources+"=true", "--include-resources", "objects.kubernetes.crossplane.io"))
	s.awaitCompleted(t, n.Name+"-objects")
	s.eventually(t, "the provider to create what it does not find", func(ctx context.Context) error {
		if found := s.deployments(t, n); len(found) != n.Count {
			return fmt.Errorf("there are %d Deployments", len(found))
		}

		return s.made(ctx, n)
	})
	must(t, drill.Platform{}.StartRestore(ctx, s.target, n.Name+"-deployments", n.Name, "--include-resources", "deployments.apps"))
	s.awaitCompleted(t, n.Name+"-deployments")
	if diff := cmp.Diff([]deployed{{Replicas: 1}, {Replicas: 1}}, s.deployments(t, n)); diff != "" {
		t.Errorf("Nothing is lost in the wrong order, so the other test proves nothing: -want, +got:\n%s", diff)
	}
}

// testNothingAhead restores a namespace. It delays Velero's write of each Deployment, for 20 s at
// most, until the provider has created one for each existing Object.
func (s *suite) testNothingAhead(t *testing.T, n *shape) {
	ctx := t.Context()
	check, err := s.target.Check(ctx, n.Name, []string{"apps"}, func(ctx context.Context, a stack.Admission) {
		if a.Old != nil || a.New.GetKind() != "Deployment" || a.New.GetLabels()[labelRestore] == "" {
			return
		}
		_ = s.target.Wait(ctx, 20*time.Second, "the provider", func(ctx context.Context) error { return s.made(ctx, n) }) // The outcome is checked below.
	})
	must(t, err)
	must(t, n.StartRestore(ctx, s.target))
	s.awaitCompleted(t, n.Name)
	must(t, check.Remove(ctx))
	s.wantDeployed(t, n)
}
