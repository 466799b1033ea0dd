package live

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Composing returns the XRs of a kind that name the Composition, and for which adoption.Key.Composes
// is true. It lists the kind each time.
func (c *Cluster) Composing(ctx context.Context, key adoption.Key, gvk schema.GroupVersionKind, composition string) ([]xp.Ref, error) {
	var composing []xp.Ref
	err := c.Each(ctx, gvk, "", metav1.ListOptions{}, func(u *unstructured.Unstructured) {
		if xp.CompositeFrom(u).Composition() == composition && key.Composes(u) {
			composing = append(composing, xp.RefTo(u))
		}
	})
	if isUnserved(err) {
		err = nil
	}

	return composing, err
}
