package cluster

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

var resourceEvents = schema.GroupVersionResource{Version: "v1", Resource: "events"}

const (
	// maxMessage is the limit of a note in events.k8s.io (kubernetes
	// pkg/apis/core/validation/events.go). Programs that show Events may rely on it.
	maxMessage = 1024
	// mostEvents is how many Events of an object are read.
	mostEvents = 50
	// maxPrefix leaves room for the suffix that the API server adds to a generated name.
	maxPrefix = 200
)

// Warn writes a warning Event about an object. The Event is in the object's namespace, or in the
// namespace default for a cluster-scoped object.
func (c *Cluster) Warn(ctx context.Context, u *unstructured.Unstructured, why, message string) error {
	return c.Event(ctx, u, corev1.EventTypeWarning, why, message)
}

// Event writes an Event of a type, corev1.EventTypeNormal or corev1.EventTypeWarning, as Warn does.
func (c *Cluster) Event(ctx context.Context, u *unstructured.Unstructured, kind, why, message string) error {
	namespace := cmp.Or(u.GetNamespace(), metav1.NamespaceDefault)
	now := c.ServerNow().UTC().Format(time.RFC3339)
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata": map[string]any{"generateName": strings.TrimRight(cut(u.GetName(), maxPrefix, ""), ".-") + ".", "namespace": namespace},
		"involvedObject": map[string]any{
			"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "namespace": u.GetNamespace(), "name": u.GetName(), "uid": string(u.GetUID()),
		},
		"type": kind, "reason": why, "message": cut(reason.Clean(message), maxMessage, "…"),
		"source":         map[string]any{"component": FieldManager},
		"firstTimestamp": now, "lastTimestamp": now, "count": int64(1),
	}}
	// A retry may write the Event twice, which is better than never.
	return c.WithFewRetries(func() error {
		_, err := c.client.Resource(resourceEvents).Namespace(namespace).Create(ctx, event, metav1.CreateOptions{FieldManager: FieldManager})
		if err != nil {
			return fmt.Errorf("cannot write an Event about %s: %w", xp.String(u), err)
		}

		return nil
	})
}

// cut returns s if it has at most limit bytes, else its beginning and end, together limit bytes.
func cut(s string, limit int, end string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= limit {
		return s
	}
	n := limit - len(end)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}

	return s[:n] + end
}

// RefusalOf returns what the API server said last when it refused what an XR composes, "" if that is
// not known.
func (c *Cluster) RefusalOf(ctx context.Context, xr *unstructured.Unstructured) (string, error) {
	selector := fields.Set{"involvedObject.uid": string(xr.GetUID()), "type": corev1.EventTypeWarning}.String()
	namespace := cmp.Or(xr.GetNamespace(), metav1.NamespaceDefault)
	events, err := c.client.Resource(resourceEvents).Namespace(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector, Limit: mostEvents})
	if err != nil {
		return "", fmt.Errorf("cannot list the Events about %s: %w", xp.String(xr), err)
	}
	said, last := "", ""
	for _, e := range events.Items {
		message, _, _ := unstructured.NestedString(e.Object, "message")
		at, _, _ := unstructured.NestedString(e.Object, "lastTimestamp")
		of, _, _ := unstructured.NestedString(e.Object, "involvedObject", "uid")
		if of == string(xr.GetUID()) && adoption.IsRefusal(message) && at >= last {
			said, last = cut(message, maxMessage, "…"), at
		}
	}

	return said, nil
}
