package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// Scenes in which provider-kubernetes was creating an object, or seems to have been.
const (
	// interrupted is created by a provider that is killed between its create and the annotation
	// that confirms it. The next process finds the object, and never writes that annotation.
	interrupted = "interrupted"
	// doubtful has the annotation of a pending create, after which no object was found.
	doubtful = "doubtful"
)

const createSucceeded = "crossplane.io/external-create-succeeded"

// scenesInDoubt returns these scenes, with one instance each.
func scenesInDoubt() map[string]*shape {
	return map[string]*shape{
		interrupted: {reason: "An object that a provider has observed since its create was pending is known.", Scene: drill.Scene{Size: 7}, last: scaleDown},
		doubtful:    {reason: "An object that it has not observed since may exist or not.", Scene: drill.Scene{Size: 7}, last: announce},
	}
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
	u, err := objectOf(ctx, s.source, n.Name)
	must(t, err)
	must(t, s.source.Wait(ctx, patience, "the second after the announcement, as a container takes to be started", func(context.Context) error {
		announced, err := time.Parse(time.RFC3339, u.GetAnnotations()[createPending])
		if err == nil && time.Since(announced) < time.Second {
			err = errors.New("it has not begun")
		}

		return err
	}))
	must(t, s.source.Start(ctx, stack.KubernetesProvider))
	must(t, n.AwaitReady(ctx, s.source))
	s.wantInDoubt(t, s.source, n)
}

// announce marks a create of an Object as pending, as if a user had deleted the external object and
// the provider was killed at once.
func announce(ctx context.Context, c *stack.Cluster, n drill.Scene) error {
	if err := scaleDown(ctx, c, n); err != nil {
		return err
	}
	u, err := objectOf(ctx, c, n.Name)
	if err != nil {
		return err
	}

	return drill.Patch(ctx, c, u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		createPending: time.Now().Add(time.Second).UTC().Format(time.RFC3339),
	}}})
}

// objectOf returns the only Object of a scene.
func objectOf(ctx context.Context, c *stack.Cluster, scene string) (*unstructured.Unstructured, error) {
	all, err := list(ctx, c, kindObject, "", "")
	if err != nil {
		return nil, err
	}
	for _, u := range all {
		if strings.HasPrefix(u.GetName(), scene+"-") {
			return &u, nil
		}
	}

	return nil, errors.New("there is no Object of " + scene)
}

// wantInDoubt checks that an Object has a pending create, and is Synced and Ready.
func (s *suite) wantInDoubt(t *testing.T, c *stack.Cluster, n *shape) {
	t.Helper()
	u, err := objectOf(t.Context(), c, n.Name)
	must(t, err)
	a := u.GetAnnotations()
	if err := errors.Join(stack.HasCondition(u, "Ready", "True"), stack.HasCondition(u, "Synced", "True")); err != nil || a[createPending] <= a[createSucceeded] {
		t.Fatalf("%s is not what a killed provider leaves: %v, %v", u.GetName(), err, a)
	}
}

// testInterrupted checks that an object observed since is adopted, and nothing is created again.
func (s *suite) testInterrupted(t *testing.T, n *shape) {
	must(t, n.StartRestore(t.Context(), s.target))
	s.awaitCompleted(t, n.Name)
	s.wantInDoubt(t, s.target, n)
	s.wantDeployed(t, n)
}

// testDoubtful checks that an object that was not observed since is held and named, until a user
// confirms that it exists.
func (s *suite) testDoubtful(t *testing.T, n *shape) {
	ctx := t.Context()
	must(t, n.StartRestore(ctx, s.target))
	must(t, drill.AwaitOperations(ctx, s.target, n.Name))
	var held *unstructured.Unstructured
	s.eventually(t, "the restore to name what was being created", func(ctx context.Context) (err error) {
		if held, err = objectOf(ctx, s.target, n.Name); err != nil {
			return err
		}
		details, err := s.target.Velero(ctx, "restore", "describe", n.Name, "--details")
		if err == nil && linesWith(details, held.GetName(), "being created", createPending) == 0 {
			err = fmt.Errorf("no line does:\n%s", details)
		}

		return err
	})
	if !paused(held) || !strings.Contains(markOf(held), "being created") {
		t.Errorf("%s It is not held: %v", n.reason, held.GetAnnotations())
	}
	must(t, drill.Patch(ctx, s.target, held, map[string]any{"metadata": map[string]any{"annotations": map[string]any{createPending: nil}}}))
	s.awaitCompleted(t, n.Name)
	for key, l := range n.picture {
		if strings.HasSuffix(key, held.GetName()) {
			delete(l.Annotations, createPending)
		}
	}
	n.mended = []string{"Object." + kindObject.Group + " " + held.GetName()}
	s.wantDeployed(t, n)
}

// wantDeployed checks that a scene is what it was, and that its Deployment is the restored one.
func (s *suite) wantDeployed(t *testing.T, n *shape) {
	t.Helper()
	ctx := t.Context()
	must(t, n.AwaitReady(ctx, s.target))
	now, err := s.cloud.Journal(ctx, 0)
	must(t, err)
	s.testSettled(t, n, now[len(now)-1].Seq)
	want := make([]deployed, max(n.Count, 1))
	for i := range want {
		want[i].Restore = n.Name
	}
	if diff := cmp.Diff(want, s.deployments(t, n)); diff != "" {
		t.Errorf("%s\n-want, +got:\n%s", n.reason, diff)
	}
}
