package restoreitem

import (
	"context"
	"fmt"
	"slices"

	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// choices are a user's choices for a held copy.
const choices = "Delete the copy and restore again with the annotation " + setting.Prefix + setting.NameClone + "=observe or =new on the Restore, or delete " +
	"the original first and keep its external resources"

// A liveDuplicate is a live object that manages or composes what an item would.
type liveDuplicate struct {
	xp.Ref

	// foreign means that it is not in the namespace of the backup that the item comes from. A user
	// of its namespace can have forged it, so an item may have to wait for it, and nothing else.
	foreign bool
}

// copy restores an item that is a copy of a live object; nil if it is none.
func (a *Adopt) copy(i *item) (*velero.RestoreItemActionExecuteOutput, error) {
	if len(i.restore.Spec.NamespaceMapping) == 0 {
		other, err := a.movedTo(i)
		if err != nil || other == nil {
			return nil, err
		}

		return a.holdDuplicate(i, *other)
	}
	xp.MapNamespaces(i.Unstructured, i.restore.Spec.NamespaceMapping)
	of, err := a.cloneOf(i)
	if err != nil || of == nil {
		return nil, err
	}

	return a.clone(i, *of)
}

// cloneOf returns the live object of which the item is a copy in another namespace, nil if there is
// none: its original, if it is an XR or a claim; its original controller, if it is composed or a
// connection secret; any other MR that manages the same external resource.
func (a *Adopt) cloneOf(i *item) (*liveDuplicate, error) {
	if i.namespace == i.GetNamespace() {
		return nil, nil //nolint:nilnil // It is not a copy.
	}
	self := xp.RefTo(i.original)
	var originals []xp.Ref
	if i.isHeld() {
		originals = append(originals, self)
	}
	if c, ok := xp.Controller(i.original); ok && (xp.IsComposed(i.original) || xp.IsConnectionSecret(i.original)) {
		// Cluster-scoped objects are not copied.
		originals = append(originals, xp.Ref{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: i.GetNamespace(), Name: c.Name})
	}
	for _, o := range originals {
		if live, err := a.cluster.Exists(context.Background(), o); err != nil {
			return nil, apiErrorf("cannot find out whether %s is a copy of something alive: %w", self, err)
		} else if live {
			return &liveDuplicate{Ref: o}, nil
		}
	}
	name := i.GetAnnotations()[xp.AnnotationExternalName]
	if !xp.IsManaged(i.original) || name == "" {
		return nil, nil //nolint:nilnil // It manages nothing yet.
	}
	named, err := a.cluster.Named(context.Background(), i.GroupVersionKind(), name)
	if err != nil {
		return nil, apiErrorf("cannot find out who else manages the external resource of %s: %w", self, err)
	}

	return i.duplicateAmong(named), nil
}

// duplicateAmong returns an MR among named that manages the item's external resource, nil if none
// does. An external-name is known within an account, and an MR that only observes does no harm. In
// the original namespace the name is enough: the original may have another account by now.
func (i *item) duplicateAmong(named []xp.Managing) *liveDuplicate {
	var found *liveDuplicate
	account := i.providerConfig()
	for _, m := range named {
		switch {
		case m.ID() == i.self().ID(): // An item that is restored again is no copy of itself.
		case m.Namespace == i.GetNamespace():
			return &liveDuplicate{Ref: m.Ref}
		case m.Account == account && !m.Observes && found == nil:
			found = &liveDuplicate{Ref: m.Ref, foreign: true}
		}
	}

	return found
}

// movedTo returns an MR that an earlier restore created in another namespace and that manages the
// item's external resource; nil if there is none. It has the item's name, and a ProviderConfig of
// the same name. The original no longer exists.
func (a *Adopt) movedTo(i *item) (*xp.Ref, error) {
	name := i.GetAnnotations()[xp.AnnotationExternalName]
	if i.namespace == "" || name == "" || !i.isManaged() || xp.OnlyObserves(i.original) {
		return nil, nil //nolint:nilnil // It can't be elsewhere, or does no harm.
	}
	moved, err := a.cluster.Moved(context.Background(), i.GroupVersionKind(), name)
	if err != nil {
		return nil, apiErrorf("cannot find out whether %s was restored to another namespace: %w", xp.String(i.original), err)
	}
	account := i.providerConfig()
	n := slices.IndexFunc(moved, func(m xp.Managing) bool {
		same := m.Name == i.GetName() && m.Account.Kind == account.Kind && m.Account.Name == account.Name

		return same && m.Namespace != i.namespace && !m.Observes
	})
	if n < 0 {
		return nil, nil //nolint:nilnil // It is nowhere else.
	}

	return &moved[n].Ref, nil
}

// providerConfig returns the ProviderConfig of an MR in the target namespace.
func (i *item) providerConfig() xp.Ref {
	account := xp.AccountOf(i.original)
	account.Namespace = targetNamespace(account.Namespace, i.restore)

	return account
}

// clone restores a copy of a live object in the mode of the settings.
func (a *Adopt) clone(i *item, of liveDuplicate) (*velero.RestoreItemActionExecuteOutput, error) {
	i.log = i.log.WithField("original", of.String())
	mode := i.settings.Clone
	if of.foreign || mode == setting.New || i.isHeld() || xp.IsManaged(i.original) {
		i.remarks = append(i.remarks, remark{copied: true})
	}
	switch {
	case of.foreign:
		return a.holdDuplicate(i, of.Ref)
	case mode == setting.New:
		return a.cloneNew(i, of.Ref)
	case mode == setting.Observe && xp.IsManaged(i.original):
		return a.cloneObserving(i, of)
	case mode == setting.Observe && xp.IsComposite(i.original):
		why := reason.CopyOfAnother.Messagef("it is a copy of %s, and the managed resources that it composes only observe", of)
		out, err := a.holdClone(i, of.Ref, why)
		if err == nil {
			out.OperationID = noteID(i.self(), why.String(), false) // The user asked for it, so it is no failure.
		}

		return out, err
	case i.isHeld() || xp.IsManaged(i.original):
		return a.holdClone(i, of.Ref, reason.CopyOfAnother.Messagef("it is a copy of %s, which exists, and both would manage the same external resources. %s",
			of, choices))
	default:
		return a.adopt(i)
	}
}

// cloneObserving restores a copy of an MR that only observes, or is held if its kind can't do that.
func (a *Adopt) cloneObserving(i *item, of liveDuplicate) (*velero.RestoreItemActionExecuteOutput, error) {
	if !xp.HasPolicies(i.original) {
		return a.holdClone(i, of.Ref, reason.CopyOfAnother.Messagef("it is a copy of %s, and its kind has no managementPolicies with which it could only observe "+
			"the same external resource. %s", of, choices))
	}
	if err := hold.RemoveBackedUpHold(i.Unstructured); err != nil {
		return nil, err
	}
	if err := unstructured.SetNestedStringSlice(i.Object, []string{"Observe"}, "spec", "managementPolicies"); err != nil {
		return nil, fmt.Errorf("cannot make %s observe only: %w", xp.String(i.original), err)
	}
	i.warn(reason.CopyObserves.Messagef("The copy only observes: %s manages the same external resource", of))

	return a.adopt(i)
}

// holdClone restores a held copy without the finalizers of Crossplane and providers. A user can
// delete it, and nothing else happens.
func (a *Adopt) holdClone(i *item, of xp.Ref, why reason.Message) (*velero.RestoreItemActionExecuteOutput, error) {
	i.copied = true
	if i.isOwned() {
		if _, err := a.relink(i); err != nil {
			return nil, err
		}
	}

	return a.holdBecauseOf(i, of, why)
}

// holdDuplicate holds an MR until a user has found out whether another MR, which is not in the
// item's original namespace, manages its external resource. In all else the item is like any other.
func (a *Adopt) holdDuplicate(i *item, other xp.Ref) (*velero.RestoreItemActionExecuteOutput, error) {
	if refused, err := a.refuses(i); err != nil || refused {
		return (&velero.RestoreItemActionExecuteOutput{}).WithoutRestore(), err
	}
	i.keepGenerateName()
	with := "the same external-name and " + i.providerConfig().String()
	if i.providerConfig().Name == "" {
		with = "the same external-name, and also names no ProviderConfig"
	}

	return a.holdBecauseOf(i, other, reason.PossibleDuplicate.Messagef("%s has %s, so both may manage one external resource. If it belongs to this one, set "+
		"the other to observe only, then delete this one and restore again", other, with))
}

func (a *Adopt) holdBecauseOf(i *item, of xp.Ref, why reason.Message) (*velero.RestoreItemActionExecuteOutput, error) {
	if err := a.putHold(i, hold.Hold{Clone: of.String(), Reason: why.String()}); err != nil {
		return nil, err
	}
	i.SetFinalizers(slices.DeleteFunc(i.GetFinalizers(), func(f string) bool {
		return f == xp.FinalizerComposite || f == xp.FinalizerClaim || f == xp.FinalizerManaged
	}))
	xp.StripBackupMetadata(i.Unstructured)
	withCode(i.log, why).Warnf("Restored and held: %s", why)
	i.remarks = append(i.remarks, remark{Message: why, warns: true})
	out := velero.NewRestoreItemActionExecuteOutput(i.Unstructured)
	if i.isHeld() || !xp.IsComposed(i.original) {
		out.OperationID = operationID(i.self()) // The operation fails, so that the restore does not look complete. That of an XR covers what it composes.
	}

	return out, nil
}

// cloneNew restores an XR or a claim without its composed resources, and leaves those out. A
// standalone MR creates an external resource of its own, unless its external-name is its name.
func (a *Adopt) cloneNew(i *item, of xp.Ref) (*velero.RestoreItemActionExecuteOutput, error) {
	if err := hold.RemoveBackedUpHold(i.Unstructured); err != nil {
		return nil, err
	}
	switch {
	case xp.IsComposed(i.original) || xp.IsConnectionSecret(i.original):
		why := reason.CopyCreates.Messagef("It is not restored: it belongs to %s, and the copy of that creates its own", of)
		withCode(i.log, why).Info(why)
		i.remarks = append(i.remarks, remark{Message: why})

		return (&velero.RestoreItemActionExecuteOutput{}).WithoutRestore(), nil
	case xp.IsManaged(i.original) && xp.Annotation(i.Unstructured, xp.AnnotationExternalName) == i.GetName():
		return a.holdClone(i, of, reason.CopyOfAnother.Messagef("it is a copy of %s with the same name, which is also that of the external resource. If you need "+
			"another one, create a managed resource with another name", of))
	case xp.IsComposite(i.original):
		xp.CompositeFrom(i.Unstructured).RemoveResourceRefs()
	case xp.IsClaim(i.original):
		unstructured.RemoveNestedField(i.Object, "spec", "resourceRef")
	}
	for _, name := range []string{xp.AnnotationExternalName, xp.AnnotationCreatePending, xp.AnnotationCreateSucceeded, xp.AnnotationCreateFailed} {
		unstructured.RemoveNestedField(i.Object, "metadata", "annotations", name)
	}
	xp.StripBackupMetadata(i.Unstructured)
	i.warn(reason.CopyCreates.Messagef("It is a copy of %s, which exists, and creates external resources of its own", of))
	out := velero.NewRestoreItemActionExecuteOutput(i.Unstructured)
	if !i.isQuarantined() && !i.settings.ByHand || !i.isHeld() && !i.isManaged() {
		return out, nil
	}
	if err := a.putHold(i, hold.Hold{Quarantine: i.isQuarantined(), ByHand: i.settings.ByHand}); err != nil {
		return nil, err
	}
	out.OperationID = operationID(i.self())

	return out, nil
}
