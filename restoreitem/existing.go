package restoreitem

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// handleLive handles an item that is live already. It returns nil if Velero is to handle it.
func (a *Adopt) handleLive(i *item) (*velero.RestoreItemActionExecuteOutput, error) {
	if err := a.remember(i); err != nil {
		return nil, err
	}
	if out, err := a.takeOverClaim(i); err != nil || out != nil {
		return out, err
	}
	live, err := a.isLive(i)
	if err != nil || !live {
		return nil, err
	}

	return a.keepLive(i), nil
}

// isLive reports whether Velero would write the item over a live object.
func (a *Adopt) isLive(i *item) (bool, error) {
	if i.restore.Spec.ExistingResourcePolicy != velerov1.PolicyTypeUpdate || i.isReplaceable() || a.isStandby(i) && !i.isHeld() && !i.isManaged() {
		return false, nil
	}
	live, err := a.cluster.Exists(context.Background(), i.self())
	if err != nil {
		return false, apiErrorf("cannot find out whether %s exists: %w", xp.String(i.original), err)
	}

	return live, nil
}

// keepLive keeps a live object as it is, also with --existing-resource-policy=update. With the
// backup's resourceRefs an XR would lose what it composes now, and with its external-name an MR
// what it manages now. The backup's Composition would apply to all namespaces, also in a restore of
// one. What an earlier restore holds is still adopted.
func (a *Adopt) keepLive(i *item) *velero.RestoreItemActionExecuteOutput {
	const message = "The object exists, so the restore leaves it as it is, even with --existing-resource-policy=update. Change the live object, or delete it " +
		"and keep the external resources, then restore again"
	if _, reported := a.keptAsLive.LoadOrStore(i.GroupVersionKind().GroupKind(), true); reported {
		a.warn(i.log, reason.KeptAsLive.Messagef(message))
	} else {
		i.warn(reason.KeptAsLive.Messagef(message + ". The restore leaves other live objects of the kind, too; its log names each"))
	}
	out := (&velero.RestoreItemActionExecuteOutput{}).WithoutRestore()
	a.findInputs(i)
	if i.isHeld() || i.holdOf(i.settings) != nil {
		out.OperationID = operationID(i.self())
	}

	return out
}
