package restoreitem

import (
	"context"
	"fmt"
	"slices"

	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const choices = "to choose what becomes of copies, delete them, set the annotation " + setting.Prefix + setting.NameClone + " of a new Restore to hold, " +
	"observe or new, and restore again; or delete the original first, with its external resources kept"

// fieldOriginal is in what is logged of a copy: what it is a copy of.
const fieldOriginal = "original"

// cloneOf returns what is alive in the cluster and does what the item is about to do, in a restore of a namespace to another; nil if nothing
// does. For an XR or a claim that is the original, for what an XR composed and for connection secrets that of the controller, and for an
// MR, besides, any other that manages the same external resource.
func (a *Adopt) cloneOf(i *item) (*xp.Ref, error) {
	if i.namespace == i.GetNamespace() {
		return nil, nil //nolint:nilnil // It is not a copy.
	}
	self := xp.RefTo(i.original)
	var originals []xp.Ref
	if i.isHeld() {
		originals = append(originals, self)
	}
	if c, ok := xp.Controller(i.original); ok && (xp.IsComposed(i.original) || xp.IsConnectionSecret(i.original)) {
		// What is cluster-scoped is in no namespace, and not copied.
		originals = append(originals, xp.Ref{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: i.GetNamespace(), Name: c.Name})
	}
	for _, o := range originals {
		live, err := a.cluster.Exists(context.Background(), o)
		if err != nil {
			return nil, fmt.Errorf("cannot find out whether %s is a copy of something alive: %w", self, err)
		}
		if live {
			return &o, nil
		}
	}
	name := i.GetAnnotations()[xp.AnnotationExternalName]
	if !xp.IsManaged(i.original) || name == "" {
		return nil, nil //nolint:nilnil // It manages nothing yet.
	}
	named, err := a.cluster.Named(context.Background(), i.GroupVersionKind(), name)
	if err != nil {
		return nil, fmt.Errorf("cannot find out who else manages the external resource of %s: %w", self, err)
	}
	named = slices.DeleteFunc(named, func(r xp.Ref) bool { return r.ID() == i.self().ID() })
	if len(named) == 0 {
		return nil, nil //nolint:nilnil // Nobody else.
	}

	return &named[0], nil
}

// clone restores a copy of something alive.
func (a *Adopt) clone(i *item, of xp.Ref, mode setting.Clone) (*velero.RestoreItemActionExecuteOutput, error) {
	i.log = i.log.WithField(fieldOriginal, of.String())
	switch {
	case mode == setting.New:
		return a.cloneNew(i, of)
	case mode == setting.Observe && xp.IsManaged(i.original):
		if err := adoption.TakeOff(i.Unstructured); err != nil {
			return nil, err
		}
		if err := unstructured.SetNestedStringSlice(i.Object, []string{"Observe"}, "spec", "managementPolicies"); err != nil {
			return nil, fmt.Errorf("cannot make %s observe only: %w", xp.String(i.original), err)
		}
		i.log.Warn("Restored to observe only: " + of.String() + " manages the same external resource")

		return a.adopt(i)
	case mode == setting.Observe && xp.IsComposite(i.original):
		return a.holdClone(i, of, "it is a copy of "+of.String()+", and what it composes only observes")
	case i.isHeld() || xp.IsManaged(i.original):
		out, err := a.holdClone(i, of, "it is a copy of "+of.String()+", which is alive; both would manage the same external resources; "+choices)
		if err == nil && i.isHeld() {
			out.OperationID = operationID(i.self()) // It fails, so that nobody takes the restore for complete.
		}

		return out, err
	default:
		return a.adopt(i)
	}
}

// holdClone restores a copy that does nothing, and that can be deleted as if it had never been: without the finalizers that would keep it until
// Crossplane or a provider has done its part.
func (a *Adopt) holdClone(i *item, of xp.Ref, reason string) (*velero.RestoreItemActionExecuteOutput, error) {
	i.copied = true
	if i.isOwned() {
		if _, err := a.relink(i); err != nil {
			return nil, err
		}
	}
	if _, err := a.put(i, adoption.Hold{Clone: of.String(), Reason: reason}); err != nil {
		return nil, err
	}
	i.SetFinalizers(slices.DeleteFunc(i.GetFinalizers(), func(f string) bool {
		return f == xp.FinalizerComposite || f == xp.FinalizerClaim || f == xp.FinalizerManaged
	}))
	xp.WithoutNotes(i.Unstructured)
	i.log.Warn("Restored on hold: " + reason)

	return velero.NewRestoreItemActionExecuteOutput(i.Unstructured), nil
}

// cloneNew restores an XR or a claim without what it composed, and leaves that out. An MR of its own makes an external resource of its own, if
// the provider does not take its name for that of the original's.
func (a *Adopt) cloneNew(i *item, of xp.Ref) (*velero.RestoreItemActionExecuteOutput, error) {
	if err := adoption.TakeOff(i.Unstructured); err != nil {
		return nil, err
	}
	annotations := i.GetAnnotations()
	switch {
	case xp.IsComposed(i.original) || xp.IsConnectionSecret(i.original):
		i.log.Info("Not restored: it belongs to " + of.String() + ", and the copy of that makes its own")

		return (&velero.RestoreItemActionExecuteOutput{}).WithoutRestore(), nil
	case xp.IsManaged(i.original) && annotations[xp.AnnotationExternalName] == i.GetName():
		return a.holdClone(i, of, "it is a copy of "+of.String()+" and has the same name, which is also that of the external resource; restore it under "+
			"another name by hand, if it is wanted")
	case xp.IsComposite(i.original):
		xp.CompositeFrom(i.Unstructured).RemoveResourceRefs()
	case xp.IsClaim(i.original):
		unstructured.RemoveNestedField(i.Object, "spec", "resourceRef")
	}
	for _, name := range []string{xp.AnnotationExternalName, xp.AnnotationCreatePending, xp.AnnotationCreateSucceeded, xp.AnnotationCreateFailed} {
		delete(annotations, name)
	}
	i.SetAnnotations(annotations)
	xp.WithoutNotes(i.Unstructured)
	i.log.Warn("Restored to make external resources of its own: it is a copy of " + of.String() + ", which is alive")
	out := velero.NewRestoreItemActionExecuteOutput(i.Unstructured)
	if !i.isQuarantined() && !i.settings.ByHand || !i.isHeld() && !i.isManaged() {
		return out, nil
	}
	if _, err := a.put(i, adoption.Hold{Quarantine: i.isQuarantined(), ByHand: i.settings.ByHand}); err != nil {
		return nil, err
	}
	out.OperationID = operationID(i.self())

	return out, nil
}
