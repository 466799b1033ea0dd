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

func TestAheadV2(t *testing.T) { testAhead(t, stack.V2, "v2", scenesInDoubt()) }

func TestAheadV1(t *testing.T) { testAhead(t, stack.V1, "v1.20", nil) }

// testAhead loses a cluster in which provider-kubernetes manages Deployments that are in the backup
// too, and that somebody else has scaled. A provider that comes to its Object before Velero comes
// to the Deployment makes another. It has more scenes, of what the provider was creating.
func testAhead(t *testing.T, version stack.Version, dir string, more map[string]*shape) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	shapes := map[string]*shape{}
	for _, name := range []string{"ahead", "reversed"} {
		shapes[name] = &shape{
			reason: "No provider makes anew what Velero restores later.",
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

// scaleDown scales the Deployments of a scene, of which the manifests of the Objects say nothing.
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

// A deployed is what became of a Deployment.
type deployed struct {
	Restore  string
	Replicas int64
}

// deployments are those of a scene, one for each instance.
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

// made wants the provider to have made a Deployment for each Object of a scene that there is, or
// nothing if there is none.
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

// testReversed is the control: Velero alone restores the Objects before the Deployments, as
// somebody can have it do, and what people have set is lost.
func (s *suite) testReversed(t *testing.T, n *shape) {
	ctx := t.Context()
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": n.Name}}}
	must(t, s.target.ApplyObjects(ctx, namespace))
	must(t, drill.Platform{}.StartRestore(ctx, s.target, n.Name+"-objects", n.Name, clusterResources+"=true", "--include-resources", "objects.kubernetes.crossplane.io"))
	s.awaitCompleted(t, n.Name+"-objects")
	s.eventually(t, "the provider to make what it does not find", func(ctx context.Context) error {
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

// testNothingAhead restores a namespace, with time for the provider to be ahead of Velero: a
// Deployment is stored when there is no Object, or when the provider has made one in its place.
func (s *suite) testNothingAhead(t *testing.T, n *shape) {
	ctx := t.Context()
	check, err := s.target.Check(ctx, n.Name, []string{"apps"}, func(ctx context.Context, a stack.Admission) {
		if a.Old != nil || a.New.GetKind() != "Deployment" || a.New.GetLabels()[labelRestore] == "" {
			return
		}
		_ = s.target.Wait(ctx, 20*time.Second, "the provider", func(ctx context.Context) error { return s.made(ctx, n) }) // What came of it is judged.
	})
	must(t, err)
	must(t, n.StartRestore(ctx, s.target))
	s.awaitCompleted(t, n.Name)
	must(t, check.Remove(ctx))
	s.wantDeployed(t, n)
}
