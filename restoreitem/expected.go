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
// Order requests for an item before it runs Adopt on that item, and what Adopt requests before it
// asks whether that is ready. So until then each item is one of those requested.

// An openRequest is what an item has requested.
type openRequest struct {
	by    xp.ID
	items map[itemName]bool
	// secrets means that it is of connection secrets in namespaces that are not included. Velero
	// creates what is in their files there, whatever its own namespace is.
	secrets bool
}

// expect records what an item requests.
func (ri *RequestedItems) expect(by *unstructured.Unstructured, items []xp.Item) {
	ri.push(openRequest{by: xp.RefTo(by).ID(), items: itemNames(items)})
}

// expectSecrets records that an item requests connection secrets.
func (ri *RequestedItems) expectSecrets(by *unstructured.Unstructured, secrets []xp.Item) {
	ri.push(openRequest{by: xp.RefTo(by).ID(), items: itemNames(secrets), secrets: true})
}

func (ri *RequestedItems) push(r openRequest) {
	if len(r.items) == 0 {
		return
	}
	ri.mu.Lock()
	defer ri.mu.Unlock()
	ri.open = append(ri.open, r)
}

func itemNames(items []xp.Item) map[itemName]bool {
	names := make(map[itemName]bool, len(items))
	for _, i := range items {
		names[itemName{i.Group, i.Namespace, i.Name}] = true
	}

	return names
}

// restored ends the request of an item, and those of items that it has requested.
func (ri *RequestedItems) restored(by *unstructured.Unstructured) {
	id := xp.RefTo(by).ID()
	ri.mu.Lock()
	defer ri.mu.Unlock()
	if n := slices.IndexFunc(ri.open, func(r openRequest) bool { return !r.secrets && r.by == id }); n >= 0 {
		ri.open = ri.open[:n]
	}
}

// restoredSecrets ends the last request of connection secrets.
func (ri *RequestedItems) restoredSecrets() {
	ri.mu.Lock()
	defer ri.mu.Unlock()
	for n, request := range slices.Backward(ri.open) {
		if request.secrets {
			ri.open = ri.open[:n]

			return
		}
	}
}

// isUnexpected reports whether a restore has reached an item through the file of another, with
// which it would come to where the restore brings nothing. Other plugins can request items too, in
// the namespaces of the restore.
func (ri *RequestedItems) isUnexpected(item *unstructured.Unstructured, restore *velerov1.Restore) bool {
	namespace := item.GetNamespace()
	name := itemName{item.GroupVersionKind().Group, namespace, item.GetName()}
	ri.mu.Lock()
	defer ri.mu.Unlock()
	if len(ri.open) == 0 {
		return false
	}
	if last := ri.open[len(ri.open)-1]; last.secrets {
		return !last.items[name] || item.GetKind() != "Secret"
	}
	bound := namespace != "" && included(restore, namespace) && targetNamespace(namespace, restore) == namespace

	return ofNamespaces(restore) && !bound && !slices.ContainsFunc(ri.open, func(r openRequest) bool { return r.items[name] })
}
