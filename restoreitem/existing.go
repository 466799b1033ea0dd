package restoreitem

import (
	"context"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// isLive reports whether Velero would write the item over a live object. It looks now: another
// writer can have created the object since its kind was first read.
func (a *Adopt) isLive(i *item) (bool, error) {
	if !a.keepsExisting(i) {
		return false, nil
	}
	live, err := a.cluster.ExistsNow(context.Background(), i.self())
	if err != nil {
		return false, apiErrorf("cannot find out whether %s exists: %w", xp.String(i.original), err)
	}

	return live, nil
}

// bringOther handles an item that neither Crossplane nor a provider uses. A restore of namespaces
// changes nothing that all namespaces share. changed means that the item is.
func (a *Adopt) bringOther(i *item, changed bool) (*velero.RestoreItemActionExecuteOutput, error) {
	if i.GetNamespace() == "" && ofNamespaces(i.restore) && a.keepsExisting(i) {
		if out, err := a.keepLive(i); err != nil || out != nil {
			return out, err
		}
		a.refuseUpdate(i)
		changed = true
	}
	if changed {
		return velero.NewRestoreItemActionExecuteOutput(i.Unstructured), nil
	}

	return &velero.RestoreItemActionExecuteOutput{}, nil
}

// keepsExisting reports whether a live object stays although the Restore updates what exists.
func (a *Adopt) keepsExisting(i *item) bool {
	return i.updatesExisting() && !i.isReplaceable()
}

// updatesExisting reports whether Velero writes the backup's items over live objects.
func (i *item) updatesExisting() bool {
	return i.restore.Spec.ExistingResourcePolicy == velerov1.PolicyTypeUpdate
}

// refuseUpdate makes the API server refuse an update with the item, if another writer creates the
// object after isLive has looked. On a creation the API server ignores this field, and on an update
// it is immutable (kubernetes apiserver pkg/registry/rest/meta.go, WipeObjectMetaSystemFields;
// apimachinery pkg/api/validation/objectmeta.go). Velero writes a status with the whole item, which
// only custom resources accept with this field.
func (a *Adopt) refuseUpdate(i *item) {
	custom := xp.IsCustomGroup(i.GroupVersionKind().Group)
	if a.keepsExisting(i) && (custom || i.GetKind() == "Secret") {
		i.SetDeletionGracePeriodSeconds(new(int64(1)))
	}
}

// keepLive keeps a live object as it is, also with --existing-resource-policy=update. It returns nil
// if Velero is to handle the item. With the backup's resourceRefs an XR would lose what it composes
// now, and with its external-name an MR what it manages now. The backup's Composition would apply to
// all namespaces, also in a restore of one. What an earlier restore holds is still adopted.
func (a *Adopt) keepLive(i *item) (*velero.RestoreItemActionExecuteOutput, error) {
	if live, err := a.isLive(i); err != nil || !live {
		return nil, err
	}
	const message = "The object exists, so the restore leaves it as it is, even with --existing-resource-policy=update. Change the live object, or delete it " +
		"and keep the external resources, then restore again"
	if a.keptAsLive.add(i.GroupVersionKind().GroupKind(), true) {
		i.warn(reason.KeptAsLive.Messagef(message + ". The restore leaves other live objects of the kind, too; its log names each"))
	} else {
		i.logWarning(reason.KeptAsLive.Messagef(message))
	}
	out := (&velero.RestoreItemActionExecuteOutput{}).WithoutRestore()
	a.findInputs(i)
	if i.isHeld() || i.holdOf() != nil {
		out.OperationID = operationID(i.self())
	}

	return out, nil
}

// keepServiceAccount restores the ServiceAccount of a package for what users added to it, without
// its package revision as owner. Velero adds to a live one what it lacks (velero
// pkg/restore/merge_service_account.go), and Crossplane takes over a live one as it is (crossplane
// internal/controller/pkg/runtime, applySA).
func (a *Adopt) keepServiceAccount(i *item, added []string) (*velero.RestoreItemActionExecuteOutput, error) {
	revision, _ := xp.Controller(i.original)
	if xp.IsNamedAfterRevision(i.original) {
		live, err := a.owner(revision, "")
		if err != nil {
			return nil, apiErrorf("cannot find the package revision %s of %s: %w", revision.Name, xp.String(i.original), err)
		}
		if live == nil {
			i.warn(reason.SettingsMisplaced.Messagef("Restored without its owner, the package revision %s, because users added to it: %s. To have that with all "+
				"revisions, use a DeploymentRuntimeConfig and packagePullSecrets", revision.Name, strings.Join(added, ", ")))
		}
	}
	i.SetOwnerReferences(nil)
	xp.RenameOwners(i.Unstructured, nil)

	return velero.NewRestoreItemActionExecuteOutput(i.Unstructured), nil
}

// skip leaves out what the control plane creates again, unless users added to it. A restore can have
// hundreds of a kind, so the log names each kind once.
func (a *Adopt) skip(i *item, why string) (*velero.RestoreItemActionExecuteOutput, error) {
	if added := xp.AddedSettings(i.original); len(added) > 0 {
		return a.keepServiceAccount(i, added)
	}
	m := reason.Rebuilt.Messagef("It is not restored, because a restored one is of no use: %s", why)
	log := withCode(i.log, m)
	if a.skipped.add(i.GroupVersionKind().GroupKind(), true) {
		log.Info(m)
	} else {
		log.Debug(m)
	}
	i.remarks = append(i.remarks, remark{Message: m})

	return (&velero.RestoreItemActionExecuteOutput{}).WithoutRestore(), nil
}

// skipReason returns why the control plane creates the item again, "" if it doesn't. It does not
// create a package revision again if only users activate those of the package.
func (a *Adopt) skipReason(i *item) (string, error) {
	if why := xp.SkipReason(i.original); why != "" || !xp.IsPackageRevision(i.original) {
		return why, nil
	}
	ref, ok := xp.Controller(i.original)
	if !ok {
		return "it has no package that shows how it is activated", nil
	}
	pkg, err := a.owner(ref, "")
	switch {
	case err != nil:
		return "", apiErrorf("cannot find the package of %s: %w", xp.String(i.original), err)
	case pkg == nil:
		return "its package " + ref.Name + " is not in the cluster", nil
	case !xp.ActivatesManually(pkg):
		return "its package creates it again; a restored one has no controller", nil
	default:
		return "", nil
	}
}
