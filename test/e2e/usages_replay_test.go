package e2e

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

var configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// used returns the objects that the Usages of a scene protect.
func (s *suite) used(ctx context.Context, c *stack.Cluster, scene string) ([]unstructured.Unstructured, error) {
	used, err := s.of(ctx, c, scene, s.mrKind("Bucket"))
	if err != nil || s.version == stack.V1 {
		return used, err
	}
	all, err := s.of(ctx, c, scene, configMapKind)
	for _, u := range all {
		if u.GetName() != "kube-root-ca.crt" {
			used = append(used, u)
		}
	}

	return used, err
}

// tryToDelete tries to delete the used objects. Crossplane refuses and records it.
func (s *suite) tryToDelete(ctx context.Context, c *stack.Cluster, scene drill.Scene) error {
	used, err := s.used(ctx, c, scene.Name)
	if err != nil {
		return err
	}
	for _, u := range used {
		r, err := c.Resource(ctx, u.GroupVersionKind(), u.GetNamespace())
		if err != nil {
			return err
		}
		if err := r.Delete(ctx, u.GetName(), metav1.DeleteOptions{}); err == nil {
			return fmt.Errorf("%s %s is not protected", u.GetKind(), u.GetName())
		}
		noted, err := r.Get(ctx, u.GetName(), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("cannot get %s: %w", u.GetName(), err)
		}
		if noted.GetAnnotations()[attempt] == "" {
			return fmt.Errorf("no record exists of the attempt to delete %s %s", u.GetKind(), u.GetName())
		}
	}

	return nil
}

// leaveOutUsers makes backups leave out the using objects.
func (s *suite) leaveOutUsers(ctx context.Context, c *stack.Cluster, scene drill.Scene) error {
	users, err := s.of(ctx, c, scene.Name, s.mrKind("Network"))
	for _, u := range users {
		if err == nil {
			err = drill.Patch(ctx, c, &u, map[string]any{"metadata": map[string]any{"labels": map[string]any{"velero.io/exclude-from-backup": "true"}}})
		}
	}

	return err
}

// deleteUsers deletes the using objects, and waits until the Usages are gone too.
func (s *suite) deleteUsers(t *testing.T, n *shape) {
	t.Helper()
	ctx := t.Context()
	usages, err := s.of(ctx, s.target, n.Name, s.usageKind())
	must(t, err)
	must(t, s.awaitUsages(ctx, s.target, n.Name, len(usages))) // Until then they don't follow the using objects.
	users, err := s.of(ctx, s.target, n.Name, s.mrKind("Network"))
	must(t, err)
	if len(users) != two || len(usages) < two {
		t.Fatalf("%s There are the users %v and Usages %v", n.reason, names(users), names(usages))
	}
	for _, u := range users {
		s.delete(t, &u, metav1.DeletePropagationBackground)
	}
	for _, u := range usages {
		s.awaitGone(t, &u)
	}
}

// testReplayAlone is the control: the target executes a deletion that was tried in the source.
func (s *suite) testReplayAlone(t *testing.T, n *shape) {
	s.awaitCompleted(t, n.Name)
	s.deleteUsers(t, n)
	s.eventually(t, "Crossplane to delete the used objects (the control)", func(ctx context.Context) error {
		return s.changed(ctx, n, api.Delete, api.Bucket, two)
	})
}

// testGuarded tries to delete used objects as soon as they exist, and then deletes the using
// objects. Attempts after the restore take effect.
func (s *suite) testGuarded(t *testing.T, n *shape) {
	s.awaitCompleted(t, n.Name)
	s.wantProtected(t, n, true)
	must(t, n.AwaitReady(t.Context(), s.target))
	must(t, s.tryToDelete(t.Context(), s.target, n.Scene))
	s.deleteUsers(t, n)
	s.eventually(t, "the used objects to be deleted", func(ctx context.Context) error { return s.changed(ctx, n, api.Delete, api.Bucket, two) })
}

// testNoUser expects Usages without their using objects to be reported, and to protect until they
// are cleared as the restore proposes.
func (s *suite) testNoUser(t *testing.T, n *shape) {
	ctx := t.Context()
	logs := drill.Problems(ctx, s.target, n.Name)
	usages, err := s.of(ctx, s.target, n.Name, s.usageKind())
	must(t, err)
	for _, u := range usages {
		user, _, _ := unstructured.NestedString(u.Object, "spec", "by", "resourceRef", "name")
		wantMessage(t, "the problems of the restore", logs, "level=warning", "name="+u.GetName(), user+", for which the Usage protects", "[UsageIncomplete]", "kubectl annotate",
			"kubectl delete")
	}
	if len(usages) < two {
		t.Fatalf("%s There are the Usages %v", n.reason, names(usages))
	}
	s.wantProtected(t, n, true)
	s.clear(t, usages)
	s.wantProtected(t, n, false)
}

// testReplayForgotten expects the used objects to stay when no object uses them any more.
func (s *suite) testReplayForgotten(t *testing.T, n *shape) {
	ctx := t.Context()
	must(t, n.AwaitReady(ctx, s.target))
	logs := drill.Problems(ctx, s.target, n.Name)
	used, err := s.used(ctx, s.target, n.Name)
	must(t, err)
	for _, u := range used {
		if _, noted := u.GetAnnotations()[attempt]; noted || u.GetLabels()["crossplane.io/in-use"] != "true" {
			t.Errorf("%s %s %s has %v and %v", n.reason, u.GetKind(), u.GetName(), u.GetLabels(), u.GetAnnotations())
		}
		wantMessage(t, "the problems of the restore", logs, "level=warning", "name="+u.GetName(), "[DeletionAttemptDropped]")
	}
	s.deleteUsers(t, n)
	s.wantProtected(t, n, false)
}
