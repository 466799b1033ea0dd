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

// Patch carries out a merge patch on the object as it was observed, and returns what planning reads
// of it as it is then.
func (c *Cluster) Patch(ctx context.Context, u *unstructured.Unstructured, patch map[string]any) (*unstructured.Unstructured, error) {
	after, err := c.applyChange(ctx, adoption.Change{Target: u, Patch: patch})

	return trim(after), err
}

// ApplyChange carries a change out, and returns what planning reads of the object as it is then. Of what
// has no mark then this plugin manages nothing more, unless somebody has taken off the one that it
// has just written: then that it manages the pause is what tells whose that is.
func (c *Cluster) ApplyChange(ctx context.Context, change adoption.Change) (*unstructured.Unstructured, error) {
	after, err := c.applyChange(ctx, change)
	if err != nil || change.Marks() || xp.HasAnnotation(after, adoption.AnnotationHold) {
		return trim(after), err
	}
	if p, ok := adoption.WithoutOwn(after); ok {
		// Nothing waits for it, and somebody may have written the object meanwhile.
		if without, err := c.applyChange(ctx, adoption.Change{Target: after, Patch: p}); err == nil {
			after = without
		}
	}

	return trim(after), nil
}

// applyChange carries a change out, and returns the object as it is then: as one that is applied
// server-side, if it can be that.
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
		case err == nil: // What the API server has by default is something else here.
			if patch, err = withResourceVersion(after, patch); err != nil {
				return nil, err
			}
		}
	}

	return c.patchAs(ctx, change.Target, types.MergePatchType, patch, patch, options)
}

// apply applies a configuration server-side with force, which does what a merge patch would, and
// returns the object as it is then.
func (c *Cluster) apply(ctx context.Context, u *unstructured.Unstructured, configuration map[string]any, merge []byte) (*unstructured.Unstructured, error) {
	b, err := json.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("cannot encode what is to be applied to %s: %w", xp.String(u), err)
	}

	return c.patchAs(ctx, u, types.ApplyPatchType, b, merge, metav1.PatchOptions{FieldManager: FieldManager, Force: new(true)})
}

// withResourceVersion returns a merge patch for an object as it is now.
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

// isInapplicable reports whether an API server can't apply something server-side that it may be
// able to patch: the object is not what its schema says, or it has none.
func isInapplicable(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsUnsupportedMediaType(err)
}

// patchAs carries out a patch that does what a merge patch would, and returns the object as it is
// then.
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
		// It may have been carried out when there was no answer.
		if now, readErr := c.Now(ctx, xp.RefTo(u)); readErr == nil && isDone(merge, now) {
			return now, nil
		}
	}

	return after, err
}

// isDone reports whether an object is as a merge patch makes it, whatever version of it that was
// for.
func isDone(patch []byte, u *unstructured.Unstructured) bool {
	var wanted map[string]any
	if err := utiljson.Unmarshal(patch, &wanted); err != nil {
		return false
	}
	unstructured.RemoveNestedField(wanted, "metadata", "resourceVersion")

	return isNoOp(wanted, u.Object)
}
