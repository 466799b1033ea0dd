package live

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// mostRefused is how many XRs a poll reads the Events of, and mostEvents how many of each.
const (
	mostRefused = 10
	mostEvents  = 50
)

// explainRefused adds to plans of XRs why the API server refuses what they compose. Crossplane says
// that only in Events.
func (p *poll) explainRefused(ctx context.Context, w *adoption.Snapshot) {
	read := 0
	for id, plan := range p.plans {
		n := slices.IndexFunc(plan.Waiting, adoption.IsRefused)
		u := w.Get(xp.Ref{APIVersion: schema.GroupVersion{Group: id.Group, Version: "v1"}.String(), Kind: id.Kind, Namespace: id.Namespace, Name: id.Name})
		if n < 0 || u == nil || !xp.IsComposite(u) || read == mostRefused {
			continue
		}
		read++
		said, err := p.cluster.refusalOf(ctx, u)
		if err != nil {
			p.log.WithField("object", xp.String(u)).WithError(err).Info("Cannot read why the API server refuses what it composes")
		}
		if said == "" {
			continue
		}
		plan.Waiting = slices.Clone(plan.Waiting)
		plan.Waiting[n] = adoption.WhyRefused(u, said)
		p.plans[id] = plan
	}
}

// refusalOf returns what the API server said last when it refused what an XR composes, "" if that is
// not known.
func (c *Cluster) refusalOf(ctx context.Context, xr *unstructured.Unstructured) (string, error) {
	namespace := xr.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	selector := fields.Set{"involvedObject.uid": string(xr.GetUID()), "type": eventWarning}.String()
	events, err := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(namespace).List(ctx,
		metav1.ListOptions{FieldSelector: selector, Limit: mostEvents})
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
