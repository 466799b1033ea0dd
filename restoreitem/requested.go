package restoreitem

import (
	"slices"
	"strings"
	"sync"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// RequestedItems are the cluster-scoped items that were requested by a name that a tenant may have
// written, the connection secrets that the restore has reached or the backup has, and the owners
// that were found live.
type RequestedItems struct {
	mu      sync.Mutex
	items   map[clusterScopedName]*requestedItem
	secrets sync.Map // Values are bool: whether the restore brings it.
	others  sync.Map // Other Secrets that the restore has reached.
	claimed sync.Map // Connection secrets that come before their claims.
	early   sync.Map // Keys are itemNames of what was requested before custom resources.
	live    sync.Map
	reached sync.Map // Values are publishers, by the connection secret in a namespace that is not included.
	// open are the requests of items that Velero has not come back to, the outermost first.
	open []openRequest
	// held are the holds that this process has put on.
	held rememberedHolds
	// environments are the names of EnvironmentConfigs in the CompositionRevisions that the restore
	// has reached.
	environments sync.Map
	loggedRelink sync.Once
	// required is what these CompositionRevisions require, by their names.
	required sync.Map
}

// A clusterScopedName identifies a cluster-scoped item. A list on a stored copy has resources
// and an item has a kind, and the link between them is unknown until the kind is served. So two
// items of a group with the same name count as one, and both are checked.
type clusterScopedName struct{ group, name string }

// A requestedItem is what is known of a requested name.
type requestedItem struct {
	// by has one requester of each kind.
	by []xp.Ref
	// left are the kinds of XRs that run on an item of the name that was left out because none of
	// them had requested it.
	left []schema.GroupKind
}

// add records that an item requests a cluster-scoped one.
func (ri *RequestedItems) add(requester *unstructured.Unstructured, group, name string) {
	ri.mu.Lock()
	defer ri.mu.Unlock()
	if ri.items == nil {
		ri.items = map[clusterScopedName]*requestedItem{}
	}
	key := clusterScopedName{group, name}
	if ri.items[key] == nil {
		ri.items[key] = &requestedItem{}
	}
	r, self := ri.items[key], xp.RefTo(requester)
	if !slices.ContainsFunc(r.by, func(other xp.Ref) bool { return groupKindOf(other) == groupKindOf(self) }) {
		r.by = append(r.by, self)
	}
}

func groupKindOf(r xp.Ref) schema.GroupKind { return r.GroupVersionKind().GroupKind() }

// isRequested reports whether an item has requested the cluster-scoped one of this name.
func (ri *RequestedItems) isRequested(name clusterScopedName) bool {
	ri.mu.Lock()
	defer ri.mu.Unlock()

	return ri.items[name] != nil
}

func nameOf(item *unstructured.Unstructured) clusterScopedName {
	return clusterScopedName{item.GroupVersionKind().Group, item.GetName()}
}

// mismatch returns why a requested XRD, Composition or revision must not be restored, the zero
// Message if it is for the kind of an XR that requested it. Velero comes to an item only once.
func (ri *RequestedItems) mismatch(item *unstructured.Unstructured) reason.Message {
	ri.mu.Lock()
	defer ri.mu.Unlock()
	requested, kinds := ri.items[nameOf(item)], xp.RunBy(item)
	var by []string
	for _, requester := range requested.by {
		if slices.Contains(kinds, groupKindOf(requester)) {
			return reason.Message{}
		}
		by = append(by, requester.String())
	}
	requested.left = append(requested.left, kinds...)
	slices.Sort(by)
	of := "no kind of XR"
	if len(kinds) > 0 {
		of = "the kind " + kinds[0].String()
	}

	return reason.PlatformLeftOut.Messagef("%s is not restored: it is for %s, and only %s named it. To restore it, add --include-cluster-resources=true",
		xp.String(item), of, strings.Join(by, " and "))
}

// leftOutFor reports whether an item of the name was left out that XRs of the kind run on. by is an
// item that had requested it.
func (ri *RequestedItems) leftOutFor(kind schema.GroupKind, group, name string) (by string, left bool) {
	ri.mu.Lock()
	defer ri.mu.Unlock()
	requested := ri.items[clusterScopedName{group, name}]
	if requested == nil || !slices.Contains(requested.left, kind) {
		return "", false
	}
	for _, requester := range requested.by {
		if groupKindOf(requester) != kind && (by == "" || requester.String() < by) {
			by = requester.String()
		}
	}

	return by, true
}

// secret records that the backup has a connection secret, and whether the restore brings it.
func (ri *RequestedItems) secret(r xp.Ref, brings bool) {
	if brings {
		ri.secrets.Store(r.ID(), true)
	} else {
		ri.secrets.LoadOrStore(r.ID(), false)
	}
}

// secretOf reports whether the backup is known to have a connection secret, and whether the restore
// brings it. Velero restores Secrets before custom resources, except for custom resources that a
// Secret requests.
func (ri *RequestedItems) secretOf(r xp.Ref) (brings, known bool) {
	v, known := ri.secrets.Load(r.ID())
	brings, _ = v.(bool)

	return brings, known
}

// addEnvironments records the EnvironmentConfigs that a CompositionRevision names.
func (ri *RequestedItems) addEnvironments(environments []string) {
	for _, name := range environments {
		ri.environments.Store(name, true)
	}
}

// namesEnvironment reports whether a CompositionRevision that the restore has reached names an
// EnvironmentConfig.
func (ri *RequestedItems) namesEnvironment(name string) bool {
	_, ok := ri.environments.Load(name)

	return ok
}

// hasReached reports whether the restore has reached a Secret, of any type.
func (ri *RequestedItems) hasReached(secret xp.Ref) bool {
	_, ok := ri.others.Load(secret.ID())
	brings, _ := ri.secretOf(secret)

	return ok || brings
}

// addLive records an object that is live.
func (ri *RequestedItems) addLive(u *unstructured.Unstructured) {
	ri.live.Store(xp.RefTo(u).ID(), true)
}

// isLive reports whether an object was found live.
func (ri *RequestedItems) isLive(r xp.Ref) bool {
	_, ok := ri.live.Load(r.ID())

	return ok
}

// foreign returns why a restore of namespaces must not take a cluster-scoped item, the zero Message
// if it may. A user of one of the namespaces can name any item. So a field that only Crossplane
// writes must show whose it is. An XRD, Composition or revision must be for the kind of an XR that
// requested it.
func (o *Order) foreign(item *unstructured.Unstructured, restore *velerov1.Restore) reason.Message {
	if !ofNamespaces(restore) || item.GetNamespace() != "" || !o.Requested.isRequested(nameOf(item)) {
		return reason.Message{}
	}
	if xp.IsPlatform(item) {
		return o.Requested.mismatch(item)
	}
	if item.GroupVersionKind().GroupKind() == xp.KindEnvironment.GroupKind() {
		if o.Requested.namesEnvironment(item.GetName()) {
			return reason.Message{}
		}

		return clusterScopedLeftOut(item, "no CompositionRevision before it names it. To restore it, add --include-cluster-resources=true")
	}
	namespace := item.GetLabels()[xp.LabelClaimNamespace]
	if claim, ok := xp.CompositeFrom(item).ClaimRef(); ok {
		namespace = claim.Namespace
	}
	switch {
	case namespace == "":
		return clusterScopedLeftOut(item, "it is of no claim in the restored namespaces. To restore it, add --include-cluster-resources=true")
	case !included(restore, namespace):
		return clusterScopedLeftOut(item, "it is of a claim in the namespace "+namespace+". Restore that namespace, too")
	default:
		return reason.Message{}
	}
}

func clusterScopedLeftOut(item *unstructured.Unstructured, why string) reason.Message {
	return reason.ClusterScopedLeftOut.Messagef("%s is not restored: it is cluster-scoped, and %s", xp.String(item), why)
}

// isForged reports whether a restore of namespaces has reached an item of a Kubernetes kind that
// the action does not select. Its file is then called like one of another kind. Velero trusts what
// is in a file, and creates that.
func (o *Order) isForged(item *unstructured.Unstructured, restore *velerov1.Restore) bool {
	return ofNamespaces(restore) && o.selector.LabelSelector == "" && !xp.IsCustomGroup(item.GroupVersionKind().Group) &&
		item.GroupVersionKind().GroupKind() != schema.GroupKind{Kind: "Secret"}
}
