package restoreitem

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// unrequested returns items that must come back with an item that does not request them, if the
// restore filters by resource. These are an XR's composed resources, without which it stays held;
// the Secret that an item publishes in, which its provider would create again; and the claim of a
// Secret.
func (o *Order) unrequested(item *unstructured.Unstructured, restore *velerov1.Restore) []xp.Item {
	if len(restore.Spec.IncludedResources) == 0 && len(restore.Spec.ExcludedResources) == 0 {
		return nil
	}
	items := o.claimsOf(item)
	if r, publishes := xp.SecretRef(item); publishes {
		items = append(items, secretItem(r))
	}
	if !isXR(item) {
		return items
	}
	composed, err := xp.CompositeFrom(item).SavedRefs()
	if err != nil {
		return items // The XR is refused.
	}
	for _, r := range composed {
		gvr, namespaced, err := o.mapper.Resource(r.GroupVersionKind())
		if err != nil {
			continue // Adoption reports it.
		}
		if !namespaced {
			r.Namespace = ""
		}
		items = append(items, xp.Item{GroupResource: gvr.GroupResource(), Namespace: r.Namespace, Name: r.Name})
	}

	return items
}

// inScope reports whether a restore includes an item's namespace, or cluster-scoped items.
func inScope(i xp.Item, restore *velerov1.Restore) bool {
	if i.Namespace == "" {
		return ptr.Deref(restore.Spec.IncludeClusterResources, true)
	}

	return included(restore, i.Namespace)
}

// isFiltered reports whether a restore's resource filters exclude an item.
func isFiltered(i xp.Item, restore *velerov1.Restore) bool {
	in, out := restore.Spec.IncludedResources, restore.Spec.ExcludedResources

	return xp.MatchesResource(out, i.GroupResource) || len(in) > 0 && !xp.MatchesResource(in, i.GroupResource)
}
