package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/exchange"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// exchangeManager is the field manager of an exchange. A pause by FieldManager would be a hold.
const exchangeManager = FieldManager + "-exchange"

// Find returns the object that r names, in any served version; nil if it does not exist.
func (c *Cluster) Find(ctx context.Context, r xp.Ref) (*unstructured.Unstructured, error) {
	u, err := c.Now(ctx, r)
	if isUnserved(err) {
		gvk, ok, served := c.Served(r.GroupVersionKind().GroupKind())
		if served != nil || !ok || gvk == r.GroupVersionKind() {
			return nil, served
		}
		r.APIVersion = gvk.GroupVersion().String()
		u, err = c.Now(ctx, r)
	}
	if isUnserved(err) {
		return nil, nil //nolint:nilnil // nil means that it does not exist.
	}

	return u, err
}

// Tree returns a live XR or claim with all that is below it.
func (c *Cluster) Tree(ctx context.Context, root *unstructured.Unstructured) (exchange.Tree, error) {
	return exchange.Walk(root, func(refs []xp.Ref) (map[xp.ID]*unstructured.Unstructured, error) { return c.FindAll(ctx, refs) })
}

// maxByName is how many objects of a kind and namespace are read one by one. More are listed.
const maxByName = 10

// FindAll is Find for many refs; the result has no entry for an object that does not exist.
func (c *Cluster) FindAll(ctx context.Context, refs []xp.Ref) (map[xp.ID]*unstructured.Unstructured, error) {
	type eventKey struct {
		schema.GroupKind

		namespace string
	}
	places := map[eventKey][]xp.Ref{}
	for _, r := range refs {
		p := eventKey{GroupKind: r.GroupVersionKind().GroupKind(), namespace: r.Namespace}
		places[p] = append(places[p], r)
	}
	found := map[xp.ID]*unstructured.Unstructured{}
	for p, some := range places {
		if len(some) > maxByName {
			if err := c.findIn(ctx, p.GroupKind, p.namespace, some, found); err != nil {
				return nil, err
			}

			continue
		}
		for _, r := range some {
			u, err := c.Find(ctx, r)
			if err != nil {
				return nil, err
			}
			if u != nil {
				found[r.ID()] = u
			}
		}
	}

	return found, nil
}

// findIn adds to found the existing objects of refs, which are of one kind and namespace.
func (c *Cluster) findIn(ctx context.Context, gk schema.GroupKind, namespace string, refs []xp.Ref, found map[xp.ID]*unstructured.Unstructured) error {
	gvk, ok, err := c.Served(gk)
	if err != nil || !ok {
		return err
	}
	wanted := map[xp.ID]bool{}
	for _, r := range refs {
		wanted[r.ID()] = true
	}
	err = c.Each(ctx, gvk, namespace, metav1.ListOptions{}, func(u *unstructured.Unstructured) {
		if id := xp.RefTo(u).ID(); wanted[id] {
			found[id] = u
		}
	})
	if isUnserved(err) {
		return nil
	}

	return err
}

// OfKinds returns all objects of the kinds of the given objects.
func (c *Cluster) OfKinds(ctx context.Context, some []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, u := range some {
		kinds[u.GroupVersionKind()] = true
	}
	var all []*unstructured.Unstructured
	for gvk := range maps.Keys(kinds) {
		found, err := c.List(ctx, gvk, "", metav1.ListOptions{})
		if err != nil && !isUnserved(err) {
			return nil, err
		}
		all = append(all, found...)
	}

	return all, nil
}

// SetExchanged pauses an object and marks it as exchanged, or removes both.
func (c *Cluster) SetExchanged(ctx context.Context, u *unstructured.Unstructured, on bool) error {
	annotations := map[string]any{xp.AnnotationPaused: nil, xp.AnnotationExchange: nil}
	if on {
		annotations = map[string]any{xp.AnnotationPaused: "true", xp.AnnotationExchange: c.now().UTC().Format(time.RFC3339)}
	}
	_, err := c.patchOf(ctx, u, map[string]any{"metadata": map[string]any{"annotations": annotations}})

	return err
}

// patchOf applies a merge patch if the object still has the same UID, whatever its version.
func (c *Cluster) patchOf(ctx context.Context, u *unstructured.Unstructured, patch map[string]any) (*unstructured.Unstructured, error) {
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	metadata["uid"] = string(u.GetUID())

	return c.applyChange(ctx, adoption.Change{Target: u, Patch: patch, Manager: exchangeManager})
}

// KeepExternal patches an MR so that its external resource stays when the MR is deleted.
func (c *Cluster) KeepExternal(ctx context.Context, mr *unstructured.Unstructured) error {
	patch, ok := exchange.Keep(mr)
	if !ok {
		return fmt.Errorf("cannot have the external resource of %s stay: its kind has neither managementPolicies nor a deletionPolicy", xp.String(mr))
	}
	after, err := c.patchOf(ctx, mr, patch)
	if err != nil {
		return err
	}
	if exchange.Deletes(after) {
		return fmt.Errorf("cannot have the external resource of %s stay: the API server does not take its policies", xp.String(mr))
	}

	return nil
}

// IsKept reports whether an exchange has patched an MR so that its external resource stays.
func IsKept(mr *unstructured.Unstructured) bool {
	return slices.ContainsFunc(mr.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool { return m.Manager == exchangeManager })
}

// Remove deletes the object if it still has the same UID. The composed resources of an XR that are
// to be deleted are gone by then. An XR orphans the others.
func (c *Cluster) Remove(ctx context.Context, u *unstructured.Unstructured) error {
	return c.remove(ctx, u, "")
}

// remove is Remove, if the object still has the given resourceVersion; "" for any.
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

// Empty removes an XR's or claim's references to composed resources, all of which are gone, if no
// other writer has changed the object. The next restore then gives it the composed resources of the
// backup.
func (c *Cluster) Empty(ctx context.Context, root *unstructured.Unstructured) error {
	field := "resourceRefs"
	if xp.IsClaim(root) {
		field = "resourceRef"
	}
	patch := xp.Instance{Unstructured: root}.Field(field, nil)
	patch["metadata"] = map[string]any{"resourceVersion": root.GetResourceVersion()}
	_, err := c.patchOf(ctx, root, patch)

	return err
}
