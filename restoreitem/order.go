package restoreitem

import (
	"fmt"
	"slices"
	"strings"

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

// A Kinds knows the kinds of the cluster.
type Kinds interface {
	// Resource returns the resource of a kind and whether it is namespaced. If the kind is not
	// served, meta.IsNoMatchError is true of the error.
	Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error)
	// IsClaimKind reports whether claims are of a kind, false if the API server does not serve it.
	IsClaimKind(gvk schema.GroupVersionKind) (bool, error)
}

// Order requests what must be restored before an item: a composed resource's XR and other owners;
// an XR's CompositionRevision, Composition and XRD; a claim's whole tree; the publisher of a
// connection secret, but no claim; the package of a package revision; what a Usage uses.
type Order struct {
	Shared

	selector velero.ResourceSelector
	kinds    Kinds
	log      logrus.FieldLogger
	// awaited has the XRD of each kind that the restore has waited for.
	awaited table[schema.GroupVersionKind, string]
	// reported has the items that notes name as excluded by the resource filters.
	reported table[xp.Item, bool]
}

var _ riav2.RestoreItemAction = &Order{}

// NewOrder returns the action for what the selector selects. It serves one restore.
func NewOrder(selector velero.ResourceSelector, kinds Kinds, log logrus.FieldLogger, shared Shared) *Order {
	return &Order{Shared: shared.complete(), selector: selector, kinds: kinds, log: log}
}

// Name is not called by Velero.
func (o *Order) Name() string { return "1-order" }

// AppliesTo returns the action's selector.
func (o *Order) AppliesTo() (velero.ResourceSelector, error) { return o.selector, nil }

// Execute returns the item unchanged, with what must be restored before it. It fails if XRDCheck or
// Readiness refuses the item, or if an XR's list of composed resources can't be read.
func (o *Order) Execute(input *velero.RestoreItemActionExecuteInput) (*velero.RestoreItemActionExecuteOutput, error) {
	i := newItem(input, o.log)
	out, err := o.execute(i)
	i.logMore()
	o.remarks(i.remarks)

	return out, withErrorCode(err)
}

// execute is Execute without the code in the error.
func (o *Order) execute(i *item) (*velero.RestoreItemActionExecuteOutput, error) {
	out := &velero.RestoreItemActionExecuteOutput{}
	if xp.SkipReason(i.original) != "" {
		return out, nil
	}
	switch {
	case xp.IsConnectionSecret(i.original):
		o.Requested.secret(i.self(), true)
	case isSecret(i.original):
		o.Requested.others.put(i.self().ID(), true)
	case xp.IsRevision(i.original):
		o.Requested.required.put(i.GetName(), xp.Required(i.original))
	}
	if why, forged := o.refuses(i); !why.IsZero() {
		i.logWarning(why)
		out = out.WithoutRestore()
		out.OperationID = noteID(xp.RefTo(i.original), why.String(), forged)

		return out, nil
	}
	if err := o.XRDs.check(i.original, i.namespace); err != nil {
		return nil, err // Before it requests anything.
	}
	if err := o.Ready.check(i); err != nil {
		return nil, err
	}
	first, err := o.first(i)
	if err != nil {
		return nil, err
	}
	if xp.HasAnnotation(i.original, xp.AnnotationMustRestore) {
		// The writer of the annotation must not override the restore's filters.
		unstructured.RemoveNestedField(i.Object, "metadata", "annotations", xp.AnnotationMustRestore)
		out = velero.NewRestoreItemActionExecuteOutput(i.Unstructured)
	}
	in, left := o.inFilters(i, first)
	if inputs := o.unrestoredInputs(i); left.IsZero() {
		left = inputs
	}
	if !left.IsZero() {
		i.logWarning(left)
		out.OperationID = noteID(xp.RefTo(i.original), left.String(), false)
	}
	o.addEarly(i, in)
	out.AdditionalItems = slices.Grow(out.AdditionalItems, len(in))
	for _, e := range in {
		out.AdditionalItems = append(out.AdditionalItems, velero.ResourceIdentifier(e))
	}
	o.Requested.expect(i.original, out.AdditionalItems, false)
	if within := o.Ready.timeout(i.restore); o.awaitKind(i, in, within) {
		out.WaitForAdditionalItems, out.AdditionalItemsReadyTimeout = true, within
	}

	return out, nil
}

func isSecret(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

// refuses returns why a restore must not take an item, if so. forged means that it is no mistake.
func (o *Order) refuses(i *item) (why reason.Message, forged bool) {
	by, reached, owned := o.Requested.publisherOf(i.original)
	switch {
	case o.isForged(i):
		return reason.BackupTampered.Messagef("%s is not restored: the name of its file is that of another kind. Find out who wrote to the backup",
			xp.String(i.original)), true
	case o.Requested.isUnexpected(i):
		return reason.BackupTampered.Messagef("%s is not restored: it is in the file of another object. Find out who wrote to the backup",
			xp.String(i.original)), true
	case reached && !owned:
		return reason.BackupTampered.Messagef("%s is not restored: %s names it, but it is not the connection secret of that, and in a namespace that is not "+
			"restored. Find out who wrote to the backup", xp.String(i.original), by), true
	default:
		return o.foreign(i), false
	}
}

// inFilters returns the items that pass the restore's filters, since Velero drops others silently.
// left names the others, and is the zero Message if there are none. Items that the resource filters
// exclude are requested all the same: only Velero knows short names.
func (o *Order) inFilters(i *item, first []xp.Item) (in []xp.Item, left reason.Message) {
	var names []string
	in = make([]xp.Item, 0, len(first))
	for _, e := range first {
		if !xp.IsValidName(e.Namespace, e.Name) {
			i.logWarning(reason.Malformed.Messagef("%s names %q, which no object can have as its name, so that is not restored first. Find out who wrote it",
				xp.String(i.original), e.Name))

			continue
		}
		comes, secret := inScope(e, i.restore), e.GroupResource == resourceSecrets
		if secret {
			to := targetNamespace(e.Namespace, i.restore)
			o.Requested.secret(xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: to, Name: e.Name}, comes && !isFiltered(e, i.restore))
		}
		switch {
		case comes:
			in = append(in, e)
		case secret && (i.GetNamespace() == "" || isClaim(i.original)) && includesSecretsOf(i.restore, e.Namespace): // Its publisher requests or awaits it.
		default:
			names = append(names, e.String())
		}
	}
	for _, e := range slices.Concat(in, o.unrequested(i)) {
		if !isFiltered(e, i.restore) {
			continue
		}
		// Thousands can run on one item or publish in Secrets, and a claim lists what its XR does.
		key, name := e, e.String()
		if e.GroupResource == resourceSecrets {
			key, name = xp.Item{GroupResource: e.GroupResource}, name+", as all Secrets"
		}
		if o.reported.add(key, true) {
			names = append(names, name)
		}
	}

	return in, leftOutByFilters(i, names)
}

// leftOutByFilters warns of what the filters leave out, and names the first few; zero if of nothing.
func leftOutByFilters(i *item, names []string) reason.Message {
	const few = 10
	if len(names) == 0 {
		return reason.Message{}
	}
	more := len(names) - few
	names = names[:min(few, len(names))]
	for n, name := range names {
		names[n] = reason.Clip(name, reason.LongestField)
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}

	return reason.LeftOutByFilters.Messagef("The filters of the restore leave out what %s belongs with: %s. If the cluster does not have it, restore again "+
		"with these namespaces and resources, and without --include-cluster-resources=false", xp.String(i.original), strings.Join(names, ", "))
}

func (o *Order) first(i *item) ([]xp.Item, error) {
	first, err := o.itemsFor(i, o.withoutClaims(i.original, namedBy(i.original)))
	if err != nil {
		return nil, err
	}
	more, listed := o.listed(i)
	if !listed {
		if more, err = o.unlisted(i); err != nil {
			return nil, err
		}
	}
	first = slices.Concat(first, more, o.publishedSecrets(i))
	if !isXR(i.original) || !restoresComposed(xp.CompositeFrom(i.original), listed, i.restore) {
		return first, nil
	}
	// They come before the XR then, and it takes them over later.
	composed, err := xp.CompositeFrom(i.original).SavedRefs()
	if err != nil {
		return nil, err
	}
	more, err = o.itemsFor(i, composed)

	return append(first, more...), err
}

// namedBy returns the owners of an item and what it uses.
func namedBy(item *unstructured.Unstructured) []xp.Ref {
	var refs []xp.Ref
	if xp.IsComposed(item) || xp.IsConnectionSecret(item) || xp.IsPackageRevision(item) {
		refs = xp.Owners(item)
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

// itemOf returns the item that a reference means, and whether its kind is namespaced.
func (o *Order) itemOf(r xp.Ref) (xp.Item, bool, error) {
	gvr, namespaced, err := o.kinds.Resource(r.GroupVersionKind())
	if !namespaced {
		r.Namespace = ""
	}

	return xp.Item{GroupResource: gvr.GroupResource(), Namespace: r.Namespace, Name: r.Name}, namespaced, err
}

// itemsFor returns the items that the references of an item mean. The resource of an unserved kind
// is unknown. A namespaced item requests only items in its namespace and those that foreign checks,
// since a tenant can write any name. An item that is live is not requested again. Velero would read
// it from the backup and ask the API server for its namespace before it skips it (velero
// pkg/restore/restore.go, restoreItem), which is one request in four.
func (o *Order) itemsFor(i *item, refs []xp.Ref) ([]xp.Item, error) {
	var items []xp.Item
	for _, r := range refs {
		e, namespaced, err := o.itemOf(r)
		if meta.IsNoMatchError(err) {
			i.logWarning(reason.KindNotServed.Messagef("The kind %s is not served yet, so %s is not restored first. If this restore does not bring the kind, install "+
				"its XRD or provider, or activate it, then restore again", r.GroupVersionKind().GroupKind(), r))

			continue
		}
		if err != nil && xp.IsConnectionSecret(i.original) {
			// Its data may be nowhere else, so it is restored all the same.
			i.logWarning(reason.APIServerFailed.Messagef("%s names %s, which is not restored first, because the API server does not answer for %s: %v. Repair the API",
				xp.String(i.original), r, r.GroupVersionKind().GroupKind(), err))

			continue
		}
		if err != nil {
			return nil, apiErrorf("cannot find the resource of %s, which comes before %s: %w", r, xp.String(i.original), err)
		}
		r.Namespace = e.Namespace
		if own := i.GetNamespace(); own != "" && r.Namespace != own && (namespaced || isShared(e.Group, r.Kind)) {
			i.logWarning(reason.OutsideNamespace.Messagef("%s names %s, which is not restored first, because it is outside of its namespace",
				xp.String(i.original), r))

			continue
		}
		if ofNamespaces(i.restore) && !namespaced && !o.requestClusterScoped(i, r) {
			continue
		}
		r.Namespace = targetNamespace(r.Namespace, i.restore)
		if !o.Requested.live.has(r.ID()) {
			items = append(items, e)
		}
	}

	return items, nil
}

// requestClusterScoped reports whether in a restore of namespaces an item may request something
// cluster-scoped. It records the request, or warns.
func (o *Order) requestClusterScoped(i *item, r xp.Ref) bool {
	var why reason.Code
	switch gvk := r.GroupVersionKind(); {
	case xp.IsPlatformKind(gvk):
		// foreign would refuse it, and Velero comes to it only once: who runs on it would lack it.
		why = reason.PlatformLeftOut
	case !xp.IsCustomGroup(gvk.Group):
		why = reason.ClusterScopedLeftOut // This plugin's actions don't see it when it comes.
	case !xp.IsProviderConfigKind(r.Kind): // Only a cluster-scoped item can have requested a ProviderConfig.
		o.Requested.add(i.original, gvk.Group, r.Name)
	}
	if why != "" {
		i.logWarning(why.Messagef("%s names %s, which is not restored first: %s", xp.String(i.original), r, notFirst[why]))
	}

	return why == ""
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
