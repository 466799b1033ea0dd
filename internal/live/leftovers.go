package live

import (
	"context"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// leftovers are the Usages that adopted XRs have left behind, as of the latest pass.
type leftovers struct {
	cluster *Cluster
	// adopted are the XRs that are adopted now, and unfinished those that once were not.
	adopted    map[xp.ID]schema.GroupVersionKind
	unfinished map[xp.ID]bool
}

func leftoversIn(c *Cluster) *leftovers {
	return &leftovers{cluster: c, unfinished: map[xp.ID]bool{}}
}

// record records which XRs are adopted and which are not yet.
func (l *leftovers) record(w *adoption.Snapshot, plans map[xp.ID]adoption.Plan) {
	l.adopted = map[xp.ID]schema.GroupVersionKind{}
	for _, r := range w.Subjects() {
		u, id := w.Get(r), r.ID()
		switch {
		case u == nil || !xp.IsComposite(u):
		case plans[id].Done:
			l.adopted[id] = u.GroupVersionKind()
		default:
			l.unfinished[id] = true
		}
	}
}

// report adds the Usages found to the Plans, and writes an Event about each XR that has just been
// adopted. It lists Usages once, and XRs only if an XR composed any of the Usages. It only logs
// errors, since these adoptions are complete.
func (l *leftovers) report(ctx context.Context, a *Adopter, o *observer, plans map[xp.ID]adoption.Plan) {
	if len(l.adopted) == 0 {
		return
	}
	var err error
	if in := l.namespaces(); o.usagesRead == nil || !slices.Equal(o.usagesRead, in) {
		if o.usages, err = l.usages(ctx, in); err == nil {
			o.usagesRead = in
		}
	}
	if err == nil && len(o.usages) > 0 {
		err = l.reportUsages(ctx, o, o.usages, plans)
	}
	if err != nil {
		a.log.WithError(err).Warn("Usages that were left behind are not reported")
	}
}

func (l *leftovers) reportUsages(ctx context.Context, o *observer, usages []*unstructured.Unstructured, plans map[xp.ID]adoption.Plan) error {
	var xrs []*unstructured.Unstructured
	byID := map[xp.ID]*unstructured.Unstructured{}
	kinds := map[schema.GroupVersionKind]bool{}
	for _, gvk := range l.adopted {
		if kinds[gvk] {
			continue
		}
		kinds[gvk] = true
		for _, namespace := range l.namespaces() {
			found, err := l.all(ctx, o, collection{gvk, namespace})
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
	for _, left := range adoption.Leftovers(usages, xrs) {
		id := xp.RefTo(left.XR).ID()
		remarks[id] = append(remarks[id], left.Message())
	}
	for id, of := range remarks {
		if _, ok := l.adopted[id]; !ok {
			continue
		}
		p := plans[id]
		p.Remarks = append(p.Remarks, of...)
		plans[id] = p
		if !l.unfinished[id] {
			continue
		}
		if err := l.cluster.Warn(ctx, byID[id], adoption.EventLeftBehind, strings.Join(reason.Strings(of), "\n")); err != nil {
			return err
		}
	}

	return nil
}

// namespaces returns the namespaces in which the adopted XRs can have left Usages: a namespaced XR
// composes only objects of its namespace. It returns "" for all namespaces if an XR is
// cluster-scoped or there are many namespaces.
func (l *leftovers) namespaces() []string {
	in := map[string]bool{}
	for id := range l.adopted {
		in[id.Namespace] = true
	}
	if in[""] || len(in) > maxNamespaces {
		return []string{""}
	}

	return slices.Sorted(maps.Keys(in))
}

// all returns all XRs of a kind, in a namespace or everywhere.
func (l *leftovers) all(ctx context.Context, o *observer, c collection) ([]*unstructured.Unstructured, error) {
	if o.whole[collection{GroupVersionKind: c.GroupVersionKind}] {
		return o.snapshot.All(c.GroupKind(), nil), nil
	}

	return l.cluster.List(ctx, c.GroupVersionKind, c.namespace, metav1.ListOptions{})
}

// usages returns the Usages that an XR composed, in some namespaces or everywhere.
func (l *leftovers) usages(ctx context.Context, namespaces []string) ([]*unstructured.Unstructured, error) {
	var usages []*unstructured.Unstructured
	for _, gk := range xp.UsageKinds() {
		gvk, ok, err := l.cluster.Served(gk)
		if err != nil {
			return nil, err
		}
		if _, namespaced, err := l.cluster.Resource(gvk); !ok || err == nil && !namespaced && namespaces[0] != "" {
			continue // A namespaced XR composes no ClusterUsage.
		}
		for _, namespace := range namespaces {
			found, err := l.cluster.List(ctx, gvk, namespace, metav1.ListOptions{LabelSelector: xp.LabelComposite})
			if err != nil {
				return nil, err
			}
			usages = append(usages, found...)
		}
	}

	return usages, nil
}
