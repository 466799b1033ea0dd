package live

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Patch applies a merge patch to the observed version of the object. It returns the new object,
// trimmed.
func (c *Cluster) Patch(ctx context.Context, u *unstructured.Unstructured, patch map[string]any) (*unstructured.Unstructured, error) {
	after, err := c.applyChange(ctx, adoption.Change{Target: u, Patch: patch})

	return trim(after), err
}

// ApplyChange applies a change and returns the new object, trimmed to what planning reads. If the
// new object has no mark, this plugin's field manager gives up all its fields. It keeps them if
// another writer has removed a mark that the change has just written: then managedFields alone
// prove whose the pause is.
func (c *Cluster) ApplyChange(ctx context.Context, change adoption.Change) (*unstructured.Unstructured, error) {
	after, err := c.applyChange(ctx, change)
	if err != nil || change.Marks() || xp.HasAnnotation(after, adoption.AnnotationHold) {
		return trim(after), err
	}
	if p, ok := adoption.WithoutOwn(after); ok {
		// No step depends on it, and another writer may have changed the object meanwhile.
		if without, err := c.applyChange(ctx, adoption.Change{Target: after, Patch: p}); err == nil {
			after = without
		}
	}

	return trim(after), nil
}

// applyChange applies a change, server-side if possible, and returns the new object.
func (c *Cluster) applyChange(ctx context.Context, change adoption.Change) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(change.Patch)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the patch of %s: %w", xp.String(change.Target), err)
	}
	options := metav1.PatchOptions{FieldManager: cmp.Or(change.Manager, FieldManager)}
	configuration := change.Configuration
	if configuration == nil {
		configuration, _ = change.Applied()
	}
	if configuration != nil {
		after, err := c.apply(ctx, change.Target, configuration, patch)
		switch {
		case err == nil && isDone(patch, after), err != nil && !isInapplicable(err):
			return after, err
		case err == nil: // A default of the API server differs from what the patch wants.
			if patch, err = withResourceVersion(after, patch); err != nil {
				return nil, err
			}
		}
	}

	return c.patchAs(ctx, change.Target, types.MergePatchType, patch, patch, options)
}

// apply applies a configuration server-side with force, and returns the new object. merge is the
// merge patch with the same effect.
func (c *Cluster) apply(ctx context.Context, u *unstructured.Unstructured, configuration map[string]any, merge []byte) (*unstructured.Unstructured, error) {
	b, err := json.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("cannot encode what is to be applied to %s: %w", xp.String(u), err)
	}

	return c.patchAs(ctx, u, types.ApplyPatchType, b, merge, metav1.PatchOptions{FieldManager: FieldManager, Force: new(true)})
}

// withResourceVersion adds the object's resourceVersion to the patch as its precondition.
func withResourceVersion(u *unstructured.Unstructured, patch []byte) ([]byte, error) {
	now, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": u.GetResourceVersion()}})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the version of %s: %w", xp.String(u), err)
	}
	patch, err = jsonpatch.MergeMergePatches(patch, now)
	if err != nil {
		return nil, fmt.Errorf("cannot make a patch of %s: %w", xp.String(u), err)
	}

	return patch, nil
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
	gvr, _, err := c.Resource(u.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	objects := c.client.Resource(gvr).Namespace(u.GetNamespace())
	var after *unstructured.Unstructured
	tries := 0
	err = c.withFewRetries(func() error {
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
