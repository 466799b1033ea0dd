package explorer

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov "github.com/vmware-tanzu/velero/pkg/plugin/velero"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/restoreitem"
)

// An actionResult is what the plugin's action returns for an item. asks is true if its status is to
// be restored.
type actionResult struct {
	object  object
	leftOut bool
	// failed is true if the action leaves it out with an error.
	failed bool
	// reported is true if the plugin reports that it comes without its owner.
	reported bool
	asks     bool
}

// An actionInput is what the plugin sees when Velero calls it for an item.
type actionInput struct {
	item    instance
	owner   object
	refused set
}

// theRestore has created all restored objects. anotherRestore is a later one.
var (
	theRestore     = &velerov1.Restore{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "monday"}}
	anotherRestore = &velerov1.Restore{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "tuesday"}}
)

func discardLog() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)

	return log
}

// A cluster is what the plugin's restore actions see: the owner of an item.
type cluster struct {
	owner *unstructured.Unstructured
	key   hold.Key
}

func (c cluster) Owner(_ context.Context, ref metav1.OwnerReference, _ string) (*unstructured.Unstructured, error) {
	if c.owner == nil || c.owner.GetKind() != ref.Kind || c.owner.GetName() != ref.Name {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, ref.Name)
	}

	return c.owner, nil
}

func (cluster) Exists(context.Context, xp.Ref) (bool, error) { return false, nil }

func (cluster) ExistsNow(context.Context, xp.Ref) (bool, error) { return false, nil }

func (cluster) Named(context.Context, schema.GroupVersionKind, string) ([]xp.Managing, error) {
	return nil, nil
}

// Composing returns none.
func (cluster) Composing(context.Context, hold.Key, schema.GroupVersionKind, string) ([]xp.Ref, error) {
	return nil, nil
}

// Moved returns none.
func (cluster) Moved(context.Context, schema.GroupVersionKind, string) ([]xp.Managing, error) {
	return nil, nil
}

func (cluster) IsReconciled(context.Context, schema.GroupVersionKind) (bool, error) { return true, nil }

func (cluster) ServerTime(own time.Time) time.Time { return own }

func (cluster) ReturnStatus(context.Context, hold.Key, xp.Ref, map[string]any) error { return nil }

func (c cluster) MarkKey(context.Context, string) (hold.Key, error) { return c.key, nil }

func (cluster) Settings(context.Context, string) (map[string]string, error) {
	return map[string]string{}, nil
}

// input returns an item as Velero passes it to an action (velero pkg/restore/restore.go,
// resetMetadataAndStatus).
func (w *world) input(original *unstructured.Unstructured) *velerov.RestoreItemActionExecuteInput {
	in := input(original)
	if w.applied || w.git {
		in.Restore = theRestore
	}

	return in
}

// input returns an item as another restore passes it.
func input(original *unstructured.Unstructured) *velerov.RestoreItemActionExecuteInput {
	u := xptest.With(original, xptest.Without("status"))
	for _, field := range []string{"generateName", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "ownerReferences"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}

	return &velerov.RestoreItemActionExecuteInput{Item: u, ItemFromBackup: original.DeepCopy(), Restore: anotherRestore}
}

// resultOf runs the plugin's action on an item.
func (w *world) resultOf(s *state, i instance) actionResult {
	look := actionInput{item: i, refused: s.velero.refused}
	by := w.ownerOf(i)
	if by >= 0 {
		look.owner = s.objects[by]
	}
	m, ok := w.seen[look]
	if !ok {
		m = w.execute(look, by)
		w.seen[look] = m
	}

	return m
}

// ownerOf returns the instance of an item's owner, or the XR of a claim; -1 if there is none.
func (w *world) ownerOf(i instance) instance {
	switch {
	case i == theClaim:
		return original(0)
	case w.parent[nodeOf(i)] < 0:
		return -1
	default:
		return original(w.parent[nodeOf(i)])
	}
}

func (w *world) execute(look actionInput, by instance) actionResult {
	c := &cluster{key: w.key}
	action := restoreitem.NewAdopt(restoreitem.Crossplane(), c, nil, discardLog(), restoreitem.Shared{})
	for n := range w.parent {
		if look.refused.has(n) && w.parent[n] >= 0 {
			// One process runs a whole restore, and remembers what it has left out: what the
			// unpaused XR does not list.
			c.owner = w.encode(original(w.parent[n]), object{live: true, life: 1, revision: 1})
			_, err := action.Execute(w.input(w.backup[original(n)]))
			must(w.mayFail(err))
		}
	}
	c.owner = nil
	if by >= 0 && look.owner.live {
		c.owner = w.encode(by, look.owner)
	}
	item := w.backup[look.item]
	out, err := action.Execute(w.input(item))
	must(w.mayFail(err))
	if err != nil {
		return actionResult{leftOut: true, failed: true}
	}
	if out.SkipRestore {
		return actionResult{leftOut: true, failed: strings.HasPrefix(out.OperationID, "failed: ")}
	}
	reported := strings.Contains(out.OperationID, "["+string(reason.RestoredWithoutOwner)+"]")
	u := &unstructured.Unstructured{Object: input(item).Item.UnstructuredContent()}
	if out.UpdatedItem != nil {
		u = &unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}
	}
	w.mutate(u, item)
	m := actionResult{reported: reported, asks: u.GetAnnotations()[xp.AnnotationRestoreStatus] == "true"}
	m.object = w.decode(u, object{live: true, restored: true, finalizer: true})
	if look.item != theClaim && !w.isXR(look.item) {
		m.object.external = uint8(nodeOf(look.item) + 1)
	}
	if w.isXR(look.item) {
		m.object.revision = 1
		for _, child := range w.children(nodeOf(look.item)) {
			m.object.refs |= with(original(child))
		}
	}

	return m
}

// mutate removes from an item what the mutation removes, and fixes the time.
func (w *world) mutate(u, item *unstructured.Unstructured) {
	if w.noHold {
		must(hold.RemoveBackedUpHold(u))
	}
	if w.noOwners {
		u.SetOwnerReferences(nil)
	}
	if w.oldUIDs {
		u.SetOwnerReferences(item.GetOwnerReferences())
	}
	h, err := hold.Of(u)
	must(err)
	if h == nil {
		return
	}
	h.Since = noon.Format(time.RFC3339) // The action's clock would make two states of one.
	if w.noStatus {
		h.Status = nil
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", xp.AnnotationRestoreStatus)
	}
	if w.noConditions {
		h.ComposedConditions = make([]xp.TrueConditions, len(h.Refs))
	}
	b, err := json.Marshal(h)
	must(err)
	xptest.Annotated(hold.Annotation, string(b))(u)
	must(w.key.Sign(u, u.GetNamespace()))
}

// orderItems finds the order in which Velero restores the items. Additional items come before their
// item (velero pkg/restore/restore.go, restoreItem), resources in alphabetical order
// (getOrderedResources).
func (w *world) orderItems() error {
	items := map[string]instance{}
	names := func(u *unstructured.Unstructured) string {
		return xptest.Resource(u) + "/" + u.GetNamespace() + "/" + u.GetName()
	}
	objects := map[instance]*unstructured.Unstructured{}
	for i, u := range w.backup {
		if u != nil {
			items[names(u)], objects[i] = i, u
		}
	}
	for n := range w.xrs {
		u := w.revision(n, 1)
		items[names(u)], objects[-1-n] = -1-n, u
	}
	kinds := kindsFn(func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
		return gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s"), w.rules != v120 && gvk.Group != xp.GroupAPIExtensions, nil
	})
	order := restoreitem.NewOrder(restoreitem.Crossplane(), kinds, discardLog(), restoreitem.Shared{})
	done := map[instance]bool{}
	var visit func(i instance) error
	visit = func(i instance) error {
		if done[i] {
			return nil
		}
		done[i] = true
		out, err := order.Execute(input(objects[i]))
		if err != nil {
			return err
		}
		for _, id := range out.AdditionalItems {
			if first, ok := items[id.String()+"/"+id.Namespace+"/"+id.Name]; ok {
				if err := visit(first); err != nil {
					return err
				}
			}
		}
		w.order = append(w.order, i)

		return nil
	}
	all := make([]string, 0, len(items))
	for name := range items {
		all = append(all, name)
	}
	slices.Sort(all)
	for _, name := range all {
		if err := visit(items[name]); err != nil {
			return err
		}
	}
	if w.reversed {
		slices.Reverse(w.order)
	}

	return nil
}

func (cluster) ReturnManagers(context.Context, *unstructured.Unstructured, xp.Ref) error { return nil }

func (cluster) Restore(context.Context, string, string) (*unstructured.Unstructured, error) {
	return &unstructured.Unstructured{}, nil
}

func (cluster) ConfigMap(context.Context, string, string) (map[string]string, error) {
	return nil, nil //nolint:nilnil // There is none.
}

// TakeOver is not called: no process here has seen the XR and what it composes (see takeOver).
func (cluster) TakeOver(
	context.Context, hold.Key, *unstructured.Unstructured, xp.Ref, hold.Hold, map[string]string,
) (*unstructured.Unstructured, error) {
	return nil, nil //nolint:nilnil // Nothing is taken over.
}

// CanTakeOver returns false: no other writer creates anything here.
func (cluster) CanTakeOver(context.Context, xp.Ref) (bool, error) { return false, nil }

// A kindsFn maps kinds, of which none is one of claims.
type kindsFn func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error)

func (fn kindsFn) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	return fn(gvk)
}

func (kindsFn) IsClaimKind(schema.GroupVersionKind) (bool, error) { return false, nil }
