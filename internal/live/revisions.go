package live

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/retry"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// RaiseRevision keeps the newest revision of a live Composition the newest when revision is
// restored beside it. Crossplane takes the highest number for the newest and does not resolve a tie
// (crossplane internal/controller/apiextensions/composition, LatestRevision). A restored revision
// with the same number could therefore become the one that every XR with the policy Automatic
// follows, now or after a restart. RaiseRevision gives the Composition's newest revision a higher
// number, as Crossplane does when it finds that the revision is not the newest. It ignores a
// Composition without revisions.
func (c *Cluster) RaiseRevision(ctx context.Context, revision *unstructured.Unstructured) error {
	return c.withRetry(ctx.Done(), apiServerName, func() error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error { return c.raiseRevision(ctx, revision) })
	})
}

func (c *Cluster) raiseRevision(ctx context.Context, revision *unstructured.Unstructured) error {
	composition := revision.GetLabels()[xp.LabelCompositionName]
	number, _, err := unstructured.NestedInt64(revision.Object, "spec", "revision")
	if err != nil {
		return fmt.Errorf("cannot read the number of %s: %w", xp.String(revision), err)
	}
	list, err := c.List(ctx, revision.GroupVersionKind(), "", metav1.ListOptions{LabelSelector: labels.Set{xp.LabelCompositionName: composition}.String()})
	if err != nil {
		return fmt.Errorf("cannot find the revisions of Composition %s: %w", composition, err)
	}
	var newest *unstructured.Unstructured
	highest := int64(0)
	for _, live := range list {
		if live.GetName() == revision.GetName() {
			return nil // It is live, so Velero does not change it.
		}
		// XRs follow only a revision that its Composition controls.
		if _, ok := xp.Controller(live); !ok {
			continue
		}
		if n, _, _ := unstructured.NestedInt64(live.Object, "spec", "revision"); newest == nil || n > highest {
			newest, highest = live, n
		}
	}
	if newest == nil || highest > number {
		return nil
	}
	_, err = c.Patch(ctx, newest, map[string]any{
		"metadata": map[string]any{"resourceVersion": newest.GetResourceVersion()},
		"spec":     map[string]any{"revision": number + 1},
	})

	return err
}
