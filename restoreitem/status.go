package restoreitem

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// neededStatus returns the status fields that must be restored, none if a setting turns that off.
func (i *item) neededStatus() []string {
	if i.settings.WithoutStatus {
		return nil
	}

	return xp.NeededStatus(i.withoutHold())
}

// warnOfStatus warns of an item that is restored without status, because of a setting. A function
// may read the status at the next reconcile.
func (i *item) warnOfStatus() {
	missing := xp.NeededStatus(i.withoutHold())
	if !i.settings.WithoutStatus || len(missing) == 0 {
		return
	}
	i.warn(reason.StatusNotRestored.Messagef("%s comes back without %s, because of the setting %s. A function that reads it can leave out composed resources, "+
		"and Crossplane deletes these. Write it while this is held (setting %s=by-hand), with kubectl edit --subresource=status",
		xp.String(i.original), xp.StatusNames(missing), setting.NameStatus, setting.NameRelease))
}

// returnStatus writes the status that an earlier restore left out. Velero writes it after it has
// created the object, and only if the same restore created that (velero pkg/restore/restore.go,
// restoreItem). If Velero was killed in between, the object would stay held for good.
func (a *Adopt) returnStatus(i *item) error {
	var names []string
	if i.isHeld() {
		names = i.neededStatus()
	} else if h := i.holdOf(); h != nil {
		names = h.Status
	}
	if len(names) == 0 {
		return nil
	}
	exists, err := a.cluster.Exists(context.Background(), i.self())
	if err != nil {
		return apiErrorf("cannot find out whether its status must be brought back: %w", err)
	}
	if !exists {
		return nil
	}
	key, err := a.key(i)
	if err != nil {
		return err
	}
	if err := a.cluster.ReturnStatus(context.Background(), key, i.self(), i.returnedStatus(names)); err != nil {
		return apiErrorf("cannot bring its status back: %w", err)
	}

	return nil
}

func (i *item) returnedStatus(names []string) map[string]any {
	status := map[string]any{}
	for _, name := range names {
		if value, ok, _ := unstructured.NestedFieldCopy(i.original.Object, "status", name); ok {
			status[name] = value
		}
	}

	return status
}

// returnManagers writes the field managers of the backup back to an XR, a claim or an MR, if an
// earlier restore created it and was stopped before it did. Crossplane clears all managers of a
// composed resource if it is none of them. An error does not stop the restore of the item.
func (a *Adopt) returnManagers(i *item) {
	if !i.isHeld() && !i.isManaged() {
		return
	}
	if err := a.cluster.ReturnManagers(context.Background(), i.Unstructured, i.self()); err != nil {
		i.warn(reason.ManagersNotRead.Messagef("Cannot find out whether an earlier restore was stopped before it restored the field managers: %v", err))
	}
}
