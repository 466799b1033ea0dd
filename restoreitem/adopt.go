package restoreitem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	riav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/restoreitemaction/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Cluster is the cluster that Adopt restores to.
type Cluster interface { //nolint:interfacebloat // It is what a restore asks of one cluster.
	setting.Source

	// ServerTime returns what the API server's clock showed when this machine's showed own.
	ServerTime(own time.Time) time.Time
	// MarkKey returns the key that signs marks. It is in the given namespace, Velero's.
	MarkKey(ctx context.Context, namespace string) (hold.Key, error)
	// Owner returns the live object that an owner reference of an item in the namespace means. If
	// there is none, apierrors.IsNotFound or meta.IsNoMatchError is true of the error.
	Owner(ctx context.Context, ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, error)
	// Exists reports whether r existed when its kind was first read.
	Exists(ctx context.Context, r xp.Ref) (bool, error)
	// ExistsNow reports whether r exists. It takes a request.
	ExistsNow(ctx context.Context, r xp.Ref) (bool, error)
	// Composing returns the XRs of a kind without a hold that have composed on the Composition.
	Composing(ctx context.Context, key hold.Key, gvk schema.GroupVersionKind, composition string) ([]xp.Ref, error)
	// Named returns the MRs of a kind that had the external-name when the kind was first read.
	Named(ctx context.Context, gvk schema.GroupVersionKind, externalName string) ([]xp.Managing, error)
	// Moved is Named for namespaced MRs that restores had created.
	Moved(ctx context.Context, gvk schema.GroupVersionKind, externalName string) ([]xp.Managing, error)
	// IsReconciled reports whether Crossplane or a provider reconciles a kind.
	IsReconciled(ctx context.Context, gvk schema.GroupVersionKind) (bool, error)
	// ConfigMap returns the data of a ConfigMap.
	ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error)
	// Restore returns a Restore with all its fields.
	Restore(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error)

	// ReturnStatus writes those fields of the status that r lacks and is held for. It ignores a
	// mark that was not signed with the key.
	ReturnStatus(ctx context.Context, key hold.Key, r xp.Ref, status map[string]any) error
	// ReturnManagers writes the item's field managers back to the live object r, if an earlier
	// restore was stopped before it did.
	ReturnManagers(ctx context.Context, item *unstructured.Unstructured, r xp.Ref) error
	// CanTakeOver reports whether the claim r had no XR, no hold and no restore when first read.
	CanTakeOver(ctx context.Context, r xp.Ref) (bool, error)
	// TakeOver gives the live XR or claim r the item's composed resources and the labels, and holds
	// it, if it has composed nothing yet. It returns the changed object; nil if it changed nothing.
	TakeOver(
		ctx context.Context, key hold.Key, item *unstructured.Unstructured, r xp.Ref, of hold.Hold, labels map[string]string,
	) (*unstructured.Unstructured, error)
}

// Adopt restores the owner references of an item, whose owners are live after Order. It holds XRs,
// claims and MRs that are not safe to reconcile yet; its operation releases them.
type Adopt struct {
	Shared

	selector velero.ResourceSelector
	cluster  Cluster
	adopter  Adopter
	log      logrus.FieldLogger
	// now returns the API server's time.
	now func() time.Time

	settings func(of metav1.Object) (setting.Settings, error)
	// skipped are the kinds that the log names as not restored, and keptAsLive those of which a note
	// reports that live objects stay as they are.
	skipped, keptAsLive table[schema.GroupKind, bool]
	// warnedUnreadable is true once a note reports that the settings are unreadable.
	warnedUnreadable bool
	// refused are the objects that were not restored because of their XR.
	refused    table[xp.ID, bool]
	remembered rememberedXRs
	// missingSecrets are the missing Secrets of providers that notes name.
	missingSecrets table[xp.ID, bool]
	results        results
	// rules are the resource modifiers for the Restore, nil until they are read.
	modifying sync.Mutex
	rules     []modifierRule
}

var _ riav2.RestoreItemAction = &Adopt{}

// NewAdopt returns the action for what the selector selects. It serves one restore.
func NewAdopt(selector velero.ResourceSelector, cluster Cluster, adopter Adopter, log logrus.FieldLogger, shared Shared) *Adopt {
	return &Adopt{
		Shared: shared.complete(), selector: selector, cluster: cluster, adopter: adopter, log: log, settings: setting.Of(cluster),
		now: func() time.Time { return cluster.ServerTime(time.Now()) },
	}
}

// Name is not called by Velero.
func (a *Adopt) Name() string { return "2-adopt" }

// AppliesTo returns the action's selector.
func (a *Adopt) AppliesTo() (velero.ResourceSelector, error) { return a.selector, nil }

// Execute returns the item to create, and the ID of an operation if the item is held.
func (a *Adopt) Execute(input *velero.RestoreItemActionExecuteInput) (*velero.RestoreItemActionExecuteOutput, error) {
	i := newItem(input, a.log)
	a.Requested.restored(i.original)
	i.early = a.Requested.early.has(i.itemName())
	out, err := a.execute(i)
	a.remarks(i.remarks)
	if err == nil {
		i.note(out)
		if out.WaitForAdditionalItems {
			a.Requested.expect(i.original, out.AdditionalItems, true) // Velero comes to the Secret next.
		}
		a.warnedUnreadable = a.warnedUnreadable || i.unreadable
	}

	return out, withErrorCode(err)
}

// execute is Execute without the notes, and without the code in the error.
func (a *Adopt) execute(i *item) (*velero.RestoreItemActionExecuteOutput, error) {
	why, err := a.skipReason(i)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return a.skip(i, why)
	}
	removed := i.removeDeletionAttempt()
	if i.fresh, err = a.isFresh(i); err != nil {
		return nil, err
	}
	if !i.isOfCrossplane() && !i.fresh {
		return a.bringOther(i, removed)
	}
	if err := xp.CheckMetadata(i.original); err != nil {
		return nil, reason.BackupTampered.Errorf("cannot restore %s: %w; find out who wrote to the backup", xp.String(i.original), err)
	}

	return a.bringBack(i)
}

// bringBack is execute for an item that Crossplane or a provider uses.
func (a *Adopt) bringBack(i *item) (*velero.RestoreItemActionExecuteOutput, error) {
	// XRDCheck may have refused the item's controller since 1-order ran.
	if err := a.XRDs.check(i.original, i.namespace); err != nil {
		return nil, err
	}
	for _, prepare := range []func(*item) error{a.readSettings, a.recoverName, a.returnStatus, a.remember} {
		if err := prepare(i); err != nil {
			return nil, fmt.Errorf("cannot restore %s: %w", xp.String(i.original), err)
		}
	}
	for _, rule := range []func(*item) (*velero.RestoreItemActionExecuteOutput, error){a.takeOverClaim, a.keepLive, a.copy} {
		if out, err := rule(i); err != nil || out != nil {
			return out, err
		}
	}

	return a.adopt(i)
}

// isFresh reports whether an item must be held though it shows no sign of Crossplane or a provider.
// An object that was applied just before the backup looks like that.
func (a *Adopt) isFresh(i *item) (bool, error) {
	if group := i.GroupVersionKind().Group; i.isHeld() || xp.IsManaged(i.original) || !xp.IsCustomGroup(group) || xp.IsCrossplaneGroup(group) {
		return false, nil
	}
	settings, unread := a.settings(i.restore)
	if isUnreadable(unread) {
		settings, unread = unreadSettings(), nil
	}
	if unread == nil && settings.Hold != setting.HoldAll && !settings.ByHand {
		return false, nil
	}
	reconciled, err := a.cluster.IsReconciled(context.Background(), i.GroupVersionKind())
	switch {
	case err != nil:
		return false, apiErrorf("cannot find out whether Crossplane or a provider reconciles %s: %w", xp.String(i.original), err)
	case reconciled && unread != nil:
		return false, fmt.Errorf("cannot restore %s: %w", xp.String(i.original), unread)
	default:
		return reconciled, nil
	}
}

// unreadSettings returns settings that hold everything until a user looks. To restore nothing would
// lose more. To ignore a setting like hold=all could do what it prevents.
func unreadSettings() setting.Settings {
	return setting.Settings{Clone: setting.Hold, Hold: setting.HoldAll, KindTimeout: setting.DefaultKindTimeout}
}

// isUnreadable reports whether there are settings that can't be read.
func isUnreadable(err error) bool {
	_, invalid := errors.AsType[setting.InvalidError](err)

	return invalid
}

// readSettings reads the settings. If they can't be read, it holds everything, and notes that once.
func (a *Adopt) readSettings(i *item) (err error) {
	if i.settings, err = a.settings(i.restore); !isUnreadable(err) {
		return err
	}
	i.settings = unreadSettings()
	if !a.warnedUnreadable {
		i.unreadable = true
		i.fail(reason.HeldForSettings.Messagef("%s; so the restore ignores all settings and holds all objects of Crossplane, as with %s=%s. Correct the settings "+
			"for the next restore. If this one needs none, run: %s", reason.ErrorMessage(err), setting.NameHold, setting.HoldAll,
			xp.NewCommand(xp.Program, "release", "--restore").On(i.restoreName())))
	}

	return nil
}

// adopt writes the item's owner references, and holds what must not be reconciled yet.
func (a *Adopt) adopt(i *item) (*velero.RestoreItemActionExecuteOutput, error) {
	for _, leavesOut := range []func(*item) (bool, error){a.refuses, a.movesOthers} {
		if left, err := leavesOut(i); err != nil || left {
			return (&velero.RestoreItemActionExecuteOutput{}).WithoutRestore(), err
		}
	}
	unlabelled := i.removeLabels()
	a.findInputs(i)
	held := i.holdOf()
	i.warnOfStatus()
	if held == nil || i.settings.Hold == setting.HoldNone {
		i.warnOfIdentity()
	}
	if held != nil {
		a.awaitSecret(i, held)
	}
	if held == nil && !unlabelled && i.isUnchanged() && !a.keepsExisting(i) {
		a.returnManagers(i)

		return &velero.RestoreItemActionExecuteOutput{}, nil
	}
	i.findAbandoned()
	held = i.holdOwnerless(held)
	i.SetGroupVersionKind(xp.CreatedAs(i.original))
	i.keepGenerateName()
	operation, err := a.prepare(i, held)
	if err != nil {
		return nil, err
	}
	xp.StripBackupMetadata(i.Unstructured)
	if err := a.checkModifiers(i); err != nil {
		return nil, err
	}
	a.returnManagers(i)
	a.refuseUpdate(i)
	out := velero.NewRestoreItemActionExecuteOutput(i.Unstructured)
	out.OperationID = operation
	if held != nil || xp.IsComposite(i.original) {
		a.requestSecret(i, out)
	}

	return out, nil
}

// prepare changes what must not be created as it is, and returns the ID of its operation, if any.
func (a *Adopt) prepare(i *item, held *hold.Hold) (operation string, err error) {
	switch {
	case xp.IsRevision(i.original):
		return "", a.numberRevision(i)
	case xp.IsSchedule(i.original) && !xp.IsPaused(i.original):
		return "", a.holdSchedule(i)
	case i.isHeld():
		return a.hold(i)
	case held != nil:
		return a.holdManaged(i, *held)
	default:
		return "", nil
	}
}

// refuses writes the item's owner references and reports whether the item must not be restored.
func (a *Adopt) refuses(i *item) (bool, error) {
	if !i.isOwned() {
		return false, nil
	}
	if present, err := a.renameSecret(i); err != nil || present {
		return present, err
	}
	if refused, err := a.relink(i); err != nil || refused {
		return refused, err
	}
	a.carryUIDs(i)
	if xp.IsUsage(i.original) {
		return a.checkUsage(i)
	}

	return false, nil
}

// holdSchedule holds what starts Operations until a user releases it.
func (a *Adopt) holdSchedule(i *item) error {
	why := reason.StartsOperations.Messagef("%s is restored paused, because it starts Operations. When they may start, run: %s", xp.String(i.original),
		xp.NewCommand(xp.Program, "release").On(i.GetName()))
	if err := a.putHold(i, hold.Hold{Reason: why.String()}); err != nil {
		return err
	}
	i.warn(why)

	return nil
}

// isAdopted reports whether this restore holds the item's XR, whose operation then covers it.
func (a *Adopt) isAdopted(i *item) (bool, error) {
	ref, ok := i.controller()
	if !ok {
		return false, nil
	}
	xr, err := a.cluster.Owner(context.Background(), ref, i.namespace)
	if err != nil {
		return false, apiErrorf("cannot find the XR of %s: %w", xp.String(i.original), err)
	}
	h, err := a.liveHold(i, xr)

	return h != nil && h.Clone == "" && h.Restore == i.restoreName(), err
}

// AreAdditionalItemsReady notes that Velero has been to the requested connection secrets.
func (a *Adopt) AreAdditionalItemsReady([]velero.ResourceIdentifier, *velerov1.Restore) (bool, error) {
	a.Requested.restoredSecrets()

	return true, nil
}
