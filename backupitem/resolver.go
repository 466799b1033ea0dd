package backupitem

import (
	"context"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Reader reads the cluster that is backed up. Its errors are ones that apierrors.IsNotFound and
// meta.IsNoMatchError know.
type Reader interface {
	setting.Source
	Kinds

	Get(ctx context.Context, r xp.Ref) (*unstructured.Unstructured, error)
	// Each calls the function with what the options select of a kind, in the namespace or, if that
	// is "", in all of them.
	Each(ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions, do func(*unstructured.Unstructured)) error
}

// Kinds are those that a cluster serves.
type Kinds interface {
	Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error)
	// Served returns the version in which a kind is served; ok is false if it is not.
	Served(gk schema.GroupKind) (gvk schema.GroupVersionKind, ok bool, err error)
	// Versions returns what the CRD of a kind says of its versions, the zero value if there is
	// none.
	Versions(ctx context.Context, gk schema.GroupKind) (xp.Versions, error)
}

// Resolver finds what belongs to an item. It remembers what it has read for a while: the action for
// item blocks and the one that backs up ask for the same, one right after the other.
type Resolver struct {
	reader Reader
	read   *objectCache
	lists  *lru.Cache
	// missed counts what was not in a list.
	missed *lru.Cache
	// failed is why something could not be read, and excludedNamespaces tells of namespaces whether
	// they have the label that keeps what is in them out of backups.
	failed, excludedNamespaces *lru.Cache
	// checkedKinds are the kinds of which it was tried whether one object can be read by itself.
	checkedKinds *lru.Cache
	// asked counts how often Velero was asked for what many objects run on.
	asked map[xp.Item]int
	// begun are the items that Velero has begun to back up.
	begun map[xp.Item]bool
	// told are those items that others can name too of which a warning says that they are left out.
	told map[xp.Item]bool
	// active is what has kinds of MRs served, and policies are all that activate any, once they
	// were read.
	active   map[schema.GroupKind]activation
	policies *[]*unstructured.Unstructured
	// inputsIn are the first namespaces in which MRs have their providers read Secrets.
	inputsIn map[string]bool
	mu       sync.Mutex

	// filters are those by resource of the backup, once they were asked for, and unfiltered is why
	// those of its resource policy are not among them.
	filters                   resources
	unfiltered                error
	filtering, toldUnfiltered sync.Once

	// packing is what unpacks of the lists wait for.
	packing sync.RWMutex
	packer  *pack.Packer
}

// Objects and lists of them that are remembered. It bounds the memory for a backup of any size,
// whatever names are in it.
const (
	maxObjects  = 256
	maxLists    = 64
	maxCounters = 4096
	// maxSingleReads is how many objects of a kind are read by themselves before all of the kind
	// are: an XR can list thousands that don't exist.
	maxSingleReads = 50
	// maxRequests is how often Velero is asked for what many objects run on. An item that it fails
	// to get costs it the object that asked, so one time is not enough.
	maxRequests = 3
)

// NewResolver returns a Resolver that read from the cluster that is backed up.
func NewResolver(reader Reader) *Resolver {
	return &Resolver{
		reader: reader, read: newObjectCache(maxObjects), lists: lru.New(maxLists), missed: lru.New(maxCounters), failed: lru.New(failures),
		checkedKinds: lru.New(failures), excludedNamespaces: lru.New(maxCounters),
		asked: map[xp.Item]int{}, begun: map[xp.Item]bool{}, told: map[xp.Item]bool{}, inputsIn: map[string]bool{},
		packer: pack.New(), active: map[schema.GroupKind]activation{},
	}
}

// of returns what belongs to an item. What can't be found out is part of it: the item itself is
// backed up in any case, as Velero alone would.
func (res *Resolver) of(ctx context.Context, u *unstructured.Unstructured) *found {
	f := newFound(u)
	switch {
	case xp.IsClaim(u):
		res.remember(u)
		res.ofClaim(ctx, f, xp.ClaimFrom(u))
	case xp.IsComposite(u):
		res.remember(u)
		res.ofComposite(ctx, f, xp.CompositeFrom(u))
	case xp.IsManaged(u):
		res.secret(ctx, f, u)
		res.providerConfig(ctx, f, u)
		res.activations(ctx, f, u)
	}

	return f
}

// get returns nil if the object does not exist, or its kind is not served.
func (res *Resolver) get(ctx context.Context, r xp.Ref) (*unstructured.Unstructured, error) {
	kind, ok, err := res.resolve(r.GroupVersionKind())
	if err != nil || !ok {
		return nil, err
	}
	r = kind.at(r)
	if u, ok := res.read.get(r.ID()); ok {
		return u, nil
	}
	if len(r.Name) > longestName || len(r.Namespace) > longestName {
		return nil, nil //nolint:nilnil // Not there is an answer.
	}
	u, err := res.fetch(ctx, r)
	if isAbsent(err) {
		return nil, nil //nolint:nilnil // Not there is an answer.
	}
	if err != nil {
		return nil, err
	}
	res.remember(u)

	return u, nil
}

// remember keeps an object for those that ask for it next, without what none of them does: data,
// who manages which field, and of its status all but how well it is.
func (res *Resolver) remember(u *unstructured.Unstructured) {
	kept := &unstructured.Unstructured{Object: maps.Clone(u.Object)}
	for _, unread := range []string{"status", "data", "stringData", "binaryData"} {
		delete(kept.Object, unread)
	}
	keepConditions(kept, u)
	if metadata, ok := u.Object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		kept.Object["metadata"] = metadata
	}
	res.read.put(kept)
}

// A listKey is what was listed at once.
type listKey struct {
	schema.GroupKind

	namespace string
	selector  string
}

// listed returns one of many objects of a kind, which are read with one list for all that the
// options select. What is not among them is read by itself. It returns nil as get does.
func (res *Resolver) listed(ctx context.Context, r xp.Ref, options metav1.ListOptions) (*unstructured.Unstructured, error) {
	if u, ok := res.read.get(r.ID()); ok {
		return u, nil
	}
	u, err := res.findInList(ctx, r, r.Namespace, options)
	if err != nil || u != nil {
		return u, err
	}
	if res.countMiss(listKey{GroupKind: r.GroupVersionKind().GroupKind(), namespace: r.Namespace}) <= maxSingleReads {
		return res.get(ctx, r)
	}

	return res.findInList(ctx, r, r.Namespace, metav1.ListOptions{})
}

// countMiss counts one more that was not in a list.
func (res *Resolver) countMiss(key listKey) int {
	res.mu.Lock()
	defer res.mu.Unlock()
	n := 1
	if before, ok := res.missed.Get(key); ok {
		n += before.(int) //nolint:forcetypeassert // Nothing else is put in.
	}
	res.missed.Add(key, n)

	return n
}

// findInList returns an object if it is among those that the options select of its kind in a
// namespace or, if that is "", in all of them, or else nil.
func (res *Resolver) findInList(ctx context.Context, r xp.Ref, namespace string, options metav1.ListOptions) (*unstructured.Unstructured, error) {
	objects, err := res.readList(ctx, r.GroupVersionKind(), namespace, options)
	packed, ok := objects[r.ID()]
	if err != nil || !ok {
		return nil, err
	}
	res.packing.RLock()
	defer res.packing.RUnlock()

	return &unstructured.Unstructured{Object: packed.Unpack(nil)}, nil
}

// readList returns what the options select of a kind in a namespace, which it reads once. What
// can't be listed has nothing.
func (res *Resolver) readList(ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions) (
	map[xp.ID]pack.Object, error,
) {
	key := listKey{GroupKind: gvk.GroupKind(), namespace: namespace, selector: options.LabelSelector + options.FieldSelector}
	if objects, ok := res.lists.Get(key); ok {
		return objects.(map[xp.ID]pack.Object), nil //nolint:forcetypeassert // Nothing else is put in.
	}
	all := map[xp.ID]pack.Object{}
	err := res.each(ctx, gvk, namespace, options, func(u *unstructured.Unstructured) {
		res.packing.Lock()
		defer res.packing.Unlock()
		all[xp.RefTo(u).ID()] = res.packer.Pack(trim(u).Object)
	})
	if err != nil && !isAbsent(err) {
		return nil, err
	}
	res.lists.Add(key, all)

	return all, nil
}

// trim returns what links need of an object: how well it is, of an XR what it says, of others where
// they publish.
func trim(u *unstructured.Unstructured) *unstructured.Unstructured {
	t := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": u.Object["metadata"]}}
	unstructured.RemoveNestedField(t.Object, "metadata", "managedFields")
	keepConditions(t, u)
	if xp.IsComposite(u) {
		t.Object["spec"] = u.Object["spec"]

		return t
	}
	spec := map[string]any{}
	for _, field := range []string{"writeConnectionSecretToRef", "publishConnectionDetailsTo"} {
		if ref, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", field); ok {
			spec[field] = ref
		}
	}
	if len(spec) > 0 {
		t.Object["spec"] = spec
	}

	return t
}

// begin takes note that Velero backs up an item, which it does once for each, if anything could ask
// for it. An item whose kind is not known is asked for again.
func (res *Resolver) begin(u *unstructured.Unstructured) {
	if !xp.IsComposed(u) && !xp.IsComposite(u) && !xp.IsClaim(u) && !xp.IsProviderConfig(u) {
		return
	}
	if i, ok := res.item(newFound(u), u); ok {
		res.mu.Lock()
		defer res.mu.Unlock()
		res.begun[i] = true
	}
}

// due returns those of the items that Velero is to be asked for: not what it has begun to back up,
// nor those of the shared ones that it was asked for maxRequests enough. What is not in the block
// of the object that asks it gets from the API server each time, before it sees that it has it
// (velero pkg/backup/item_backupper.go, executeActions); and what a tree composes is mostly in
// another, which came before.
func (res *Resolver) due(items, shared []xp.Item) []xp.Item {
	res.mu.Lock()
	defer res.mu.Unlock()

	return slices.DeleteFunc(items, func(i xp.Item) bool {
		if res.begun[i] || !slices.Contains(shared, i) {
			return res.begun[i]
		}
		res.asked[i]++

		return res.asked[i] > maxRequests
	})
}

// item returns a live object as Velero names it; ok is false if that can't be found out, which is
// what f then says.
func (res *Resolver) item(f *found, u *unstructured.Unstructured) (i xp.Item, ok bool) {
	gvr, _, err := res.resource(u.GroupVersionKind())
	if err != nil {
		f.addUnreadable(xp.RefTo(u), err)

		return xp.Item{}, false
	}

	return xp.Item{GroupResource: gvr.GroupResource(), Namespace: u.GetNamespace(), Name: u.GetName()}, true
}
