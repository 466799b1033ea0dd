package live

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Warn writes a warning Event about an object, in its namespace or, for a cluster-scoped object, in the namespace default.
func (c *Cluster) Warn(ctx context.Context, u *unstructured.Unstructured, reason, message string) error {
	namespace := u.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	now := time.Now().UTC().Format(time.RFC3339)
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata": map[string]any{"generateName": u.GetName() + ".", "namespace": namespace},
		"involvedObject": map[string]any{
			"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "namespace": u.GetNamespace(), "name": u.GetName(), "uid": string(u.GetUID()),
		},
		"type": "Warning", "reason": reason, "message": message,
		"source":         map[string]any{"component": FieldManager},
		"firstTimestamp": now, "lastTimestamp": now, "count": int64(1),
	}}
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	if _, err := c.client.Resource(events).Namespace(namespace).Create(ctx, event, metav1.CreateOptions{FieldManager: FieldManager}); err != nil {
		return fmt.Errorf("cannot write an Event about %s: %w", xp.String(u), err)
	}

	return nil
}
