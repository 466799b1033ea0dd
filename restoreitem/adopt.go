package restoreitem

import (
	"context"
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

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Cluster is the one that is restored to, as Adopt sees it.
type Cluster interface {
	setting.Source
	LiveWriter
	Inventory

	// MarkKey returns the key that signs the marks of holds, which is in the given namespace,
	// Velero's.
	MarkKey(ctx context.Context, namespace string) (adoption.Key, error)
	// Owner finds the live object that an owner reference from a backup means, for an item in the
	// namespace. It returns an error that apierrors.IsNotFound or meta.IsNoMatchError knows if
	// there is none.
	Owner(ctx context.Context, ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, error)
}

// An Inventory knows what is live.
type Inventory interface {
	Requests

	// Exists reports whether the object that r names was there when it was first asked about the
	// kind.
	Exists(ctx context.Context, r xp.Ref) (bool, error)
	// Named returns the MRs of a kind that had the external-name when it was first asked about the
	// kind.
	Named(ctx context.Context, gvk schema.GroupVersionKind, externalName string) ([]xp.Managing, error)
	// Moved returns the MRs in namespaces of a kind that restores had created, with the
	// external-name, when it was first asked about the kind.
	Moved(ctx context.Context, gvk schema.GroupVersionKind, externalName string) ([]xp.Managing, error)
	// IsReconciled reports whether Crossplane or a provider reconciles a kind.
	IsReconciled(ctx context.Context, gvk schema.GroupVersionKind) (bool, error)
}

// Requests know what a restore was asked for.
type Requests interface {
	// ConfigMap returns the data of a ConfigMap.
	ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error)
	// Restore returns a Restore with all that it says.
	Restore(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error)
}

// A LiveWriter changes what is live, so that what a restore brings beside it, or finds of an
// earlier one, does no harm.
type LiveWriter interface {
	Takeover

	// RaiseRevision keeps the newest live revision of a Composition the newest when the given one
	// is restored beside it.
	RaiseRevision(ctx context.Context, revision *unstructured.Unstructured) error
	// ReturnStatus writes those fields of a status that the object which r names is held for, by a
	// mark that was signed with the key, and does not have.
	ReturnStatus(ctx context.Context, key adoption.Key, r xp.Ref, status map[string]any) error
	// ReturnManagers writes back who manages what of the object that r names, which is there
	// already, as the item says, if an earlier restore was stopped before it did.
	ReturnManagers(ctx context.Context, item *unstructured.Unstructured, r xp.Ref) error
}

// A Takeover takes over what somebody else has made before a restore could.
type Takeover interface {
	// CanTakeOver reports whether the claim that r names had no XR and was nobody's when it was
	// first asked about the kind.
	CanTakeOver(ctx context.Context, r xp.Ref) (bool, error)
	// TakeOver gives the live XR or claim that r names what the item composed, and the labels, and
	// holds it, if it has composed nothing yet. It returns it as Owner does from then on, nil if it
	// is left as it is.
	TakeOver(
		ctx context.Context, key adoption.Key, item *unstructured.Unstructured, r xp.Ref, of adoption.Hold, labels map[string]string,
	) (*unstructured.Unstructured, error)
}

// Adopt gives a restored item its owners back and puts XRs, claims and MRs that publish connection
// details on hold. It runs after Order, so an owner that is in the backup is live by now. Its
// operation lifts the hold.
type Adopt struct {
	shared

	selector velero.ResourceSelector
	cluster  Cluster
	adopter  Adopter
	log      logrus.FieldLogger
	now      func() time.Time

	settings func(of metav1.Object) (setting.Settings, error)
	// skipped are the kinds that were named as not restored.
	skipped sync.Map
	// keptAsLive are the kinds of which the restore was to tell that what exists is left as it is.
	keptAsLive sync.Map
	// warnedUnreadable says that the restore tells that nobody can read its settings.
	warnedUnreadable bool
	// refused are the objects that were not to come back, because their XR is at work without them.
	refused sync.Map
	// remembered are the XRs of which nothing that they compose has come back yet, as they are in
	// the backup.
	remembered sync.Map
	// missingSecrets are the Secrets of which the restore was to tell that providers read them, and
	// that they are missing.
	missingSecrets sync.Map
	// missingStores are the StoreConfigs of which the restore was to tell that what is published
	// with them is not in the cluster.
	missingStores sync.Map
	results       results
	// rules are the resource modifiers that are for the Restore, nil until they are read.
	modifying sync.Mutex
	rules     []modifierRule
}

var _ riav2.RestoreItemAction = &Adopt{}

// NewAdopt returns the action for what the selector selects. Velero uses it for one restore.
func NewAdopt(selector velero.ResourceSelector, cluster Cluster, adopter Adopter, log logrus.FieldLogger, options ...Option) *Adopt {
	return &Adopt{shared: sharedBy(options), selector: selector, cluster: cluster, adopter: adopter, log: log, now: time.Now, settings: setting.Of(cluster)}
}

// Name is not called by Velero.
func (a *Adopt) Name() string { return "2-adopt" }

// AppliesTo selects what the action was made for.
func (a *Adopt) AppliesTo() (velero.ResourceSelector, error) { return a.selector, nil }

// Execute returns the item as it is to be created, and an operation for what is held.
func (a *Adopt) Execute(input *velero.RestoreItemActionExecuteInput) (*velero.RestoreItemActionExecuteOutput, error) {
	i := &item{
		Unstructured: &unstructured.Unstructured{Object: input.Item.UnstructuredContent()},
		original:     &unstructured.Unstructured{Object: input.ItemFromBackup.UnstructuredContent()},
		restore:      input.Restore,
	}
	i.namespace, i.early = targetNamespace(i.GetNamespace(), i.restore), a.requested.isEarly(i.original)
	i.log = a.log.WithFields(logrus.Fields{"kind": i.GetKind(), "namespace": i.GetNamespace(), "name": i.GetName()})
	out, err := a.execute(i)
	if err == nil {
		i.note(out)
		a.warnedUnreadable = a.warnedUnreadable || i.unreadable
	}

	return out, err
}

// execute is Execute for an item, but for what a person has to know of it.
func (a *Adopt) execute(i *item) (*velero.RestoreItemActionExecuteOutput, error) {
	reason, err := a.skipReason(i)
	if err != nil {
		return nil, err
	}
	if reason != "" {
		return a.skipRebuilt(i, reason)
	}
	forgotten := i.forgetAttempt()
	fresh, err := a.isFresh(i)
	if err != nil {
		return nil, err
	}
	i.fresh = fresh
	if !i.isOfCrossplane() && !fresh {
		if forgotten {
			return velero.NewRestoreItemActionExecuteOutput(i.Unstructured), nil
		}

		return &velero.RestoreItemActionExecuteOutput{}, nil
	}
	if err := xp.CheckMetadata(i.original); err != nil {
		return nil, fmt.Errorf("cannot restore %s: %w; find out who has written to the backup", xp.String(i.original), err)
	}
	// What controls it may have been refused since 1-order was asked.
	if err := a.xrds.check(i.original, i.namespace); err != nil {
		return nil, err
	}
	if err := a.consider(i); err != nil {
		return nil, fmt.Errorf("cannot restore %s: %w", xp.String(i.original), err)
	}
	if out, err := a.findMade(i); err != nil || out != nil {
		return out, err
	}
	if out, err := a.copy(i); err != nil || out != nil {
		return out, err
	}

	return a.adopt(i)
}

// findMade returns what becomes of an item that is live already and that the restore does not leave
// to Velero, nil if it does.
func (a *Adopt) findMade(i *item) (*velero.RestoreItemActionExecuteOutput, error) {
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

	return a.leave(i), nil
}

// isFresh reports whether the item is to wait for a person though nothing that it has says that
// Crossplane or a provider reconciles it: whatever is applied at the moment of a backup is like
// that.
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
		return false, fmt.Errorf("cannot find out whether Crossplane or a provider reconciles %s: %w", xp.String(i.original), err)
	case reconciled && unread != nil:
		return false, fmt.Errorf("cannot restore %s: %w", xp.String(i.original), unread)
	default:
		return reconciled, nil
	}
}

// consider finds out how the item is to come back, and brings back what an earlier restore was to
// bring back of it.
func (a *Adopt) consider(i *item) error {
	settings, err := a.settingsFor(i)
	if err != nil {
		return err
	}
	i.settings = settings
	if err := a.recoverName(i); err != nil {
		return err
	}

	return a.returnStatus(i)
}

// adopt gives the item its owners, and puts what must not be reconciled yet on hold.
func (a *Adopt) adopt(i *item) (*velero.RestoreItemActionExecuteOutput, error) {
	a.findInputs(i)
	held := i.holdOf(i.settings)
	i.warnOfStatus()
	if held == nil || i.settings.Hold == setting.HoldNone {
		i.warnOfIdentity()
	}
	if held != nil {
		a.awaitSecret(i, held)
		a.awaitStored(i, held)
	}
	a.warnOfStore(i)
	if held == nil && i.isUnchanged() {
		a.returnManagers(i)

		return &velero.RestoreItemActionExecuteOutput{}, nil
	}
	if refused, err := a.refuses(i); err != nil || refused {
		return (&velero.RestoreItemActionExecuteOutput{}).WithoutRestore(), err
	}
	held = i.holdOwnerless(held)
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
	out := velero.NewRestoreItemActionExecuteOutput(i.Unstructured)
	out.OperationID = operation
	if held != nil || xp.IsComposite(i.original) {
		a.requestSecrets(i, out)
	}

	return out, nil
}

// prepare does what must be done before the item is created, and returns the ID of the operation
// that goes on after that, "" if there is none.
func (a *Adopt) prepare(i *item, held *adoption.Hold) (operation string, err error) {
	switch {
	case xp.IsRevision(i.original):
		err = a.raiseRevision(i)
	case xp.IsSchedule(i.original) && !xp.IsPaused(i.original):
		err = a.holdSchedule(i)
	case i.isHeld():
		operation, err = a.hold(i)
	case held != nil:
		operation, err = a.holdManaged(i, *held)
	}

	return operation, err
}

// refuses gives the item its owners and reports whether it must not come back.
func (a *Adopt) refuses(i *item) (bool, error) {
	if !i.isOwned() {
		return false, nil
	}
	if refused, err := a.relink(i); err != nil || refused || !xp.IsUsage(i.original) {
		return refused, err
	}

	return a.checkUsage(i)
}

// holdSchedule puts a hold on what starts Operations, for a person to lift.
func (a *Adopt) holdSchedule(i *item) error {
	reason := "it starts Operations by itself, for a WatchOperation one for each object that it watches; to let it, run: " +
		xp.NewCommand(xp.Program, "release").On(i.GetName()).String()
	if err := a.putHold(i, adoption.Hold{Reason: reason}); err != nil {
		return err
	}
	i.warn(nil, "Restored paused: "+reason)

	return nil
}

// isAdopted reports whether this restore has put an XR on hold that composes the item: then the
// XR's operation is the item's too.
func (a *Adopt) isAdopted(i *item) (bool, error) {
	ref, ok := i.controller()
	if !ok {
		return false, nil
	}
	xr, err := a.cluster.Owner(context.Background(), ref, i.namespace)
	if err != nil {
		return false, fmt.Errorf("cannot find the XR of %s: %w", xp.String(i.original), err)
	}
	h, err := a.liveHold(i, xr)

	return h != nil && h.Clone == "" && h.Restore == i.restoreName(), err
}

// isLive reports whether Velero is about to write something of Crossplane's over what is live.
func (a *Adopt) isLive(i *item) (bool, error) {
	if i.restore.Spec.ExistingResourcePolicy != velerov1.PolicyTypeUpdate || i.isReplaceable() {
		return false, nil
	}
	live, err := a.cluster.Exists(context.Background(), i.self())
	if err != nil {
		return false, fmt.Errorf("cannot find out whether %s exists: %w", xp.String(i.original), err)
	}

	return live, nil
}

// conclude leaves what is live as it is, also with --existing-resource-policy=update. The
// resourceRefs of the backup would make an XR lose what it composes now, the external-name of the
// backup an MR what it manages now, and the Composition of the backup would be everybody's, also in
// a restore of one namespace. What an earlier restore holds is adopted all the same.
func (a *Adopt) leave(i *item) *velero.RestoreItemActionExecuteOutput {
	const message = "It exists, so it is left as it is, also with --existing-resource-policy=update. To change it, change the live object; to restore it, " +
		"delete it first, with the external resources of what it composes kept"
	if _, told := a.keptAsLive.LoadOrStore(i.GroupVersionKind().GroupKind(), true); told {
		i.log.Warn(message)
	} else {
		i.warn(nil, message+". So is what else exists of its kind; the log of the restore names each")
	}
	out := (&velero.RestoreItemActionExecuteOutput{}).WithoutRestore()
	a.findInputs(i)
	if i.isHeld() || i.holdOf(i.settings) != nil {
		out.OperationID = operationID(i.self())
	}

	return out
}

// AreAdditionalItemsReady is not asked: the action returns no additional items.
func (a *Adopt) AreAdditionalItemsReady([]velero.ResourceIdentifier, *velerov1.Restore) (bool, error) {
	return true, nil
}
