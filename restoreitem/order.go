package restoreitem

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	riav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/restoreitemaction/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A ResourceMapper says which resource a kind is and whether it is namespaced. It returns an error
// that meta.IsNoMatchError knows if the kind is not served.
type ResourceMapper interface {
	Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error)
}

// A ResourceMapperFn is a function that is a ResourceMapper.
type ResourceMapperFn func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error)

// Resource calls the function.
func (fn ResourceMapperFn) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	return fn(gvk)
}

// ClaimKinds know of which kinds claims are.
type ClaimKinds interface {
	// IsClaimKind reports whether claims are of a kind, as the API server says; of none that it
	// does not serve.
	IsClaimKind(gvk schema.GroupVersionKind) (bool, error)
}

// Order asks Velero to restore first what must be there before an item: a composed resource's XR
// and other owners, an XR's CompositionRevision, Composition and XRD, a claim's whole tree, what
// publishes in a connection secret, but no claim, the package of a package revision, and what a
// Usage uses.
type Order struct {
	shared

	selector velero.ResourceSelector
	mapper   ResourceMapper
	log      logrus.FieldLogger
	awaited  sync.Map // Of definedKind.
	// told are the items of which an operation says that the filters by resource leave them out.
	told sync.Map
}

var _ riav2.RestoreItemAction = &Order{}

// NewOrder returns the action for what the selector selects. Velero uses it for one restore; all
// actions of a restore have the same RequestedItems.
func NewOrder(selector velero.ResourceSelector, mapper ResourceMapper, requested *RequestedItems, log logrus.FieldLogger, options ...Option) *Order {
	o := &Order{shared: sharedBy(options), selector: selector, mapper: mapper, log: log}
	o.requested = requested

	return o
}

// Name is not called by Velero.
func (o *Order) Name() string { return "1-order" }

// AppliesTo selects what the action was made for.
func (o *Order) AppliesTo() (velero.ResourceSelector, error) { return o.selector, nil }

// Execute returns the item as it is, with what must be restored before it. It fails if the backup's
// list of it can't be read.
func (o *Order) Execute(input *velero.RestoreItemActionExecuteInput) (*velero.RestoreItemActionExecuteOutput, error) {
	item := &unstructured.Unstructured{Object: input.ItemFromBackup.UnstructuredContent()}
	out := &velero.RestoreItemActionExecuteOutput{}
	if xp.SkipReason(item) != "" {
		return out, nil
	}
	if r := xp.RefTo(item); r.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		r.Namespace = targetNamespace(r.Namespace, input.Restore)
		if xp.IsConnectionSecret(item) {
			o.requested.secret(r, true)
		} else {
			o.requested.others.Store(r.ID(), true)
		}
	}
	if xp.IsRevision(item) {
		o.requested.required.Store(item.GetName(), xp.Required(item))
	}
	if why, forged := o.refuses(item, input.Restore); why != "" {
		out = out.WithoutRestore()
		out.OperationID = noteID(xp.RefTo(item), why, forged)

		return out, nil
	}
	if err := o.xrds.check(item, targetNamespace(item.GetNamespace(), input.Restore)); err != nil {
		return nil, err // Before anything is asked for.
	}
	if err := o.ready.check(item, input.Restore, o.log); err != nil {
		return nil, err
	}
	first, err := o.first(item, input.Restore)
	if err != nil {
		return nil, err
	}
	if xp.HasAnnotation(item, xp.AnnotationMustRestore) {
		// Whoever wrote it has no say in what the filters leave out.
		u := &unstructured.Unstructured{Object: input.Item.UnstructuredContent()}
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", xp.AnnotationMustRestore)
		out = velero.NewRestoreItemActionExecuteOutput(u)
	}
	in, left := o.inFilters(item, first, input.Restore)
	if left == "" {
		left = o.unrestoredInputs(item, input.Restore)
	}
	if left != "" {
		out.OperationID = noteID(xp.RefTo(item), left, false)
	}
	o.addEarly(item, in)
	for _, i := range in {
		out.AdditionalItems = append(out.AdditionalItems, velero.ResourceIdentifier{GroupResource: i.GroupResource, Namespace: i.Namespace, Name: i.Name})
	}
	if within := o.ready.timeout(input.Restore); o.awaitKind(item, out.AdditionalItems, within) {
		out.WaitForAdditionalItems, out.AdditionalItemsReadyTimeout = true, within
	}

	return out, nil
}

// refuses says why a restore must not take an item, "" if it may; forged is true if somebody has
// tampered with the backup.
func (o *Order) refuses(item *unstructured.Unstructured, restore *velerov1.Restore) (why string, forged bool) {
	log := o.log.WithFields(logrus.Fields{"kind": item.GetKind(), "namespace": item.GetNamespace(), "name": item.GetName()})
	if o.isForged(item, restore) {
		why = "Not restored: " + xp.String(item) + " is in a file that is called like one of another kind; find out who has written to the backup"
		log.Warn(why)

		return why, true
	}
	if by, reached, owned := o.requested.publisherOf(item); reached && !owned {
		why = "Not restored: " + xp.String(item) + " is in a namespace that is not restored, and is not the connection secret of " + by.String() +
			", which names it; find out who has written to the backup"
		log.Warn(why)

		return why, true
	}
	reason := o.foreign(item, restore)
	switch {
	case reason == "":
		return "", false
	case xp.IsPlatform(item):
		why = "Not restored: " + xp.String(item) + " is for none of the XRs that have named it"
	default:
		why = "Not restored: " + xp.String(item) + " is cluster-scoped and of none of the namespaces that are restored"
	}
	fields := logrus.Fields{"reason": reason}
	log.WithFields(fields).Warn(why)

	return withFields(fields, why), false
}

// inFilters leaves out what the restore's filters do, which Velero would drop without a word, and
// names it; left is "" if they leave nothing out. What they conclude out by resource is asked for
// all the same: short names are known to Velero alone.
func (o *Order) inFilters(item *unstructured.Unstructured, first []xp.Item, restore *velerov1.Restore) (in []xp.Item, left string) {
	var out []string
	for _, i := range first {
		if !xp.IsValidName(i.Namespace, i.Name) {
			o.log.WithFields(logrus.Fields{"object": xp.String(item), "item": i.String()}).Warn("Not restored first: " + xp.String(item) + " names " +
				strconv.Quote(i.Name) + ", and nothing can be called that; find out who has written it")

			continue
		}
		comes := inScope(i, restore)
		if i.GroupResource == resourceSecrets {
			o.requested.secret(xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: targetNamespace(i.Namespace, restore), Name: i.Name}, comes && takesSecrets(restore))
		}
		if !comes {
			if !isReachedLater(item, i, restore) {
				out = append(out, i.String())
			}

			continue
		}
		in = append(in, i)
	}
	for _, i := range slices.Concat(in, o.unrequested(item, restore)) {
		if !isFiltered(i, restore) {
			continue
		}
		// Thousands can run on the same, a claim lists what its XR does, and each MR can publish in
		// a Secret.
		key, named := i, i.String()
		if i.GroupResource == resourceSecrets {
			key, named = xp.Item{GroupResource: i.GroupResource}, named+", as all Secrets"
		}
		if _, told := o.told.LoadOrStore(key, true); !told {
			out = append(out, named)
		}
	}
	if len(out) == 0 {
		return in, ""
	}
	const few = 10
	left = "The filters of the restore leave out what " + xp.String(item) + " belongs with; if it isn't in the cluster, restore again without " +
		"--include-cluster-resources=false and with the namespaces and the resources of these"
	fields := logrus.Fields{"object": xp.String(item), "items": out}
	o.log.WithFields(fields).Warn(left)
	if more := len(out) - few; more > 0 {
		out = append(out[:few:few], fmt.Sprintf("and %d more", more))
	}

	return in, withFields(logrus.Fields{"items": strings.Join(out, ", ")}, left)
}

// isReachedLater reports whether an entry of the list on an item is a connection secret that what
// publishes in it brings, or waits for.
func isReachedLater(item *unstructured.Unstructured, i xp.Item, restore *velerov1.Restore) bool {
	return i.GroupResource == resourceSecrets && (item.GetNamespace() == "" || isClaim(item)) && includesSecretsOf(restore, i.Namespace)
}

func (o *Order) first(item *unstructured.Unstructured, restore *velerov1.Restore) ([]xp.Item, error) {
	first, err := o.ask(item, o.withoutClaims(item, o.named(item)), restore)
	if err != nil {
		return nil, err
	}
	more, listed := o.listed(item, restore)
	if !listed {
		if more, err = o.unlisted(item, restore); err != nil {
			return nil, err
		}
	}
	first = append(append(first, more...), o.publishedSecrets(item, restore)...)
	if !isXR(item) || !restoresComposed(xp.CompositeFrom(item), listed, restore) {
		return first, nil
	}
	// They come back before the XR then, without it as their owner. It is paused from the moment it
	// exists, and takes them over when it is not.
	composed, err := xp.CompositeFrom(item).SavedRefs()
	if err != nil {
		return nil, err
	}
	more, err = o.ask(item, composed, restore)

	return append(first, more...), err
}

// publishedSecrets returns the connection secrets of an XR or MR in a restore by labels, which they
// may have none of. They come back before their controller then, which takes them over.
func (o *Order) publishedSecrets(item *unstructured.Unstructured, restore *velerov1.Restore) []xp.Item {
	if !isSelective(restore) {
		return nil
	}
	var refs []xp.Ref
	if r, ok := xp.SecretRef(item); ok && xp.Published(item) {
		refs = append(refs, r)
	}
	if r, ok := xp.Stored(item); ok {
		refs = append(refs, r)
	}
	var items []xp.Item
	for _, r := range refs {
		to := r
		to.Namespace = targetNamespace(r.Namespace, restore)
		if !o.requested.hasReached(to) {
			items = append(items, secretItem(r))
		}
	}

	return items
}

func secretItem(r xp.Ref) xp.Item {
	return xp.Item{GroupResource: resourceSecrets, Namespace: r.Namespace, Name: r.Name}
}

// namedModifiers returns the owners of an item and what it uses.
func (*Order) named(item *unstructured.Unstructured) []xp.Ref {
	var refs []xp.Ref
	if xp.IsComposed(item) || xp.IsConnectionSecret(item) || xp.IsPackageRevision(item) {
		refs = append(refs, xp.Owners(item)...)
	}
	if xp.IsUsage(item) {
		refs = append(refs, xp.Uses(item)...)
	}
	published, publishes := xp.SecretRef(item)

	return slices.DeleteFunc(refs, func(r xp.Ref) bool {
		return publishes && r.ID() == published.ID() // The Secret comes after what publishes in it: else it would be without its controller.
	})
}

// restoresComposed reports whether nothing else asks for what an XR composes: in a restore by
// labels what it composes may have none of them, and without the list on the stored copy of a claim
// that is restored by its namespace, nobody asks for what is cluster-scoped.
func restoresComposed(xr xp.Composite, listed bool, restore *velerov1.Restore) bool {
	_, claimed := xr.ClaimRef()

	return isSelective(restore) && !claimed || ofNamespaces(restore) && claimed && !listed
}

// ask returns what an item names as Velero names it. Which resource a kind is that is not served
// can't be known. What a namespaced item names is asked for only in its own namespace, and where
// foreign is asked of it: a tenant can write any name. Of what each of many items names, as those
// that an XR composes do, Velero is told until it is live: before Velero sees that it has restored
// an item already, it reads it from the backup again, and asks the API server for its namespace
// (velero pkg/restore/restore.go, restoreItem), which is one request in four.
func (o *Order) ask(item *unstructured.Unstructured, refs []xp.Ref, restore *velerov1.Restore) ([]xp.Item, error) {
	var items []xp.Item
	for _, r := range refs {
		gvr, namespaced, err := o.mapper.Resource(r.GroupVersionKind())
		log := o.log.WithFields(logrus.Fields{"object": xp.String(item), "reference": r.String()})
		if meta.IsNoMatchError(err) {
			log.Warn("The kind " + r.GroupVersionKind().GroupKind().String() + " is not served yet, so the object can't be restored first; if this restore " +
				"doesn't bring it later, install its XRD or provider, or activate its ManagedResourceDefinition, then restore again")

			continue
		}
		if err != nil && xp.IsConnectionSecret(item) {
			// What is in it may be nowhere else.
			log.WithError(err).Warn("Not restored first: " + xp.String(item) + " names " + r.String() + ", and its kind can't be looked up; have the API server " +
				"answer for " + r.GroupVersionKind().GroupKind().String())

			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot find the resource of %s, which comes before %s: %w", r, xp.String(item), err)
		}
		if !namespaced {
			r.Namespace = ""
		}
		if own := item.GetNamespace(); own != "" && r.Namespace != own && (namespaced || isShared(gvr.Group, r.Kind)) {
			log.Warn("Not restored first: " + xp.String(item) + " names " + r.String() + ", which is outside of its namespace")

			continue
		}
		if ofNamespaces(restore) && !namespaced && !o.asksAlone(item, r, log) {
			continue
		}
		target := r
		target.Namespace = targetNamespace(r.Namespace, restore)
		if o.requested.isLive(target) {
			continue
		}
		items = append(items, xp.Item{GroupResource: gvr.GroupResource(), Namespace: r.Namespace, Name: r.Name})
	}

	return items, nil
}

// asksAlone reports whether an item's word is enough to ask for something cluster-scoped in a
// restore of namespaces, and takes note of it.
func (o *Order) asksAlone(item *unstructured.Unstructured, r xp.Ref, log logrus.FieldLogger) bool {
	gvk := r.GroupVersionKind()
	switch {
	case xp.IsPlatformKind(gvk):
		// As foreign would refuse it, and Velero comes to an item only once, the XRs that run on it
		// would be without it.
		log.Warn("Not restored first: " + xp.String(item) + " names " + r.String() + namedXRs)

		return false
	case !xp.IsCustomGroup(gvk.Group):
		// This plugin is not asked about it when it comes.
		log.Warn("Not restored first: " + xp.String(item) + " names " + r.String() + namedCluster)

		return false
	case !xp.IsProviderConfigKind(r.Kind):
		o.requested.add(item, gvk.Group, r.Name)
	}

	return true // Only what is cluster-scoped itself can have asked for a ProviderConfig.
}

// isShared reports whether cluster-scoped objects of a kind are never of one namespace only.
func isShared(group, kind string) bool {
	return !xp.IsCustomGroup(group) || xp.IsCrossplaneGroup(group) || xp.IsProviderConfigKind(kind)
}

// Progress tells what the ID does: the action starts no other operations.
func (o *Order) Progress(id string, _ *velerov1.Restore) (velero.OperationProgress, error) {
	progress := velero.OperationProgress{}
	if !noteText(id, &progress) {
		return progress, riav2.AsyncOperationsNotSupportedError()
	}

	return progress, nil
}

// Cancel has nothing to cancel.
func (o *Order) Cancel(string, *velerov1.Restore) error { return nil }
