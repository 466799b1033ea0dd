package restoreitem

import (
	"slices"
	"strings"
	"sync"

	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// RequestedItems are the cluster-scoped items that were requested by a name that a tenant may have
// written, the connection secrets that the restore has reached or the backup has, and the owners
// that were found live.
type RequestedItems struct {
	mu    sync.Mutex
	items map[itemName]*requestedItem
	// open are the requests of items that Velero has not come back to, the outermost first.
	open []openRequest
	// secrets has for each connection secret whether the restore brings it; others are the Secrets
	// of other types that the restore has reached.
	secrets, others table[xp.ID, bool]
	// claimed are the connection secrets that come before their claims.
	claimed table[xp.ID, bool]
	// reached are the publishers of connection secrets in namespaces that are not included.
	reached table[xp.ID, publisher]
	// early are the items that were requested before custom resources.
	early table[itemName, bool]
	live  table[xp.ID, bool]
	// held are the holds that this process has put on.
	held rememberedHolds
	// environments are the EnvironmentConfigs that CompositionRevisions name which the restore has
	// reached, and required is what these revisions require, by their names.
	environments table[string, bool]
	required     table[string, []string]
	loggedRelink sync.Once
}

// An itemName identifies an item in its group, whatever its kind. A list on a stored copy has
// resources and an item has a kind, and the link between them is unknown until the kind is served.
// So two items of a group with the same name count as one, and both are checked.
type itemName struct{ group, namespace, name string }

type requestedItem struct {
	// by has one requester of each kind.
	by []xp.Ref
	// left are the kinds of XRs for which one of the name was left out, since none had requested it.
	left []schema.GroupKind
}

// add records that an item requests a cluster-scoped one.
func (ri *RequestedItems) add(requester *unstructured.Unstructured, group, name string) {
	ri.mu.Lock()
	defer ri.mu.Unlock()
	if ri.items == nil {
		ri.items = map[itemName]*requestedItem{}
	}
	key := itemName{group: group, name: name}
	if ri.items[key] == nil {
		ri.items[key] = &requestedItem{}
	}
	r, self := ri.items[key], xp.RefTo(requester)
	if !slices.ContainsFunc(r.by, func(other xp.Ref) bool { return groupKindOf(other) == groupKindOf(self) }) {
		r.by = append(r.by, self)
	}
}

func groupKindOf(r xp.Ref) schema.GroupKind { return r.GroupVersionKind().GroupKind() }

func (ri *RequestedItems) isRequested(name itemName) bool {
	ri.mu.Lock()
	defer ri.mu.Unlock()

	return ri.items[name] != nil
}

// mismatch returns why a requested XRD, Composition or revision must not be restored, the zero
// Message if it is for the kind of an XR that requested it. Velero comes to an item only once.
func (ri *RequestedItems) mismatch(i *item) reason.Message {
	ri.mu.Lock()
	defer ri.mu.Unlock()
	requested, kinds := ri.items[i.itemName()], xp.RunBy(i.original)
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
		xp.String(i.original), of, strings.Join(by, " and "))
}

// leftOutFor reports whether an item for XRs of the kind was left out, and by what it was requested.
func (ri *RequestedItems) leftOutFor(kind schema.GroupKind, group, name string) (by string, left bool) {
	ri.mu.Lock()
	defer ri.mu.Unlock()
	requested := ri.items[itemName{group: group, name: name}]
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
		ri.secrets.put(r.ID(), true)
	} else {
		ri.secrets.add(r.ID(), false)
	}
}

// hasReached reports whether the restore has reached a Secret, of any type. Velero restores Secrets
// before custom resources, except for custom resources that a Secret requests.
func (ri *RequestedItems) hasReached(secret xp.Ref) bool {
	brings, _ := ri.secrets.get(secret.ID())

	return brings || ri.others.has(secret.ID())
}

// requires returns what the XR's CompositionRevision requires, as far as the restore has reached it.
func (ri *RequestedItems) requires(xr *unstructured.Unstructured) []string {
	required, _ := ri.required.get(xp.CompositeFrom(xr).Revision())

	return required
}

// foreign returns why a restore of namespaces must not take a cluster-scoped item, the zero Message
// if it may. A user can name any item, so a field that only Crossplane writes must show whose it is.
// An XRD, Composition or revision must be for the kind of an XR that requested it.
func (o *Order) foreign(i *item) reason.Message {
	if !ofNamespaces(i.restore) || i.GetNamespace() != "" || !o.Requested.isRequested(i.itemName()) {
		return reason.Message{}
	}
	if xp.IsPlatform(i.original) {
		return o.Requested.mismatch(i)
	}
	namespace := xp.Label(i.original, xp.LabelClaimNamespace)
	if claim, ok := xp.CompositeFrom(i.original).ClaimRef(); ok {
		namespace = claim.Namespace
	}
	var why string
	switch environment := i.GroupVersionKind().GroupKind() == xp.KindEnvironment.GroupKind(); {
	case environment && o.Requested.environments.has(i.GetName()), !environment && namespace != "" && included(i.restore, namespace):
		return reason.Message{}
	case environment:
		why = "no CompositionRevision before it names it. To restore it, add --include-cluster-resources=true"
	case namespace == "":
		why = "it is of no claim in the restored namespaces. To restore it, add --include-cluster-resources=true"
	default:
		why = "it is of a claim in the namespace " + namespace + ". Restore that namespace, too"
	}

	return reason.ClusterScopedLeftOut.Messagef("%s is not restored: it is cluster-scoped, and %s", xp.String(i.original), why)
}

// unrestoredInputs records the EnvironmentConfigs that a CompositionRevision names. It returns a
// warning of other inputs of its functions that a restore of a part of the backup may not bring.
func (o *Order) unrestoredInputs(i *item) reason.Message {
	if !xp.IsRevision(i.original) {
		return reason.Message{}
	}
	reads := xp.PipelineInputsOf(i.original)
	for _, name := range reads.Environments {
		o.Requested.environments.put(name, true)
	}
	if len(reads.Others) == 0 || !ofNamespaces(i.restore) && !isSelective(i.restore) {
		return reason.Message{}
	}

	return reason.PipelineReads.Messagef("Functions of %s read what this restore may not bring: %s. If they find less, Crossplane can delete composed "+
		"resources. The setting %s=by-hand gives you time to check", xp.String(i.original), reads, setting.NameRelease)
}

// isForged reports whether a restore of namespaces has reached an item of a Kubernetes kind that
// the action does not select. Velero creates what is in a file, whatever the file's name is.
func (o *Order) isForged(i *item) bool {
	return ofNamespaces(i.restore) && o.selector.LabelSelector == "" && !xp.IsCustomGroup(i.GroupVersionKind().Group) && !isSecret(i.original)
}

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

func (ri *RequestedItems) expect(by *unstructured.Unstructured, items []velero.ResourceIdentifier, secrets bool) {
	if len(items) == 0 {
		return
	}
	names := make(map[itemName]bool, len(items))
	for _, e := range items {
		names[itemName{e.Group, e.Namespace, e.Name}] = true
	}
	ri.mu.Lock()
	defer ri.mu.Unlock()
	ri.open = append(ri.open, openRequest{by: xp.RefTo(by).ID(), items: names, secrets: secrets})
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

			break
		}
	}
}

// isUnexpected reports whether a restore has reached an item through the file of another, with
// which it would come to where the restore brings nothing. Other plugins can request items too, in
// the namespaces of the restore.
func (ri *RequestedItems) isUnexpected(i *item) bool {
	namespace := i.original.GetNamespace()
	ri.mu.Lock()
	defer ri.mu.Unlock()
	if len(ri.open) == 0 {
		return false
	}
	if last := ri.open[len(ri.open)-1]; last.secrets {
		return !last.items[i.itemName()] || i.GetKind() != "Secret"
	}
	bound := namespace != "" && included(i.restore, namespace) && i.namespace == namespace

	return ofNamespaces(i.restore) && !bound && !slices.ContainsFunc(ri.open, func(r openRequest) bool { return r.items[i.itemName()] })
}
