package live

import (
	"context"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// reportLeftovers adds to the Plans the Usages that adopted XRs have left behind, and writes an
// Event about each XR that was adopted in this poll. It lists Usages once, and XRs only if an XR
// composed any of the Usages. It only logs errors, since these adoptions are complete.
func (p *poll) reportLeftovers(ctx context.Context, o *observer) {
	adopted := map[xp.ID]schema.GroupVersionKind{}
	for _, r := range o.snapshot.Subjects() {
		if u := o.snapshot.Get(r); u != nil && xp.IsComposite(u) && p.plans[r.ID()].Done {
			adopted[r.ID()] = u.GroupVersionKind()
		}
	}
	if len(adopted) == 0 {
		return
	}
	namespaces := usageNamespaces(adopted)
	var err error
	if o.usagesRead == nil || !slices.Equal(o.usagesRead, namespaces) {
		if o.usages, err = p.cluster.usages(ctx, namespaces); err == nil {
			o.usagesRead = namespaces
		}
	}
	if err == nil && len(o.usages) > 0 {
		err = p.reportUsages(ctx, o, adopted)
	}
	if err != nil {
		p.log.WithError(err).Warn("Usages that were left behind are not reported")
	}
}

func (p *poll) reportUsages(ctx context.Context, o *observer, adopted map[xp.ID]schema.GroupVersionKind) error {
	var xrs []*unstructured.Unstructured
	byID := map[xp.ID]*unstructured.Unstructured{}
	for gvk := range sets.New(slices.Collect(maps.Values(adopted))...) {
		for _, namespace := range o.usagesRead {
			found, err := o.allOf(ctx, gvk, namespace)
			if err != nil {
				return err
			}
			for _, u := range found {
				if id := xp.RefTo(u).ID(); xp.IsComposite(u) && byID[id] == nil {
					xrs, byID[id] = append(xrs, u), u
				}
			}
		}
	}
	remarks := map[xp.ID][]reason.Message{}
	for _, left := range adoption.Leftovers(o.usages, xrs) {
		id := xp.RefTo(left.XR).ID()
		remarks[id] = append(remarks[id], left.Message())
	}
	for id, of := range remarks {
		if _, ok := adopted[id]; !ok {
			continue
		}
		plan := p.plans[id]
		plan.Remarks = append(plan.Remarks, of...)
		p.plans[id] = plan
		if !p.unfinished[id] {
			continue
		}
		if err := p.cluster.Warn(ctx, byID[id], adoption.EventLeftBehind, strings.Join(reason.Strings(of), "\n")); err != nil {
			return err
		}
	}

	return nil
}

// usageNamespaces returns the namespaces in which the adopted XRs can have left Usages: a namespaced
// XR composes only objects of its namespace. It returns "" for all namespaces if an XR is
// cluster-scoped or there are many namespaces.
func usageNamespaces(adopted map[xp.ID]schema.GroupVersionKind) []string {
	in := sets.New[string]()
	for id := range adopted {
		in.Insert(id.Namespace)
	}
	if in.Has("") || in.Len() > maxNamespaces {
		return []string{""}
	}

	return sets.List(in)
}

// allOf returns all objects of a kind, in a namespace or everywhere.
func (o *observer) allOf(ctx context.Context, gvk schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	if o.whole[collection{GroupVersionKind: gvk}] {
		return o.snapshot.All(gvk.GroupKind(), nil), nil
	}

	return o.cluster.List(ctx, gvk, namespace, metav1.ListOptions{})
}

// usages returns the Usages that an XR composed, in some namespaces or everywhere.
func (c *Cluster) usages(ctx context.Context, namespaces []string) ([]*unstructured.Unstructured, error) {
	var usages []*unstructured.Unstructured
	for _, gk := range xp.UsageKinds() {
		gvk, ok, err := c.Served(gk)
		if err != nil {
			return nil, err
		}
		if _, namespaced, err := c.Resource(gvk); !ok || err == nil && !namespaced && namespaces[0] != "" {
			continue // A namespaced XR composes no ClusterUsage.
		}
		for _, namespace := range namespaces {
			found, err := c.List(ctx, gvk, namespace, metav1.ListOptions{LabelSelector: xp.LabelComposite})
			if err != nil {
				return nil, err
			}
			usages = append(usages, found...)
		}
	}

	return usages, nil
}
