package adopter

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func collectionOf(r xp.Ref) cluster.Collection {
	return cluster.Collection{GroupVersionKind: r.GroupVersionKind(), Namespace: r.Namespace}
}

// maxNamespaces is in how many namespaces a kind is listed separately. An XR's composed resources
// are in its own namespace, and a tenant who can write an XR there can name any kind. Listing only
// that namespace reads no objects of other tenants. With more namespaces, more than one tenant
// asks, and the kind is listed in all namespaces.
const maxNamespaces = 4

// isListed reports whether a collection is among those that were listed, or part of one.
func isListed(collections map[cluster.Collection]bool, c cluster.Collection) bool {
	return collections[cluster.Collection{GroupVersionKind: c.GroupVersionKind}] || collections[c]
}

// due returns the collections to list for what is needed and not found yet. A collection is first
// listed with the selector's label, and then whole.
func (o *observer) due(needs []xp.Ref) (labelled, whole []cluster.Collection) {
	seen := map[cluster.Collection]bool{}
	for _, r := range needs {
		at := collectionOf(r)
		if seen[at] || o.snapshot.Has(r) || isListed(o.whole, at) {
			continue
		}
		seen[at] = true
		if isListed(o.labelled, at) {
			whole = append(whole, at)
		} else {
			labelled = append(labelled, at)
		}
	}

	return widened(labelled, func(gvk schema.GroupVersionKind) bool { return o.vital[gvk] && gvk != cluster.KindSecret }),
		widened(whole, func(schema.GroupVersionKind) bool { return false })
}

// widened returns the collections to list. A kind is listed in all namespaces if everywhere returns
// true for it, if an object is in no namespace, or if there are many namespaces.
func widened(all []cluster.Collection, everywhere func(schema.GroupVersionKind) bool) []cluster.Collection {
	namespaces := map[schema.GroupVersionKind]sets.Set[string]{}
	for _, c := range all {
		if namespaces[c.GroupVersionKind] == nil {
			namespaces[c.GroupVersionKind] = sets.New[string]()
		}
		namespaces[c.GroupVersionKind].Insert(c.Namespace)
	}
	var wide []cluster.Collection
	listed := map[cluster.Collection]bool{}
	for _, c := range all {
		if in := namespaces[c.GroupVersionKind]; everywhere(c.GroupVersionKind) || in.Has("") || in.Len() > maxNamespaces {
			c.Namespace = ""
		}
		if !listed[c] {
			wide = append(wide, c)
		}
		listed[c] = true
	}

	return wide
}
