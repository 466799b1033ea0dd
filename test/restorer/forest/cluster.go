package forest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Cluster is a cluster in memory.
type Cluster struct {
	objects map[xp.ID]*unstructured.Unstructured
	// unserved are kinds of the forest that the cluster does not serve.
	unserved map[schema.GroupKind]bool
	settings map[string]string
}

func newCluster() *Cluster {
	return &Cluster{objects: map[xp.ID]*unstructured.Unstructured{}, unserved: map[schema.GroupKind]bool{}}
}

// source returns the cluster in which the forest is.
func (f *Forest) source() *Cluster {
	c := newCluster()
	for _, o := range f.Objects {
		c.objects[xp.RefTo(o.Unstructured).ID()] = o.Unstructured
	}

	return c
}

// Resource returns the resource of a kind, and whether it is namespaced.
func (c *Cluster) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	k, ok := KindOf(gvk.GroupKind())
	if !ok || k.Version != gvk.Version || c.unserved[k.GroupKind()] {
		return schema.GroupVersionResource{}, false, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}

	return gvk.GroupVersion().WithResource(k.Plural), k.Namespaced, nil
}

// Served returns the version in which a kind is served.
func (c *Cluster) Served(gk schema.GroupKind) (schema.GroupVersionKind, bool, error) {
	k, ok := KindOf(gk)

	return k.GroupVersionKind, ok && !c.unserved[gk], nil
}

// Versions returns no webhook: the cluster converts nothing.
func (c *Cluster) Versions(context.Context, schema.GroupKind) (xp.Versions, error) {
	return xp.Versions{}, nil
}

// Settings returns the cluster's settings of the plugin.
func (c *Cluster) Settings(context.Context, string) (map[string]string, error) {
	return c.settings, nil
}

// MakeMarkKey makes nothing: the forest's marks are signed otherwise.
func (c *Cluster) MakeMarkKey(context.Context, string) error { return nil }

// Get returns a copy of an object.
func (c *Cluster) Get(_ context.Context, r xp.Ref) (*unstructured.Unstructured, error) {
	_, namespaced, err := c.Resource(r.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if !namespaced {
		r.Namespace = ""
	}
	if u := c.objects[r.ID()]; u != nil {
		return u.DeepCopy(), nil
	}

	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: r.Kind}, r.Name)
}

// Each calls do with a copy of each object that the options select.
func (c *Cluster) Each(
	_ context.Context, gvk schema.GroupVersionKind, ns string, options metav1.ListOptions, do func(*unstructured.Unstructured),
) error {
	_, namespaced, err := c.Resource(gvk)
	if err != nil {
		return err
	}
	if !namespaced {
		ns = ""
	}
	selector, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return fmt.Errorf("cannot list %s: %w", gvk.Kind, err)
	}
	for id, u := range c.objects {
		if id.Kind != gvk.Kind || id.Group != gvk.Group || ns != "" && ns != id.Namespace || !selector.Matches(labels.Set(u.GetLabels())) {
			continue
		}
		if t, ok := strings.CutPrefix(options.FieldSelector, "type="); ok && stringAt(u, "type") != t {
			continue
		}
		do(u.DeepCopy())
	}

	return nil
}

// A view is what one process of the plugin sees of a cluster. Like internal/cluster, it caches what
// it has read.
type view struct {
	*Cluster

	owners    map[xp.ID]*unstructured.Unstructured
	inventory map[schema.GroupKind]map[xp.ID]*unstructured.Unstructured
}

func (c *Cluster) view() *view {
	return &view{Cluster: c, owners: map[xp.ID]*unstructured.Unstructured{}, inventory: map[schema.GroupKind]map[xp.ID]*unstructured.Unstructured{}}
}

// Owner returns the object of an owner reference.
func (v *view) Owner(ctx context.Context, ref metav1.OwnerReference, ns string) (*unstructured.Unstructured, error) {
	r := xp.Ref{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ns, Name: ref.Name}
	if _, namespaced, err := v.Resource(r.GroupVersionKind()); err != nil {
		return nil, err
	} else if !namespaced {
		r.Namespace = ""
	}
	if u := v.owners[r.ID()]; u != nil {
		return u, nil
	}
	u, err := v.Get(ctx, r)
	if err != nil {
		return nil, err
	}
	v.owners[r.ID()] = u

	return u, nil
}

func (v *view) cached(gk schema.GroupKind) map[xp.ID]*unstructured.Unstructured {
	all, ok := v.inventory[gk]
	if !ok {
		all = map[xp.ID]*unstructured.Unstructured{}
		for id, u := range v.objects {
			if id.Group == gk.Group && id.Kind == gk.Kind {
				all[id] = u
			}
		}
		v.inventory[gk] = all
	}

	return all
}

// Exists reports whether an object existed at the first request for its kind.
func (v *view) Exists(_ context.Context, r xp.Ref) (bool, error) {
	return v.cached(r.GroupVersionKind().GroupKind())[r.ID()] != nil, nil
}

// ExistsNow reports whether an object exists.
func (v *view) ExistsNow(_ context.Context, r xp.Ref) (bool, error) {
	return v.objects[r.ID()] != nil, nil
}

// Named returns the MRs that had an external-name at the first request for their kind.
func (v *view) Named(_ context.Context, gvk schema.GroupVersionKind, externalName string) ([]xp.Managing, error) {
	var refs []xp.Managing
	for _, u := range v.cached(gvk.GroupKind()) {
		name := u.GetAnnotations()[xp.AnnotationExternalName]
		if name == "" {
			name, _ = xp.ProviderID(u)
		}
		if name == externalName {
			refs = append(refs, xp.ManagingOf(u))
		}
	}

	return refs, nil
}

// Composing returns none: all Compositions are live.
func (*view) Composing(context.Context, hold.Key, schema.GroupVersionKind, string) ([]xp.Ref, error) {
	return nil, nil
}

// Moved returns the namespaced MRs of the cache that a restore has created with an external-name.
func (v *view) Moved(_ context.Context, gvk schema.GroupVersionKind, externalName string) ([]xp.Managing, error) {
	var refs []xp.Managing
	for _, u := range v.cached(gvk.GroupKind()) {
		if xp.Annotation(u, xp.AnnotationExternalName) == externalName && u.GetNamespace() != "" && xp.Label(u, xp.LabelRestore) != "" {
			refs = append(refs, xp.ManagingOf(u))
		}
	}

	return refs, nil
}

// IsReconciled reports whether Crossplane or a provider reconciles a kind.
func (*view) IsReconciled(_ context.Context, gvk schema.GroupVersionKind) (bool, error) {
	k, _ := KindOf(gvk.GroupKind())

	return k.Reconciled(), nil
}

// IsClaimKind reports whether a kind is that of claims.
func (*view) IsClaimKind(gvk schema.GroupVersionKind) (bool, error) {
	k, _ := KindOf(gvk.GroupKind())

	return k.Category() == xp.CategoryClaim, nil
}

// MarkKey returns a fixed key.
func (v *view) MarkKey(context.Context, string) (hold.Key, error) {
	key, err := hold.NewKey(bytes.Repeat([]byte("k"), hold.KeySize))
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}

	return key, nil
}

// ServerTime returns own: there is one clock.
func (*view) ServerTime(own time.Time) time.Time { return own }

// ReturnStatus writes the missing fields of a held object's status, as internal/adopter does.
func (v *view) ReturnStatus(_ context.Context, key hold.Key, r xp.Ref, status map[string]any) error {
	u := v.objects[r.ID()]
	if u == nil {
		return nil
	}
	h, err := key.HoldOf(u)
	if err != nil || h == nil || h.Clone != "" || h.Unpaused != "" || !xp.IsPaused(u) {
		return nil //nolint:nilerr // It is not held.
	}
	for _, name := range xp.MissingStatus(u, h.Status) {
		if value, ok := status[name]; ok {
			if err := unstructured.SetNestedField(u.Object, value, "status", name); err != nil {
				return fmt.Errorf("cannot set the status of %s: %w", r, err)
			}
		}
	}

	return nil
}

// Terminating returns the XRD of a kind if it is being deleted, nil otherwise.
func (v *view) Terminating(_ context.Context, gk schema.GroupKind) (*unstructured.Unstructured, error) {
	for id, u := range v.objects {
		if id.Kind == xrd.Kind && id.Group == xrd.Group && u.GetDeletionTimestamp() != nil && xp.Defines(u, gk) {
			return u, nil
		}
	}

	return nil, nil //nolint:nilnil // None is an answer.
}

// copies returns a copy of each object.
func (c *Cluster) copies() map[xp.ID]*unstructured.Unstructured {
	all := map[xp.ID]*unstructured.Unstructured{}
	for id, u := range c.objects {
		all[id] = u.DeepCopy()
	}

	return all
}

// ReturnManagers does nothing: no restore stops halfway here, and no object keeps managedFields.
func (*view) ReturnManagers(context.Context, *unstructured.Unstructured, xp.Ref) error { return nil }

// ConfigMap returns nothing: no Restore names one.
func (*view) ConfigMap(context.Context, string, string) (map[string]string, error) {
	return nil, nil //nolint:nilnil // There is none.
}

// Restore returns an empty Restore: there are no default resource modifiers.
func (*view) Restore(context.Context, string, string) (*unstructured.Unstructured, error) {
	return &unstructured.Unstructured{}, nil
}

// TakeOver does nothing: no other writer creates objects here.
func (*view) TakeOver(
	context.Context, hold.Key, *unstructured.Unstructured, xp.Ref, hold.Hold, map[string]string,
) (*unstructured.Unstructured, error) {
	return nil, nil //nolint:nilnil // Nothing is taken over.
}

// CanTakeOver returns false: no other writer creates objects here.
func (*view) CanTakeOver(context.Context, xp.Ref) (bool, error) { return false, nil }
