package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

const (
	externalName   = "crossplane.io/external-name"
	createPending  = "crossplane.io/external-create-pending"
	annotationHold = "velero.crossplane.x-k8s.io/hold"
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
	functionRevisionKind = schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: "FunctionRevision"}
	crdKind              = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// installFunction installs the Function of a scene, which runs as long as the stack's does.
// Crossplane v2 calls it only if its revision has the capability.
func (s *suite) installFunction(t *testing.T, c *stack.Cluster, scene string) {
	t.Helper()
	ctx := t.Context()
	must(t, c.Apply(ctx, []byte(strings.ReplaceAll(sceneFunction, "${scene}", scene))))
	running, err := get(ctx, c, functionRevisionKind, "", "function-patch-and-transform-stack")
	must(t, err)
	endpoint, _, _ := unstructured.NestedString(running.Object, "status", "endpoint")
	status := map[string]any{"endpoint": endpoint}
	if s.version != stack.V1 {
		status["capabilities"] = []any{"composition"}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	u.SetGroupVersionKind(functionRevisionKind)
	u.SetName("function-" + scene + "-1")
	must(t, c.ApplyStatus(ctx, u))
}

func policies(u *unstructured.Unstructured) []any {
	p, _, _ := unstructured.NestedSlice(u.Object, "spec", "managementPolicies")

	return p
}

// seq returns the number of the last entry of the cloud's journal.
func (s *suite) seq(t *testing.T) int64 {
	t.Helper()
	entries, err := s.cloud.Journal(t.Context(), 0)
	must(t, err)

	return entries[len(entries)-1].Seq
}

// message returns the message of a condition.
func message(u *unstructured.Unstructured, condition string) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c, is := c.(map[string]any); is && c["type"] == condition {
			m, _ := c["message"].(string)

			return m
		}
	}

	return ""
}
