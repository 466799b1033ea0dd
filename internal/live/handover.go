package live

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// HandoverConfigMap is the name of the ConfigMap in Velero's namespace that records which namespaces
// the command hold holds for a handover. A backup needs it: an object that was created since is in
// the scope and has no mark.
const HandoverConfigMap = FieldManager + "-handover"

// wholeCluster is the key of the whole cluster in the ConfigMap. No namespace can have this name.
const wholeCluster = "_cluster"

// Handovers reads the record of the handovers in this cluster; it is empty if there is none. Its
// errors are those of Get.
func (c *Cluster) Handovers(ctx context.Context, velero string) (adoption.Handovers, error) {
	data, err := c.ConfigMap(ctx, velero, HandoverConfigMap)
	if isUnserved(err) {
		return adoption.Handovers{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the record of handovers: %w", err)
	}
	all := adoption.Handovers{}
	for key, value := range data {
		if key == wholeCluster {
			key = ""
		}
		var h adoption.Handover
		if err := json.Unmarshal([]byte(value), &h); err != nil {
			return nil, fmt.Errorf("cannot read the entry %s of the ConfigMap %s/%s: %w", key, velero, HandoverConfigMap, err)
		}
		all[key] = h
	}

	return all, nil
}

// RecordHandover records a handover of a namespace, or of the whole cluster if that is "". It keeps
// the entries of others. nil removes the entry.
func (c *Cluster) RecordHandover(ctx context.Context, velero, namespace string, h *adoption.Handover) error {
	key, entry := namespace, any(nil)
	if key == "" {
		key = wholeCluster
	}
	if h != nil {
		b, err := json.Marshal(h)
		if err != nil {
			return fmt.Errorf("cannot encode the record of a handover: %w", err)
		}
		entry = string(b)
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]any{key: entry}})
	if err != nil {
		return fmt.Errorf("cannot encode the record of a handover: %w", err)
	}
	configMaps := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(velero)
	err = c.withRetry(ctx.Done(), apiServerName, func() error {
		_, err := configMaps.Patch(ctx, HandoverConfigMap, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
		if apierrors.IsNotFound(err) && h != nil {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{key: entry}}}
			u.SetName(HandoverConfigMap)
			u.SetNamespace(velero)
			u.SetLabels(map[string]string{labelExclude: "true", "app.kubernetes.io/managed-by": FieldManager})
			_, err = configMaps.Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager})
		}
		if apierrors.IsNotFound(err) && h == nil {
			return nil
		}

		return err //nolint:wrapcheck // It is wrapped below.
	})
	if err != nil {
		return fmt.Errorf("cannot record the handover in the ConfigMap %s/%s: %w", velero, HandoverConfigMap, err)
	}

	return nil
}

// UID returns the UID of the namespace kube-system, which identifies the cluster. It reads it once.
func (c *Cluster) UID(ctx context.Context) (string, error) {
	c.mu.Lock()
	uid := c.uid
	c.mu.Unlock()
	if uid != "" {
		return uid, nil
	}
	u, err := c.Get(ctx, xp.Ref{APIVersion: "v1", Kind: "Namespace", Name: metav1.NamespaceSystem})
	if err != nil {
		return "", fmt.Errorf("cannot find out which cluster this is: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uid = string(u.GetUID())

	return c.uid, nil
}

// HandOver holds live objects for a handover, some at a time, and returns the changes that it made.
// It reads an object again that another writer has changed meanwhile.
func (a *Adopter) HandOver(ctx context.Context, key adoption.Key, objects []*unstructured.Unstructured) error {
	errs := make([]error, len(objects))
	a.inParallel(len(objects), func(n int) {
		if errs[n] = ctx.Err(); errs[n] == nil {
			errs[n] = a.handOver(ctx, key, objects[n])
		}
	})
	if n := slices.IndexFunc(errs, func(err error) bool { return err != nil }); n >= 0 {
		return errs[n]
	}

	return nil
}

func (a *Adopter) handOver(ctx context.Context, key adoption.Key, u *unstructured.Unstructured) error {
	change, _ := key.HandOver(u, a.cluster.serverNow())
	if change.Patch == nil {
		return nil
	}
	_, err := a.cluster.applyChange(ctx, change)
	switch {
	case apierrors.IsConflict(err), isUnserved(err):
		return nil // Another writer has changed or deleted it. The next look finds out.
	case err != nil:
		return fmt.Errorf("cannot hold %s: %w", xp.String(u), err)
	}
	a.onStepMu.Lock()
	defer a.onStepMu.Unlock()
	a.onStep(change)

	return nil
}

// Retire removes a held object from this cluster without its controllers: it takes the finalizers
// off and deletes it, if nobody has changed it since it was read. An XR leaves behind what it
// composed that is not deleted itself.
func (c *Cluster) Retire(ctx context.Context, u *unstructured.Unstructured) error {
	version := u.GetResourceVersion()
	if len(u.GetFinalizers()) > 0 {
		after, err := c.applyChange(ctx, adoption.Change{Target: u, Patch: map[string]any{
			"metadata": map[string]any{"resourceVersion": u.GetResourceVersion(), "finalizers": nil},
		}})
		if isUnserved(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot take the finalizers of %s off: %w", xp.String(u), err)
		}
		version = after.GetResourceVersion()
	}

	return c.remove(ctx, u, version) // The finalizer can be all that shows an XR.
}

// remove deletes the object if it still has the same UID and the given resourceVersion; "" is any.
// An XR orphans what it composes.
func (c *Cluster) remove(ctx context.Context, u *unstructured.Unstructured, version string) error {
	gvr, _, err := c.Resource(u.GroupVersionKind())
	if err != nil {
		return err
	}
	uid, propagation := u.GetUID(), metav1.DeletePropagationBackground
	if xp.IsComposite(u) {
		propagation = metav1.DeletePropagationOrphan
	}
	conditions := &metav1.Preconditions{UID: &uid}
	if version != "" {
		conditions.ResourceVersion = &version
	}
	err = c.client.Resource(gvr).Namespace(u.GetNamespace()).Delete(ctx, u.GetName(), metav1.DeleteOptions{
		Preconditions: conditions, PropagationPolicy: &propagation,
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot delete %s: %w", xp.String(u), err)
	}

	return nil
}
