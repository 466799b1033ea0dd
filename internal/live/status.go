package live

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// ReturnStatus writes the status fields that the object named by r is held for and lacks. It does
// nothing to an object that does not exist, has no mark signed with the key, or was released.
func (c *Cluster) ReturnStatus(ctx context.Context, key adoption.Key, r xp.Ref, status map[string]any) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		u, err := c.Get(ctx, r)
		if isUnserved(err) {
			return nil
		}
		if err != nil {
			return err
		}
		h, err := key.HoldOf(u)
		if err != nil || h == nil || h.Clone != "" || h.Unpaused != "" || !xp.IsPaused(u) {
			return nil //nolint:nilerr // The operation reports a mark that can't be read.
		}
		fields := xp.LackingStatus(u, h.Status, status)
		if len(fields) == 0 {
			return nil
		}
		gvr, _, err := c.Resource(u.GroupVersionKind())
		if err != nil {
			return err
		}
		b, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": u.GetResourceVersion()}, "status": fields})
		if err != nil {
			return fmt.Errorf("cannot encode the status of %s: %w", xp.String(u), err)
		}
		options := metav1.PatchOptions{FieldManager: FieldManager}
		after, err := c.client.Resource(gvr).Namespace(u.GetNamespace()).Patch(ctx, u.GetName(), types.MergePatchType, b, options, "status")
		if err != nil {
			return fmt.Errorf("cannot patch the status of %s: %w", xp.String(u), err)
		}
		if p, ok := adoption.ReturnedStatus(u, after, fields); ok {
			_, err = c.Patch(ctx, after, p)
		}

		return err
	})
}

// ReturnManagers writes back the managedFields of an object that a restore has created, if the
// restore stopped before it did. item is what Velero would create now, and r is its reference. It
// lists what restores have created of the kind once, and reads only objects that need it.
func (c *Cluster) ReturnManagers(ctx context.Context, item *unstructured.Unstructured, r xp.Ref) error {
	b, err := c.restoredIndexOf(ctx, r.GroupVersionKind())
	if err != nil || !b.strays[r.ID()] {
		return err
	}

	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		u, err := c.Get(ctx, r)
		if isUnserved(err) {
			return nil
		}
		if err != nil {
			return err
		}
		p, ok := adoption.ReturnManagers(u, item)
		if !ok {
			return nil
		}
		_, err = c.Patch(ctx, u, p)

		return err
	})
}
