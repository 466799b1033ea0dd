package restoreitem

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	riav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/restoreitemaction/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A ResourceMapper returns the resource of a kind and whether it is namespaced. If the kind is not
// served, meta.IsNoMatchError is true of the error.
type ResourceMapper interface {
	Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error)
}

// A ResourceMapperFn is a function that is a ResourceMapper.
type ResourceMapperFn func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error)

// Resource calls the function.
func (fn ResourceMapperFn) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	return fn(gvk)
}

// ClaimKinds know which kinds are claims.
type ClaimKinds interface {
	// IsClaimKind reports whether claims are of a kind, false if the API server does not serve it.
	IsClaimKind(gvk schema.GroupVersionKind) (bool, error)
}

// Order requests what must be restored before an item: a composed resource's XR and other owners;
// an XR's CompositionRevision, Composition and XRD; a claim's whole tree; the publisher of a
// connection secret, but no claim; the package of a package revision; what a Usage uses.
type Order struct {
	Shared

	selector velero.ResourceSelector
	mapper   ResourceMapper
	log      logrus.FieldLogger
	awaited  sync.Map // Keys are definedKinds.
	// reported has the items that notes name as excluded by the resource filters.
	reported sync.Map
}

var _ riav2.RestoreItemAction = &Order{}

// NewOrder returns the action for what the selector selects. It serves one restore.
func NewOrder(selector velero.ResourceSelector, mapper ResourceMapper, log logrus.FieldLogger, shared Shared) *Order {
	return &Order{Shared: shared.complete(), selector: selector, mapper: mapper, log: log}
}

// Name is not called by Velero.
func (o *Order) Name() string { return "1-order" }

// AppliesTo returns the action's selector.
func (o *Order) AppliesTo() (velero.ResourceSelector, error) { return o.selector, nil }

// Execute returns the item unchanged, with what must be restored before it. It fails if XRDCheck or
// Readiness refuses the item, or if an XR's list of composed resources can't be read.
func (o *Order) Execute(input *velero.RestoreItemActionExecuteInput) (*velero.RestoreItemActionExecuteOutput, error) {
	o.warned.begin()
	out, err := o.execute(input)
	o.warnOfMore(&unstructured.Unstructured{Object: input.ItemFromBackup.UnstructuredContent()}, o.log)

	return out, withErrorCode(err)
}

// execute is Execute without the code in the error.
func (o *Order) execute(input *velero.RestoreItemActionExecuteInput) (*velero.RestoreItemActionExecuteOutput, error) {
	item := &unstructured.Unstructured{Object: input.ItemFromBackup.UnstructuredContent()}
	out := &velero.RestoreItemActionExecuteOutput{}
	if xp.SkipReason(item) != "" {
		return out, nil
	}
	if r := xp.RefTo(item); r.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		r.Namespace = targetNamespace(r.Namespace, input.Restore)
		if xp.IsConnectionSecret(item) {
			o.Requested.secret(r, true)
		} else {
			o.Requested.others.Store(r.ID(), true)
		}
	}
	if xp.IsRevision(item) {
		o.Requested.required.Store(item.GetName(), xp.Required(item))
	}
	if why, forged := o.refuses(item, input.Restore); !why.IsZero() {
		out = out.WithoutRestore()
		out.OperationID = noteID(xp.RefTo(item), why.String(), forged)

		return out, nil
	}
	if err := o.XRDs.check(item, targetNamespace(item.GetNamespace(), input.Restore)); err != nil {
		return nil, err // Before it requests anything.
	}
	if err := o.Ready.check(item, input.Restore, o.log); err != nil {
		return nil, err
	}
	first, err := o.first(item, input.Restore)
	if err != nil {
		return nil, err
	}
	if xp.HasAnnotation(item, xp.AnnotationMustRestore) {
		// The writer of the annotation must not override the restore's filters.
		u := &unstructured.Unstructured{Object: input.Item.UnstructuredContent()}
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", xp.AnnotationMustRestore)
		out = velero.NewRestoreItemActionExecuteOutput(u)
	}
	in, left := o.inFilters(item, first, input.Restore)
	if left.IsZero() {
		left = o.unrestoredInputs(item, input.Restore)
	}
	if !left.IsZero() {
		out.OperationID = noteID(xp.RefTo(item), left.String(), false)
	}
	o.addEarly(item, in)
	out.AdditionalItems = slices.Grow(out.AdditionalItems, len(in))
	o.Requested.expect(item, in)
	for _, i := range in {
		out.AdditionalItems = append(out.AdditionalItems, velero.ResourceIdentifier{GroupResource: i.GroupResource, Namespace: i.Namespace, Name: i.Name})
	}
	if within := o.Ready.timeout(input.Restore); o.awaitKind(item, out.AdditionalItems, within) {
		out.WaitForAdditionalItems, out.AdditionalItemsReadyTimeout = true, within
	}

	return out, nil
}

// refuses returns why a restore must not take an item, the zero Message if it may. forged means
// that the backup was tampered with.
func (o *Order) refuses(item *unstructured.Unstructured, restore *velerov1.Restore) (why reason.Message, forged bool) {
	by, reached, owned := o.Requested.publisherOf(item)
	switch {
	case o.isForged(item, restore):
		why, forged = reason.BackupTampered.Messagef("%s is not restored: the name of its file is that of another kind. Find out who wrote to the backup",
			xp.String(item)), true
	case o.Requested.isUnexpected(item, restore):
		why, forged = reason.BackupTampered.Messagef("%s is not restored: it is in the file of another object. Find out who wrote to the backup",
			xp.String(item)), true
	case reached && !owned:
		why, forged = reason.BackupTampered.Messagef("%s is not restored: %s names it, but it is not the connection secret of that, and in a namespace that is not "+
			"restored. Find out who wrote to the backup", xp.String(item), by), true
	default:
		why = o.foreign(item, restore)
	}
	if !why.IsZero() {
		o.warn(o.log.WithFields(logrus.Fields{"kind": item.GetKind(), "namespace": item.GetNamespace(), "name": item.GetName()}), why)
	}

	return why, forged
}

// inFilters returns the items that pass the restore's filters, since Velero drops others silently.
// left is a warning that names the others, the zero Message if there are none. Items that the
// resource filters exclude are requested all the same: only Velero knows short names.
func (o *Order) inFilters(item *unstructured.Unstructured, first []xp.Item, restore *velerov1.Restore) (in []xp.Item, left reason.Message) {
	const few = 10
	var named []string
	more := 0
	leave := func(name string) {
		if len(named) < few {
			named = append(named, reason.Clip(name, reason.LongestField))
		} else {
			more++
		}
	}
	in = make([]xp.Item, 0, len(first))
	for _, i := range first {
		if !xp.IsValidName(i.Namespace, i.Name) {
			o.warn(o.log.WithFields(logrus.Fields{"object": xp.String(item), "item": i.String()}), reason.Malformed.Messagef("%s names %q, which no object can have as "+
				"its name, so that is not restored first. Find out who wrote it", xp.String(item), i.Name))

			continue
		}
		comes := inScope(i, restore)
		if i.GroupResource == resourceSecrets {
			o.Requested.secret(xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: targetNamespace(i.Namespace, restore), Name: i.Name}, comes && takesSecrets(restore))
		}
		if !comes {
			if !isReachedLater(item, i, restore) {
				leave(i.String())
			}

			continue
		}
		in = append(in, i)
	}
	for _, i := range slices.Concat(in, o.unrequested(item, restore)) {
		if !isFiltered(i, restore) {
			continue
		}
		// Thousands of XRs can run on the same item, a claim lists what its XR does, and each MR
		// can publish in a Secret.
		key, name := i, i.String()
		if i.GroupResource == resourceSecrets {
			key, name = xp.Item{GroupResource: i.GroupResource}, name+", as all Secrets"
		}
		if _, reported := o.reported.LoadOrStore(key, true); !reported {
			leave(name)
		}
	}
	if len(named) == 0 {
		return in, left
	}
	if more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	left = reason.LeftOutByFilters.Messagef("The filters of the restore leave out what %s belongs with: %s. If the cluster does not have it, restore again "+
		"with these namespaces and resources, and without --include-cluster-resources=false", xp.String(item), strings.Join(named, ", "))
	o.warn(o.log.WithFields(logrus.Fields{"object": xp.String(item), "items": named}), left)

	return in, left
}

// isReachedLater reports whether an entry of the item's list is a connection secret that its
// publisher requests or waits for.
func isReachedLater(item *unstructured.Unstructured, i xp.Item, restore *velerov1.Restore) bool {
	return i.GroupResource == resourceSecrets && (item.GetNamespace() == "" || isClaim(item)) && includesSecretsOf(restore, i.Namespace)
}

func (o *Order) first(item *unstructured.Unstructured, restore *velerov1.Restore) ([]xp.Item, error) {
	first, err := o.itemsFor(item, o.withoutClaims(item, o.named(item)), restore)
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
	// They come before the XR then, without it as their owner. It is paused from its creation on,
	// and takes them over later.
	composed, err := xp.CompositeFrom(item).SavedRefs()
	if err != nil {
		return nil, err
	}
	more, err = o.itemsFor(item, composed, restore)

	return append(first, more...), err
}

// named returns the owners of an item and what it uses.
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
		return publishes && r.ID() == published.ID() // The Secret must come after its publisher, or it has no controller.
	})
}

// restoresComposed reports whether nothing but the XR requests what it composes. In a restore by
// labels its resources may lack the labels. If a claim comes by its namespace and has no list on
// its stored copy, nothing else requests cluster-scoped ones.
func restoresComposed(xr xp.Composite, listed bool, restore *velerov1.Restore) bool {
	_, claimed := xr.ClaimRef()

	return isSelective(restore) && !claimed || ofNamespaces(restore) && claimed && !listed
}

// itemsFor returns the items that the references of an item mean. The resource of an unserved kind
// is unknown. A namespaced item requests only items in its namespace and those that foreign checks,
// since a tenant can write any name. An item that is live is not requested again. Velero would read
// it from the backup and ask the API server for its namespace before it skips it (velero
// pkg/restore/restore.go, restoreItem), which is one request in four.
func (o *Order) itemsFor(item *unstructured.Unstructured, refs []xp.Ref, restore *velerov1.Restore) ([]xp.Item, error) {
	var items []xp.Item
	for _, r := range refs {
		gvr, namespaced, err := o.mapper.Resource(r.GroupVersionKind())
		log := o.log.WithFields(logrus.Fields{"object": xp.String(item), "reference": r.String()})
		if meta.IsNoMatchError(err) {
			o.warn(log, reason.KindNotServed.Messagef("The kind %s is not served yet, so %s is not restored first. If this restore does not bring the kind, install "+
				"its XRD or provider, or activate it, then restore again", r.GroupVersionKind().GroupKind(), r))

			continue
		}
		if err != nil && xp.IsConnectionSecret(item) {
			// Its data may be nowhere else, so it is restored all the same.
			o.warn(log, reason.APIServerFailed.Messagef("%s names %s, which is not restored first, because the API server does not answer for %s: %v. Repair the API",
				xp.String(item), r, r.GroupVersionKind().GroupKind(), err))

			continue
		}
		if err != nil {
			return nil, apiErrorf("cannot find the resource of %s, which comes before %s: %w", r, xp.String(item), err)
		}
		if !namespaced {
			r.Namespace = ""
		}
		if own := item.GetNamespace(); own != "" && r.Namespace != own && (namespaced || isShared(gvr.Group, r.Kind)) {
			o.warn(log, reason.OutsideNamespace.Messagef("%s names %s, which is not restored first, because it is outside of its namespace", xp.String(item), r))

			continue
		}
		if ofNamespaces(restore) && !namespaced && !o.requestClusterScoped(item, r, log) {
			continue
		}
		target := r
		target.Namespace = targetNamespace(r.Namespace, restore)
		if o.Requested.isLive(target) {
			continue
		}
		items = append(items, xp.Item{GroupResource: gvr.GroupResource(), Namespace: r.Namespace, Name: r.Name})
	}

	return items, nil
}

// requestClusterScoped reports whether in a restore of namespaces an item may request something
// cluster-scoped, and records the request.
func (o *Order) requestClusterScoped(item *unstructured.Unstructured, r xp.Ref, log logrus.FieldLogger) bool {
	gvk := r.GroupVersionKind()
	switch {
	case xp.IsPlatformKind(gvk):
		// foreign would refuse it. Velero comes to an item only once, so the XRs that run on it
		// would lack it.
		o.warnOfReference(log, item, r, reason.PlatformLeftOut)

		return false
	case !xp.IsCustomGroup(gvk.Group):
		// This plugin's actions don't see it when it comes.
		o.warnOfReference(log, item, r, reason.ClusterScopedLeftOut)

		return false
	case !xp.IsProviderConfigKind(r.Kind):
		o.Requested.add(item, gvk.Group, r.Name)
	}

	return true // Only a cluster-scoped item can have requested a ProviderConfig.
}

// warnOfReference warns of what an item names and does not request.
func (o *Order) warnOfReference(log logrus.FieldLogger, item *unstructured.Unstructured, r xp.Ref, why reason.Code) {
	o.warn(log, why.Messagef("%s names %s, which is not restored first: %s", xp.String(item), r, notFirst[why]))
}

// isShared reports whether cluster-scoped objects of a kind never belong to one namespace only.
func isShared(group, kind string) bool {
	return !xp.IsCustomGroup(group) || xp.IsCrossplaneGroup(group) || xp.IsProviderConfigKind(kind)
}

// Progress reports the note in the ID. The action starts no other operations.
func (o *Order) Progress(id string, _ *velerov1.Restore) (velero.OperationProgress, error) {
	progress := velero.OperationProgress{}
	if !noteText(id, &progress) {
		return progress, riav2.AsyncOperationsNotSupportedError()
	}

	return progress, nil
}

// Cancel has nothing to cancel.
func (o *Order) Cancel(string, *velerov1.Restore) error { return nil }
