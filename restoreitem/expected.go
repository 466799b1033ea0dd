package restoreitem

import (
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Velero finds a requested item by its file's path, and creates what the file contains: another
// name, another group or, for the file of a cluster-scoped item, in any namespace (velero
// pkg/restore/restore.go, restoreItem). An action does not see the path. But Velero restores what
// Order requests for an item before it runs Adopt on that item, so until then each item is one of
// those requested.

// An openRequest is what an item has requested.
type openRequest struct {
	by    xp.ID
	items map[itemName]bool
}

// expect records what an item requests.
func (ri *RequestedItems) expect(by *unstructured.Unstructured, items []xp.Item) {
	if len(items) == 0 {
		return
	}
	r := openRequest{by: xp.RefTo(by).ID(), items: make(map[itemName]bool, len(items))}
	for _, i := range items {
		r.items[itemName{i.Group, i.Namespace, i.Name}] = true
	}
	ri.mu.Lock()
	defer ri.mu.Unlock()
	ri.open = append(ri.open, r)
}

// restored ends the request of an item, and those of items that it has requested.
func (ri *RequestedItems) restored(by *unstructured.Unstructured) {
	if ri == nil {
		return
	}
	id := xp.RefTo(by).ID()
	ri.mu.Lock()
	defer ri.mu.Unlock()
	ri.next = nil
	if n := slices.IndexFunc(ri.open, func(r openRequest) bool { return r.by == id }); n >= 0 {
		ri.open = ri.open[:n]
	}
}

// isUnexpected reports whether a restore of namespaces has reached an item through the file of
// another, with which it would come to where the restore brings nothing. Other plugins can request
// items too, in the namespaces of the restore.
func (ri *RequestedItems) isUnexpected(item *unstructured.Unstructured, restore *velerov1.Restore) bool {
	namespace := item.GetNamespace()
	bound := namespace != "" && included(restore, namespace) && targetNamespace(namespace, restore) == namespace
	if !ofNamespaces(restore) || bound {
		return false
	}
	name := itemName{item.GroupVersionKind().Group, namespace, item.GetName()}
	ri.mu.Lock()
	defer ri.mu.Unlock()

	return len(ri.open) > 0 && !slices.ContainsFunc(ri.open, func(r openRequest) bool { return r.items[name] })
}
