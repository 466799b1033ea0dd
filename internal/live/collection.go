package live

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A collection is a kind and the namespace in which it is listed; "" is all namespaces.
type collection struct {
	schema.GroupVersionKind

	namespace string
}

// maxNamespaces is in how many namespaces a kind is listed separately. An XR's composed resources
// are in its own namespace, and a tenant who can write an XR there can name any kind. Listing only
// that namespace reads no objects of other tenants. With more namespaces, more than one tenant
// asks, and the kind is listed in all namespaces.
const maxNamespaces = 4

// isListed reports whether the collection of an object is among those that were listed.
func isListed(collections map[collection]bool, gvk schema.GroupVersionKind, namespace string) bool {
	return collections[collection{GroupVersionKind: gvk}] || collections[collection{gvk, namespace}]
}

// due returns the collections to list for what is needed and not found yet. A collection is first
// listed with the selector's label, and then whole.
func (o *observer) due(needs []xp.Ref) (labelled, whole []collection) {
	first, next := collections{}, collections{}
	for _, r := range needs {
		gvk := r.GroupVersionKind()
		switch {
		case o.snapshot.Has(r) || isListed(o.whole, gvk, r.Namespace):
		case !isListed(o.labelled, gvk, r.Namespace):
			first.add(gvk, r.Namespace)
		default:
			next.add(gvk, r.Namespace)
		}
	}

	return first.list(func(gvk schema.GroupVersionKind) bool { return o.vital[gvk] && gvk != kindSecret }),
		next.list(func(schema.GroupVersionKind) bool { return false })
}

// collections are the namespaces in which each kind is looked for, in the order of add.
type collections struct {
	kinds      []schema.GroupVersionKind
	namespaces map[schema.GroupVersionKind][]string
	known      map[collection]bool
}

func (p *collections) add(gvk schema.GroupVersionKind, namespace string) {
	if p.known == nil {
		p.namespaces, p.known = map[schema.GroupVersionKind][]string{}, map[collection]bool{}
	}
	at := collection{gvk, namespace}
	if p.known[at] {
		return
	}
	p.known[at] = true
	if len(p.namespaces[gvk]) == 0 {
		p.kinds = append(p.kinds, gvk)
	}
	p.namespaces[gvk] = append(p.namespaces[gvk], namespace)
}

// list returns the collections to list. A kind is listed in all namespaces if everywhere returns
// true for it, if an object is in no namespace, or if there are many namespaces.
func (p *collections) list(everywhere func(schema.GroupVersionKind) bool) []collection {
	var all []collection
	for _, gvk := range p.kinds {
		namespaces := p.namespaces[gvk]
		if everywhere(gvk) || p.known[collection{GroupVersionKind: gvk}] || len(namespaces) > maxNamespaces {
			all = append(all, collection{GroupVersionKind: gvk})

			continue
		}
		for _, namespace := range namespaces {
			all = append(all, collection{gvk, namespace})
		}
	}

	return all
}

// isClusterScoped reports whether a kind is served and cluster-scoped.
func (o *observer) isClusterScoped(gvk schema.GroupVersionKind) bool {
	if !o.cluster.isKnown(gvk) {
		return false
	}
	_, namespaced, err := o.cluster.Resource(gvk)

	return err == nil && !namespaced
}
