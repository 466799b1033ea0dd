package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

const createSucceeded = "crossplane.io/external-create-succeeded"

var (
	kindDeployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	kindObject     = schema.GroupVersionKind{Group: "kubernetes.crossplane.io", Version: "v1alpha2", Kind: "Object"}
)

// testAhead loses a cluster in which provider-kubernetes manages Deployments that are in the backup
// too and that another writer has scaled. A provider that reconciles its Object before Velero
// restores the Deployment creates another one. One of them was created by a provider that was killed
// before it confirmed that.
func testAhead(t *testing.T, version stack.Version, dir string) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	dir = filepath.Join("testdata", dir, "ahead")
	ahead := &shape{reason: "No provider creates again what Velero restores later.", Scene: drill.Scene{Name: "ahead", Dir: dir, Count: 2, Size: 14}, last: scaleDown}
	interrupted := &shape{
		reason: "An object that a provider has observed since its create was pending is known.", Scene: drill.Scene{Name: "interrupted", Dir: dir, Size: 7}, last: scaleDown,
	}
	s := newStage(t, version)
	shapes := map[string]*shape{ahead.Name: ahead, interrupted.Name: interrupted}
	s.source = s.platform(t, "source", shapes)
	s.makeInterrupted(t, interrupted)
	must(t, ahead.Make(ctx, s.source))
	must(t, s.source.RestartVelero(ctx))
	must(t, s.source.UsePlugin(ctx, true))
	s.store(t, ahead)
	s.store(t, interrupted)
	must(t, s.source.Destroy())

	s.target = s.platform(t, "target", shapes)
	must(t, s.target.RestartVelero(ctx))
	must(t, s.target.UsePlugin(ctx, true))
	t.Run("Ahead", func(t *testing.T) { s.testNothingAhead(t, ahead) })
	t.Run("Interrupted", func(t *testing.T) {
		must(t, interrupted.StartRestore(ctx, s.target))
		s.awaitCompleted(t, interrupted.Name)
		s.wantInDoubt(t, s.target, interrupted)
		s.wantDeployed(t, interrupted)
	})
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

// objectsOf returns the Objects of a scene.
func objectsOf(ctx context.Context, c *stack.Cluster, scene string) ([]unstructured.Unstructured, error) {
	all, err := list(ctx, c, kindObject, "", "")
	var own []unstructured.Unstructured
	for _, u := range all {
		if strings.HasPrefix(u.GetName(), scene+"-") {
			own = append(own, u)
		}
	}
	if err == nil && len(own) == 0 {
		err = errors.New("there is no Object of " + scene)
	}

	return own, err
}

// testNothingAhead restores a namespace. It delays Velero's write of each Deployment, for 20 s at
// most, until the provider has created one for each existing Object.
func (s *suite) testNothingAhead(t *testing.T, n *shape) {
	ctx := t.Context()
	check, err := s.target.Check(ctx, n.Name, []string{"apps"}, func(ctx context.Context, a stack.Admission) {
		if a.Old != nil || a.New.GetKind() != "Deployment" || a.New.GetLabels()[labelRestore] == "" {
			return
		}
		_ = s.target.Wait(ctx, 20*time.Second, "the provider", func(ctx context.Context) error { // The outcome is checked below.
			objects, err := objectsOf(ctx, s.target, n.Name)
			for _, u := range objects {
				name, _, _ := unstructured.NestedString(u.Object, "spec", "forProvider", "manifest", "metadata", "name")
				_, missing := get(ctx, s.target, kindDeployment, n.Name, name)
				err = errors.Join(err, missing)
			}

			return err
		})
	})
	must(t, err)
	must(t, n.StartRestore(ctx, s.target))
	s.awaitCompleted(t, n.Name)
	must(t, check.Remove(ctx))
	s.wantDeployed(t, n)
}

// makeInterrupted creates a scene. It kills the provider when that is about to write that it has
// created the Deployment. The API server never stores that write.
func (s *suite) makeInterrupted(t *testing.T, n *shape) {
	t.Helper()
	ctx := t.Context()
	var once sync.Once
	killed := make(chan error, 1)
	check, err := s.source.Check(ctx, n.Name, []string{kindObject.Group}, func(ctx context.Context, a stack.Admission) {
		if !strings.HasPrefix(a.New.GetName(), n.Name+"-") || a.New.GetAnnotations()[createSucceeded] == "" {
			return
		}
		once.Do(func() { killed <- s.source.Crash(stack.KubernetesProvider) })
		<-ctx.Done()
	})
	must(t, err)
	must(t, n.Make(ctx, s.source))
	select {
	case err := <-killed:
		must(t, err)
	case <-time.After(patience):
		t.Fatal("the provider has created nothing")
	}
	must(t, check.Remove(ctx))
	time.Sleep(time.Second) //nolint:forbidigo // A container takes that to be started, and annotations have whole seconds.
	must(t, s.source.Start(ctx, stack.KubernetesProvider))
	must(t, n.AwaitReady(ctx, s.source))
	s.wantInDoubt(t, s.source, n)
}

// wantInDoubt checks that the Object of a scene has a pending create, and is Synced and Ready.
func (s *suite) wantInDoubt(t *testing.T, c *stack.Cluster, n *shape) {
	t.Helper()
	all, err := objectsOf(t.Context(), c, n.Name)
	must(t, err)
	u, a := &all[0], all[0].GetAnnotations()
	if err := errors.Join(stack.HasCondition(u, "Ready", "True"), stack.HasCondition(u, "Synced", "True")); err != nil || a[createPending] <= a[createSucceeded] {
		t.Fatalf("%s is not what a killed provider leaves: %v, %v", u.GetName(), err, a)
	}
}

// wantDeployed checks that a scene is what it was, and that its Deployments are the restored ones.
func (s *suite) wantDeployed(t *testing.T, n *shape) {
	t.Helper()
	ctx := t.Context()
	must(t, n.AwaitReady(ctx, s.target))
	s.testSettled(t, n, s.now(t))
	all, err := list(ctx, s.target, kindDeployment, n.Name, "")
	must(t, err)
	type deployed struct {
		Restore  string
		Replicas int64
	}
	want, got := make([]deployed, max(n.Count, 1)), make([]deployed, 0, len(all))
	for i := range want {
		want[i].Restore = n.Name
	}
	for _, u := range all {
		replicas, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		got = append(got, deployed{Restore: u.GetLabels()[labelRestore], Replicas: replicas})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n-want, +got:\n%s", n.reason, diff)
	}
}
