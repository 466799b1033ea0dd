package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/retry"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Patch applies a merge patch to the observed version of the object. It returns the new object,
// trimmed.
func (c *Cluster) Patch(ctx context.Context, u *unstructured.Unstructured, patch map[string]any) (*unstructured.Unstructured, error) {
	after, err := c.Apply(ctx, hold.Change{Target: u, Patch: patch})

	return Trim(after), err
}

// ApplyChange applies a change and returns the new object, trimmed to what planning reads. If the
// new object has no mark, this plugin's field manager gives up all its fields. It keeps them if
// another writer has removed a mark that the change has just written: then managedFields alone
// prove whose the pause is.
func (c *Cluster) ApplyChange(ctx context.Context, change hold.Change) (*unstructured.Unstructured, error) {
	after, err := c.Apply(ctx, change)
	if err != nil || change.Marks() || xp.HasAnnotation(after, hold.Annotation) {
		return Trim(after), err
	}
	if p, ok := hold.WithoutOwn(after); ok {
		// No step depends on it, and another writer may have changed the object meanwhile.
		if without, err := c.Apply(ctx, hold.Change{Target: after, Patch: p}); err == nil {
			after = without
		}
	}

	return Trim(after), nil
}

// ChangeNow reads the object that r names and calls change with it, again after a conflict. It does
// nothing if there is no such object.
func (c *Cluster) ChangeNow(ctx context.Context, r xp.Ref, change func(u *unstructured.Unstructured) error) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		u, err := c.Get(ctx, r)
		if err != nil {
			return IgnoreUnserved(err)
		}

		return change(u)
	})
}

// ChangeSeen calls change with an observed object, and after a conflict with the object as it is
// then, so that nothing is undone of what another writer did. It returns the new object.
func (c *Cluster) ChangeSeen(
	ctx context.Context, u *unstructured.Unstructured, change func(u *unstructured.Unstructured) (*unstructured.Unstructured, error),
) (*unstructured.Unstructured, error) {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		after, err := change(u)
		if err == nil {
			u = after
		}
		if apierrors.IsConflict(err) {
			now, readErr := c.Now(ctx, xp.RefTo(u))
			if readErr != nil {
				return readErr
			}
			u = now
		}

		return err
	})

	return u, err
}

// PatchSeen is ChangeSeen with a merge patch, if one is needed.
func (c *Cluster) PatchSeen(
	ctx context.Context, u *unstructured.Unstructured, patch func(*unstructured.Unstructured) (p map[string]any, needed bool),
) (*unstructured.Unstructured, error) {
	return c.ChangeSeen(ctx, u, func(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		p, needed := patch(u)
		if !needed {
			return u, nil
		}

		return c.Patch(ctx, u, p)
	})
}

// PatchStatus sets fields of the status of the observed version of the object. It returns the new
// object.
func (c *Cluster) PatchStatus(ctx context.Context, u *unstructured.Unstructured, fields map[string]any) (*unstructured.Unstructured, error) {
	objects, err := c.objects(u.GroupVersionKind(), u.GetNamespace())
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": u.GetResourceVersion()}, "status": fields})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the status of %s: %w", xp.String(u), err)
	}
	after, err := objects.Patch(ctx, u.GetName(), types.MergePatchType, b, metav1.PatchOptions{FieldManager: FieldManager}, "status")
	if err != nil {
		return nil, fmt.Errorf("cannot patch the status of %s: %w", xp.String(u), err)
	}

	return after, nil
}

// Apply applies a change, server-side if possible, and returns the new object, whole. Unlike
// ApplyChange it gives up no fields.
func (c *Cluster) Apply(ctx context.Context, change hold.Change) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(change.Patch)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the patch of %s: %w", xp.String(change.Target), err)
	}
	configuration := change.Configuration
	if configuration == nil {
		configuration, _ = change.Applied()
	}
	if configuration != nil {
		b, err := json.Marshal(configuration)
		if err != nil {
			return nil, fmt.Errorf("cannot encode what is to be applied to %s: %w", xp.String(change.Target), err)
		}
		after, err := c.patchAs(ctx, change.Target, types.ApplyPatchType, b, patch, metav1.PatchOptions{FieldManager: FieldManager, Force: new(true)})
		switch {
		case err == nil && isDone(patch, after), err != nil && !isInapplicable(err):
			return after, err
		case err == nil: // A default of the API server differs from what the patch wants.
			version := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q}}`, after.GetResourceVersion())
			if patch, err = jsonpatch.MergeMergePatches(patch, version); err != nil {
				return nil, fmt.Errorf("cannot make a patch of %s: %w", xp.String(change.Target), err)
			}
		}
	}

	return c.patchAs(ctx, change.Target, types.MergePatchType, patch, patch, metav1.PatchOptions{FieldManager: cmp.Or(change.Manager, FieldManager)})
}

// isInapplicable reports whether the API server can't apply a configuration that it may be able to
// patch: the object violates its schema, or its kind has none.
func isInapplicable(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsUnsupportedMediaType(err)
}

// patchAs sends a patch that has the effect of the given merge patch, and returns the new object.
func (c *Cluster) patchAs(
	ctx context.Context, u *unstructured.Unstructured, of types.PatchType, patch, merge []byte, options metav1.PatchOptions,
) (*unstructured.Unstructured, error) {
	objects, err := c.objects(u.GroupVersionKind(), u.GetNamespace())
	if err != nil {
		return nil, err
	}
	var after *unstructured.Unstructured
	tries := 0
	err = c.WithFewRetries(func() error {
		tries++
		got, err := objects.Patch(ctx, u.GetName(), of, patch, options)
		if err != nil {
			return fmt.Errorf("cannot patch %s: %w", xp.String(u), err)
		}
		after = got

		return nil
	})
	if tries > 1 && apierrors.IsConflict(err) {
		// The API server may have applied the patch although its answer was lost.
		if now, readErr := c.Now(ctx, xp.RefTo(u)); readErr == nil && isDone(merge, now) {
			return now, nil
		}
	}

	return after, err
}

// isDone reports whether an object, in any version, already has what a merge patch sets.
func isDone(patch []byte, u *unstructured.Unstructured) bool {
	var wanted map[string]any
	if err := utiljson.Unmarshal(patch, &wanted); err != nil {
		return false
	}
	unstructured.RemoveNestedField(wanted, "metadata", "resourceVersion")

	return isNoOp(wanted, u.Object)
}

// Convert makes the API server convert an object to the storage version of its kind, with a dry run
// that creates it in the namespace. It fails only if the conversion fails or times out.
func (c *Cluster) Convert(ctx context.Context, u *unstructured.Unstructured, namespace string) error {
	gvr, namespaced, err := c.Resource(u.GroupVersionKind())
	if err != nil {
		return nil // The create request returns this error.
	}
	if !namespaced {
		namespace = ""
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	began := time.Now()
	_, err = c.client.Resource(gvr).Namespace(namespace).Create(ctx, creatable(u, namespace), metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: FieldManager,
	})
	switch {
	case xp.IsConversion(err):
		return err //nolint:wrapcheck // The caller adds the object.
	case isTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("there was no answer for %s", time.Since(began).Round(time.Second))
	default:
		return nil
	}
}

// creatable returns the part of a backed-up object that can be created.
func creatable(u *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	object := maps.Clone(u.Object)
	delete(object, "status")
	object["metadata"] = map[string]any{}
	b := &unstructured.Unstructured{Object: object}
	b.SetName(u.GetName())
	b.SetNamespace(namespace)
	b.SetLabels(u.GetLabels())
	b.SetAnnotations(u.GetAnnotations())

	return b
}
