package backupitem

import (
	"context"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Reader reads the cluster that is backed up. apierrors.IsNotFound and meta.IsNoMatchError are
// true of its errors for what does not exist.
type Reader interface { //nolint:interfacebloat // One backup asks one cluster all of this.
	setting.Source

	Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error)
	// Served returns the version in which a kind is served; ok is false if it is not.
	Served(gk schema.GroupKind) (gvk schema.GroupVersionKind, ok bool, err error)
	// Versions returns the versions of a kind's CRD, the zero value if there is none.
	Versions(ctx context.Context, gk schema.GroupKind) (xp.Versions, error)
	Get(ctx context.Context, r xp.Ref) (*unstructured.Unstructured, error)
	// Each calls the function for each object of a kind that the options select, in the namespace
	// or, if that is "", in all.
	Each(ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions, do func(*unstructured.Unstructured)) error
	// MakeMarkKey makes the key that signs the marks of holds, unless there is one.
	MakeMarkKey(ctx context.Context, namespace string) error
}

// Resolver finds what belongs to an item. It caches what it reads, since the ItemBlockAction and
// the BackupItemAction need the same, one right after the other.
type Resolver struct {
	reader Reader
	// read has the objects that were read last. readBytes is how long those are that were added since
	// it was empty.
	read      *lru.Cache
	readBytes int
	lists     *lru.Cache
	// missed counts the objects that were missing in a list.
	missed *lru.Cache
	// failed has reasons for failed reads.
	failed *lru.Cache
	// asked counts how often Velero was asked for a shared item.
	asked map[xp.Item]int
	// begun are the items whose backup has begun.
	begun map[xp.Item]bool
	// seen has the last keys of isFirst.
	seen *lru.Cache
	// active has what activates kinds of MRs, and all activation policies.
	active *lru.Cache
	// inputsIn are the namespaces that have a list of their own for Secrets that providers read.
	inputsIn map[string]bool
	mu       sync.Mutex

	// filters are the backup's resource filters once they were read. policyErr is why they lack
	// those of its resource policy.
	filters   resources
	policyErr error
	filtering sync.Once

	// packing protects the packer while lists are unpacked.
	packing sync.RWMutex
	packer  *pack.Packer
}

// Bounds of the caches. They bound the memory for a backup of any size, with any names.
const (
	maxObjects  = 256
	maxLists    = 64
	maxCounters = 4096
	// maxSingleReads is how many missing objects of a kind are read singly before the whole kind is
	// listed: an XR can list thousands that don't exist. maxItemReads is the same for all kinds of
	// an item.
	maxSingleReads = 50
	maxItemReads   = 2 * mostKinds
	// maxRequests is how often Velero is asked for a shared item. If Velero can't get it, it leaves
	// out the item that asked, so once is not enough.
	maxRequests = 3
)

// NewResolver returns a Resolver for the cluster that the Reader reads.
func NewResolver(reader Reader) *Resolver {
	return &Resolver{
		reader: reader, read: lru.New(maxObjects), lists: lru.New(maxLists), missed: lru.New(maxCounters), failed: lru.New(failures),
		asked: map[xp.Item]int{}, begun: map[xp.Item]bool{}, seen: lru.New(maxCounters), inputsIn: map[string]bool{},
		packer: pack.New(), active: lru.New(maxCounters),
	}
}

// of returns what belongs to an item. Errors are part of it: the item itself is backed up in any
// case, as Velero alone would.
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
	if u, ok := res.remembered(r); ok {
		return u, nil
	}
	u, err := res.fetch(ctx, r)
	if isAbsent(err) {
		return nil, nil //nolint:nilnil // nil means that there is none.
	}
	if err != nil {
		return nil, err
	}
	res.remember(u)

	return u, nil
}

// A listKey identifies a list.
type listKey struct {
	schema.GroupKind

	namespace string
	selector  string
}

// listed returns one of many objects of a kind, which one list reads as the options select. An
// object that is missing there is read singly. It returns nil as get does.
func (res *Resolver) listed(ctx context.Context, f *found, r xp.Ref, options metav1.ListOptions) (*unstructured.Unstructured, error) {
	if u, ok := res.remembered(r); ok {
		return u, nil
	}
	u, err := res.findInList(ctx, r, r.Namespace, options)
	if err != nil || u != nil {
		return u, err
	}
	f.missed++
	if f.missed <= maxItemReads && res.countMiss(listKey{GroupKind: r.GroupVersionKind().GroupKind(), namespace: r.Namespace}) <= maxSingleReads {
		return res.get(ctx, r)
	}

	return res.findInList(ctx, r, r.Namespace, metav1.ListOptions{})
}

// countMiss counts an object that was missing in a list, and returns the count.
func (res *Resolver) countMiss(key listKey) int {
	res.mu.Lock()
	defer res.mu.Unlock()
	n := 1
	if before, ok := res.missed.Get(key); ok {
		n += before.(int) //nolint:forcetypeassert // The cache has only these.
	}
	res.missed.Add(key, n)

	return n
}

// findInList returns an object if it is in the list of a namespace, or of all if that is "", that
// the options select; else nil. A client refuses the list of an invalid namespace, which a tenant
// can write: the kind would look broken.
func (res *Resolver) findInList(ctx context.Context, r xp.Ref, namespace string, options metav1.ListOptions) (*unstructured.Unstructured, error) {
	if !xp.IsValidName(r.Namespace, r.Name) {
		return nil, nil //nolint:nilnil // nil means that there is none.
	}
	objects, err := res.readList(ctx, r.GroupVersionKind(), namespace, options)
	packed, ok := objects[r.ID()]
	if err != nil || !ok {
		return nil, err
	}
	res.packing.RLock()
	defer res.packing.RUnlock()

	return &unstructured.Unstructured{Object: packed.Unpack(nil)}, nil
}

// readList returns what the options select of a kind in a namespace, and reads it once. It is empty
// if the kind can't be listed.
func (res *Resolver) readList(ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions) (
	map[xp.ID]pack.Object, error,
) {
	key := listKey{GroupKind: gvk.GroupKind(), namespace: namespace, selector: options.LabelSelector + options.FieldSelector}

	return cached(res.lists, key, func() (map[xp.ID]pack.Object, error) {
		all := map[xp.ID]pack.Object{}
		err := res.each(ctx, gvk, namespace, options, func(u *unstructured.Unstructured) {
			res.packing.Lock()
			defer res.packing.Unlock()
			all[xp.RefTo(u).ID()] = res.packer.Pack(trim(u).Object)
		})
		if isAbsent(err) {
			return all, nil
		}

		return all, err
	})
}

// trim returns what links need of an object: its conditions, of an XR the spec, of others where
// they publish.
func trim(u *unstructured.Unstructured) *unstructured.Unstructured {
	t := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": u.Object["metadata"]}}
	unstructured.RemoveNestedField(t.Object, "metadata", "managedFields")
	keepConditions(t, u)
	if found := immutableUIDs(u); len(found) > 0 {
		t.Object[fieldImmutable] = strings.Join(found, " ")
	}
	if xp.IsComposite(u) {
		t.Object["spec"] = u.Object["spec"]

		return t
	}
	const publishes = "writeConnectionSecretToRef"
	if ref, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", publishes); ok {
		t.Object["spec"] = map[string]any{publishes: ref}
	}

	return t
}

// begin records that Velero backs up an item, which happens once for each, if another can request
// it. An item of an unknown kind is requested again.
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

// due returns the items to request from Velero: none whose backup has begun, and a shared one at
// most maxRequests times. Velero gets an item outside of the block from the API server each time
// before it finds that it has it (velero pkg/backup/item_backupper.go, executeActions). What a tree
// composes is mostly in another block, which came before.
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

// isFirst reports whether something that thousands of items have in common comes for the first time.
func (res *Resolver) isFirst(key any) bool {
	res.mu.Lock()
	defer res.mu.Unlock()
	_, seen := res.seen.Get(key)
	res.seen.Add(key, true)

	return !seen
}

// item returns a live object as Velero names it. ok is false if that is unknown, which f records.
func (res *Resolver) item(f *found, u *unstructured.Unstructured) (i xp.Item, ok bool) {
	gvr, _, err := res.resource(u.GroupVersionKind())
	if err != nil {
		f.addUnreadable(xp.RefTo(u), err)

		return xp.Item{}, false
	}

	return xp.Item{GroupResource: gvr.GroupResource(), Namespace: u.GetNamespace(), Name: u.GetName()}, true
}
