package live

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Standby returns the object that r names as one to refresh; nil if it is none. It lists each kind
// once and caches the result. Marks count if the key signed them.
func (c *Cluster) Standby(ctx context.Context, key adoption.Key, r xp.Ref) (*adoption.Standby, error) {
	all, err := c.standbysOf(ctx, key, r.GroupVersionKind())
	if s, ok := all[r.ID()]; err == nil && ok {
		return &s, nil
	}

	return nil, err
}

func (c *Cluster) standbysOf(ctx context.Context, key adoption.Key, gvk schema.GroupVersionKind) (map[xp.ID]adoption.Standby, error) {
	c.mu.Lock()
	all, ok := c.standbys[gvk.GroupKind()]
	c.mu.Unlock()
	if ok {
		return all, nil
	}
	if err := c.conversionError(gvk); err != nil {
		return nil, err
	}
	all = map[xp.ID]adoption.Standby{}
	err := c.Each(ctx, gvk, "", metav1.ListOptions{}, func(u *unstructured.Unstructured) {
		if s, ok := key.StandbyOf(u); ok {
			all[xp.RefTo(u).ID()] = s
		}
	})
	if err != nil && !isUnserved(err) {
		return nil, c.recordUnreadable(gvk, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.standbys[gvk.GroupKind()] = all

	return all, nil
}

// Refresh gives an object in quarantine what a newer backup brings, unless it left the quarantine
// meanwhile: then it returns false. If the content is the same and no other writer has changed the
// object, it writes only the mark and the labels.
func (c *Cluster) Refresh(ctx context.Context, key adoption.Key, s adoption.Standby, of adoption.Refresh) (bool, error) {
	r := xp.RefTo(of.Object)
	for {
		after, err := c.refresh(ctx, key, s, of)
		switch {
		case apierrors.IsConflict(err): // A controller has reported the pause since the kind was listed.
			u, err := c.Get(ctx, r)
			if isUnserved(err) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			now, ok := key.StandbyOf(u)
			if !ok || now.UID != s.UID {
				return false, nil
			}
			s = now
		case isUnserved(err):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("cannot refresh %s: %w", r, err)
		default:
			return true, c.keepOwner(after, r)
		}
	}
}

// refresh makes one attempt, for the version in s. It returns the new object. Only its last write
// records the content, so an attempt that was stopped is repeated.
func (c *Cluster) refresh(ctx context.Context, key adoption.Key, s adoption.Standby, of adoption.Refresh) (*unstructured.Unstructured, error) {
	gvr, _, err := c.Resource(of.Object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	objects := c.client.Resource(gvr).Namespace(of.Object.GetNamespace())
	options := metav1.PatchOptions{FieldManager: FieldManager}
	if s.Content == of.Content && s.ChangedBy == "" {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": s.UID, "resourceVersion": s.Version, "labels": of.Labels,
			"annotations": map[string]any{adoption.AnnotationHold: xp.Annotation(of.Object, adoption.AnnotationHold)},
		}})
		if err != nil {
			return nil, fmt.Errorf("cannot encode the mark of %s: %w", xp.String(of.Object), err)
		}

		return objects.Patch(ctx, of.Object.GetName(), types.MergePatchType, patch, options) //nolint:wrapcheck // The caller wraps it.
	}
	u, err := key.WithoutContent(of.Object)
	if err != nil {
		return nil, err
	}
	u.SetUID(s.UID)
	u.SetResourceVersion(s.Version)
	labels := maps.Clone(u.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, of.Labels)
	u.SetLabels(labels)
	after, err := objects.Update(ctx, u, metav1.UpdateOptions{FieldManager: FieldManager})
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller wraps it.
	}
	if len(of.Status) > 0 {
		if after, err = c.refreshStatus(ctx, after, of.Status); err != nil {
			return nil, err
		}
	}

	// Velero writes managedFields after it has created an object, too (velero
	// pkg/restore/restore.go, restoreItem).
	patch, err := json.Marshal(adoption.Refreshed(after, of.Object))
	if err != nil {
		return nil, fmt.Errorf("cannot encode the field managers of %s: %w", xp.String(of.Object), err)
	}

	return objects.Patch(ctx, u.GetName(), types.MergePatchType, patch, options) //nolint:wrapcheck // The caller wraps it.
}

// refreshStatus replaces fields of the status.
func (c *Cluster) refreshStatus(ctx context.Context, u *unstructured.Unstructured, status map[string]any) (*unstructured.Unstructured, error) {
	gvr, _, err := c.Resource(u.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	now, _, _ := unstructured.NestedMap(u.Object, "status")
	if now == nil {
		now = map[string]any{}
	}
	maps.Copy(now, status)
	next := u.DeepCopy()
	next.Object["status"] = now
	after, err := c.client.Resource(gvr).Namespace(u.GetNamespace()).UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: FieldManager})
	if apierrors.IsNotFound(err) {
		return u, nil // The kind has no subresource for the status, and Update has written it.
	}
	if err != nil {
		return nil, fmt.Errorf("cannot write the status: %w", err)
	}
	if p, ok := adoption.ReturnedStatus(u, after, status); ok {
		return c.applyChange(ctx, adoption.Change{Target: after, Patch: p})
	}

	return after, nil
}

// EndHandover removes the record of the handover that u belongs to.
func (c *Cluster) EndHandover(ctx context.Context, velero string, u *unstructured.Unstructured) error {
	all, err := c.Handovers(ctx, velero)
	if err != nil {
		return err
	}
	for _, namespace := range []string{u.GetNamespace(), ""} {
		if _, ok := all[namespace]; !ok {
			continue
		}
		if err := c.RecordHandover(ctx, velero, namespace, nil); err != nil {
			return err
		}
	}

	return nil
}
