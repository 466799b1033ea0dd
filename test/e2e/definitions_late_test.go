package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// sceneFunction is a Function of a scene: the stack's under another name.
const sceneFunction = `
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: function-${scene}
  annotations: {crossplane.io/paused: "true"}
spec:
  package: registry.invalid/function-${scene}:v1
---
apiVersion: pkg.crossplane.io/v1
kind: FunctionRevision
metadata:
  name: function-${scene}-1
  annotations: {crossplane.io/paused: "true"}
  labels: {pkg.crossplane.io/package: "function-${scene}"}
spec:
  desiredState: Active
  image: registry.invalid/function-${scene}:v1
  revision: 1
`

var (
	functionKind         = schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: "Function"}
	functionRevisionKind = schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: "FunctionRevision"}
	crdKind              = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// installFunction installs the Function of a scene, which runs as long as the stack's does.
// Crossplane v2 calls it only if its revision has the capability.
func (s *suite) installFunction(t *testing.T, c *stack.Cluster, scene string, capable bool) {
	t.Helper()
	ctx := t.Context()
	must(t, c.Apply(ctx, []byte(strings.ReplaceAll(sceneFunction, "${scene}", scene))))
	s.setCapable(t, c, scene, capable)
}

func (s *suite) setCapable(t *testing.T, c *stack.Cluster, scene string, capable bool) {
	t.Helper()
	ctx := t.Context()
	running, err := get(ctx, c, functionRevisionKind, "", "function-patch-and-transform-stack")
	must(t, err)
	endpoint, _, _ := unstructured.NestedString(running.Object, "status", "endpoint")
	status := map[string]any{"endpoint": endpoint}
	if capable && s.version != stack.V1 {
		status["capabilities"] = []any{"composition"}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	u.SetGroupVersionKind(functionRevisionKind)
	u.SetName("function-" + scene + "-1")
	must(t, c.ApplyStatus(ctx, u))
}

// setHealth sets the condition Healthy of a scene's Function, as the package manager does.
func (s *suite) setHealth(t *testing.T, scene, status string) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": "Healthy", "status": status, "reason": "PackageRevisionHealth", "message": "cannot pull the image", "lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339),
	}}}}}
	u.SetGroupVersionKind(functionKind)
	u.SetName("function-" + scene)
	must(t, s.target.ApplyStatus(t.Context(), u))
}

// withdraw deletes a CRD of the provider from the target, and returns it. It stops the provider,
// which can't run without.
func (s *suite) withdraw(t *testing.T, plural string) *unstructured.Unstructured {
	t.Helper()
	must(t, s.target.Stop(stack.CloudProvider))

	return s.takeAway(t, plural)
}

// takeAway deletes a CRD of the provider, which must not run, from the target, and returns it.
func (s *suite) takeAway(t *testing.T, plural string) *unstructured.Unstructured {
	t.Helper()
	crd, err := get(t.Context(), s.target, crdKind, "", plural+"."+s.cloudGroup())
	must(t, err)
	s.delete(t, crd, metav1.DeletePropagationBackground)
	s.awaitGone(t, crd)
	delete(crd.Object, "status")
	crd.Object["metadata"] = map[string]any{"name": crd.GetName()}

	return crd
}

func (s *suite) awaitGone(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	s.eventually(t, u.GetKind()+" "+u.GetName()+" to be gone", func(ctx context.Context) error {
		_, err := get(ctx, s.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = errors.New("it is there")
		}

		return err
	})
}

// testKindMissingAlone is the control: XRs compose again what Velero could not restore.
func (s *suite) testKindMissingAlone(t *testing.T, n *shape) {
	ctx := t.Context()
	crd := s.withdraw(t, "databases")
	must(t, s.target.RestartVelero(ctx)) // It waits for ever for a kind that is gone since its last discovery.
	must(t, n.StartRestore(ctx, s.target))
	s.awaitEnd(t, n.Name)
	must(t, s.target.ApplyObjects(ctx, crd))
	must(t, s.target.Start(ctx, stack.CloudProvider))
	for _, u := range s.orders(t, n, few) { // Crossplane would requeue them only after a while.
		must(t, drill.Patch(ctx, s.target, &u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"look": "again"}}}))
	}
	s.eventually(t, "Crossplane to create again what was not restored, without which the other tests prove nothing", func(ctx context.Context) error {
		return s.changed(ctx, n, api.Create, api.Database, few)
	})
}

// testKindNeverThere checks that a restore gives up if the CRD does not come in time.
func (s *suite) testKindNeverThere(t *testing.T, n *shape) {
	ctx := t.Context()
	args := append([]string{"--item-operation-timeout", "1s"}, n.RestoreArgs...)
	must(t, drill.Platform{}.StartRestore(ctx, s.target, n.Name+"-never", n.Name, args...))
	s.wantPhase(t, n.Name+"-never", "PartiallyFailed")
	for _, u := range s.orders(t, n, few) {
		if why := u.GetAnnotations()[annotationHold]; !paused(&u) || !strings.Contains(why, "[KindNotServed]") {
			t.Errorf("%s XR %s is not held with the reason: %s", n.reason, u.GetName(), why)
		}
	}
}

// orders returns the XRs of a scene.
func (s *suite) orders(t *testing.T, n *shape, want int) []unstructured.Unstructured {
	t.Helper()
	xrs, err := s.of(t.Context(), s.target, n.Name, s.orderKind(n.Name))
	must(t, err)
	if len(xrs) != want {
		t.Fatalf("%s There are %v", n.reason, names(xrs))
	}

	return xrs
}

// startWaiting starts to restore scenes and waits until each restore names what it waits for. No XR
// may be unpaused by then.
func (s *suite) startWaiting(t *testing.T, scenes map[string]*shape, waits []string) {
	t.Helper()
	for _, name := range waits {
		must(t, scenes[name].StartRestore(t.Context(), s.target))
	}
	says := map[string][]string{
		missing:   {"Network.cloud.", "[KindNotServed]"},
		late:      {"Bucket", "[AwaitingProvider]"},
		unhealthy: {"Function function-unhealthy: it is not Healthy (PackageRevisionHealth cannot pull the image)"},
		incapable: {"CompositionRevision incapable-", "[PipelineNotValid]", "function-incapable"},
	}
	for _, name := range waits {
		s.eventually(t, name+" to name what it waits for", func(ctx context.Context) error {
			out, err := s.target.Velero(ctx, "restore", "describe", name, "--details")
			if err == nil && linesWith(out, says[name]...) < few {
				err = fmt.Errorf("%d lines have %q:\n%s", linesWith(out, says[name]...), says[name], out)
			}

			return err
		})
		for _, u := range s.orders(t, scenes[name], few) {
			if !paused(&u) || !drill.Held(&u) {
				t.Errorf("%s XR %s is not held: %v", scenes[name].reason, u.GetName(), u.GetAnnotations())
			}
		}
	}
}

// mend installs what the restores wait for, and restores what could not be restored without it.
func (s *suite) mend(t *testing.T, scenes map[string]*shape, crd *unstructured.Unstructured) {
	t.Helper()
	ctx := t.Context()
	must(t, s.target.ApplyObjects(ctx, crd))
	must(t, s.target.Start(ctx, stack.CloudProvider))
	s.setHealth(t, unhealthy, "True")
	if scenes[incapable] != nil {
		s.setCapable(t, s.target, incapable, true)
	}
	must(t, s.target.RestartVelero(ctx)) // Velero discovers the kind only after a while.
	must(t, drill.Platform{}.StartRestore(ctx, s.target, missing+"-again", missing))
}

// testMended checks that a restore that has waited is Completed.
func (s *suite) testMended(t *testing.T, n *shape) {
	if n.Name == missing {
		s.awaitCompleted(t, n.Name+"-again")
		s.awaitEnd(t, n.Name) // For Velero it is an error that it could not restore a kind that is not served.
	} else {
		s.awaitCompleted(t, n.Name)
	}
	must(t, n.AwaitReady(t.Context(), s.target))
}
