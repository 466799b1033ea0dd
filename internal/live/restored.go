package live

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A restoredIndex lists the objects of a kind that restores have created. It is made once.
type restoredIndex struct {
	// strays are the objects for which adoption.IsStray is true.
	strays map[xp.ID]bool
	// named are the namespaced MRs by external-name.
	named map[string][]xp.Managing
}

// Moved returns the namespaced MRs of a kind that restores had created and that have the
// external-name. It lists each kind once and caches the result.
func (c *Cluster) Moved(ctx context.Context, gvk schema.GroupVersionKind, externalName string) ([]xp.Managing, error) {
	b, err := c.restoredIndexOf(ctx, gvk)

	return b.named[externalName], err
}

func (c *Cluster) restoredIndexOf(ctx context.Context, gvk schema.GroupVersionKind) (restoredIndex, error) {
	c.mu.Lock()
	b, ok := c.restoredIndexes[gvk.GroupKind()]
	c.mu.Unlock()
	if ok {
		return b, nil
	}
	if err := c.conversionError(gvk); err != nil {
		return restoredIndex{}, err
	}
	b = restoredIndex{strays: map[xp.ID]bool{}, named: map[string][]xp.Managing{}}
	err := c.Each(ctx, gvk, "", metav1.ListOptions{LabelSelector: velerov1.RestoreNameLabel}, func(u *unstructured.Unstructured) {
		if adoption.IsStray(u) {
			b.strays[xp.RefTo(u).ID()] = true
		}
		if name := xp.Annotation(u, xp.AnnotationExternalName); name != "" && u.GetNamespace() != "" && xp.IsManaged(u) {
			b.named[name] = append(b.named[name], xp.ManagingOf(u))
		}
	})
	if err != nil && !isUnserved(err) {
		return restoredIndex{}, c.recordUnreadable(gvk, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restoredIndexes[gvk.GroupKind()] = b

	return b, nil
}
