package restoreitem

import (
	"fmt"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	riav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/restoreitemaction/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A ResourceMapper says which resource a kind is and whether it is namespaced. It returns an error that meta.IsNoMatchError knows if the
// kind is not served.
type ResourceMapper interface {
	Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error)
}

// A ResourceMapperFn is a function that is a ResourceMapper.
type ResourceMapperFn func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error)

// Resource calls the function.
func (fn ResourceMapperFn) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	return fn(gvk)
}

// Order asks Velero to restore first what must be there before an item: a composed resource's XR, an XR's CompositionRevision, Composition
// and XRD, a claim's whole tree, and the owner of a connection secret.
type Order struct {
	mapper ResourceMapper
	log    logrus.FieldLogger
}

var _ riav2.RestoreItemAction = &Order{}

// NewOrder returns the action.
func NewOrder(mapper ResourceMapper, log logrus.FieldLogger) *Order {
	return &Order{mapper: mapper, log: log}
}

// Name is not called by Velero.
func (o *Order) Name() string { return "1-order" }

// AppliesTo selects what Crossplane may have to do with: custom resources, and Secrets, which Velero would restore before all of these.
func (o *Order) AppliesTo() (velero.ResourceSelector, error) {
	return applicable(), nil
}

func applicable() velero.ResourceSelector {
	include, exclude := xp.Custom()

	return velero.ResourceSelector{IncludedResources: append(include, "secrets"), ExcludedResources: exclude}
}

// Execute returns the item as it is, with what must be restored before it. It fails if the backup's list of it can't be read.
func (o *Order) Execute(input *velero.RestoreItemActionExecuteInput) (*velero.RestoreItemActionExecuteOutput, error) {
	item := &unstructured.Unstructured{Object: input.ItemFromBackup.UnstructuredContent()}
	out := &velero.RestoreItemActionExecuteOutput{}
	if xp.Rebuilt(item) != "" {
		return out, nil
	}
	first, err := o.first(item)
	if err != nil {
		return nil, err
	}
	for _, i := range first {
		out.AdditionalItems = append(out.AdditionalItems, velero.ResourceIdentifier{GroupResource: i.GroupResource, Namespace: i.Namespace, Name: i.Name})
	}

	return out, nil
}

func (o *Order) first(item *unstructured.Unstructured) ([]xp.Item, error) {
	var first []xp.Item
	if owner, ok := xp.Controller(item); ok && (xp.IsComposed(item) || xp.IsConnectionSecret(item)) {
		ref := xp.Ref{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: item.GetNamespace(), Name: owner.Name}
		i, err := o.item(ref)
		if err != nil {
			return nil, fmt.Errorf("cannot order %s after its controller: %w", xp.String(item), err)
		}
		first = append(first, i...)
	}
	if !xp.IsComposite(item) && !xp.IsClaim(item) {
		return first, nil
	}
	tree, ok, err := xp.Tree(item)
	if err != nil {
		// A backup that this plugin took part in has one that can be read.
		o.log.WithError(err).Warn("The list of what to restore first is not this plugin's; going by what the item itself says")
	}
	if ok && err == nil {
		return append(first, tree...), nil
	}
	// Without the plugin at backup time the best that is known is what the item itself says.
	if xp.IsComposite(item) {
		more, err := o.prerequisites(xp.CompositeFrom(item))

		return append(first, more...), err
	}
	if ref, ok := xp.ClaimFrom(item).CompositeRef(); ok {
		more, err := o.item(ref)

		return append(first, more...), err
	}

	return first, nil
}

func (o *Order) prerequisites(c xp.Composite) ([]xp.Item, error) {
	var items []xp.Item
	if name := c.Revision(); name != "" {
		items = append(items, xp.Item{GroupResource: xp.ResourceRevision, Name: name})
	}
	if name := c.Composition(); name != "" {
		items = append(items, xp.Item{GroupResource: xp.ResourceComposition, Name: name})
	}
	gvr, _, err := o.mapper.Resource(c.GroupVersionKind())
	if meta.IsNoMatchError(err) {
		return items, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find the XRD of %s: %w", xp.String(c.Unstructured), err)
	}

	return append(items, xp.Item{GroupResource: xp.ResourceXRD, Name: gvr.GroupResource().String()}), nil
}

// item returns what r names as Velero names it. An unserved kind can't be restored, so there is nothing to wait for.
func (o *Order) item(r xp.Ref) ([]xp.Item, error) {
	gvr, namespaced, err := o.mapper.Resource(r.GroupVersionKind())
	if meta.IsNoMatchError(err) {
		o.log.WithFields(logrus.Fields{"kind": r.GroupVersionKind().GroupKind().String(), "name": r.Name}).
			Warn("The kind is not served here, so the object can't be restored; install its XRD or provider, then restore again")

		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find the resource of %s: %w", r, err)
	}
	if !namespaced {
		r.Namespace = ""
	}

	return []xp.Item{{GroupResource: gvr.GroupResource(), Namespace: r.Namespace, Name: r.Name}}, nil
}

// Progress has nothing to tell: the action starts no operation.
func (o *Order) Progress(string, *velerov1.Restore) (velero.OperationProgress, error) {
	return velero.OperationProgress{}, riav2.AsyncOperationsNotSupportedError()
}

// Cancel has nothing to cancel.
func (o *Order) Cancel(string, *velerov1.Restore) error { return nil }

// AreAdditionalItemsReady is not asked: existence is enough, and Velero restores in order.
func (o *Order) AreAdditionalItemsReady([]velero.ResourceIdentifier, *velerov1.Restore) (bool, error) {
	return true, nil
}
