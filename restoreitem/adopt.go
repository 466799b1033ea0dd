package restoreitem

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	riav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/restoreitemaction/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Finder finds the live object that an owner reference from a backup means, for an item in the namespace. It returns an error that
// apierrors.IsNotFound or meta.IsNoMatchError knows if there is none.
type Finder interface {
	Owner(ctx context.Context, ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, error)
}

// A FinderFn is a function that is a Finder.
type FinderFn func(ctx context.Context, ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, error)

// Owner calls the function.
func (fn FinderFn) Owner(ctx context.Context, ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, error) {
	return fn(ctx, ref, namespace)
}

// A Ranker keeps the newest live revision of a Composition the newest when the given one is restored beside it.
type Ranker interface {
	Outrank(ctx context.Context, revision *unstructured.Unstructured) error
}

// A RankerFn is a function that is a Ranker.
type RankerFn func(ctx context.Context, revision *unstructured.Unstructured) error

// Outrank calls the function.
func (fn RankerFn) Outrank(ctx context.Context, revision *unstructured.Unstructured) error {
	return fn(ctx, revision)
}

// Adopt gives a restored item its owners back and puts XRs and claims on hold. It runs after Order, so an owner that is in the backup is
// live by now. Its operation lifts the hold.
type Adopt struct {
	owners  Finder
	ranker  Ranker
	adopter Adopter
	log     logrus.FieldLogger
	now     func() time.Time

	results results
}

var _ riav2.RestoreItemAction = &Adopt{}

// NewAdopt returns the action.
func NewAdopt(owners Finder, ranker Ranker, adopter Adopter, log logrus.FieldLogger) *Adopt {
	return &Adopt{owners: owners, ranker: ranker, adopter: adopter, log: log, now: time.Now}
}

// Name is not called by Velero.
func (a *Adopt) Name() string { return "2-adopt" }

// AppliesTo selects the same as Order.
func (a *Adopt) AppliesTo() (velero.ResourceSelector, error) {
	return applicable(), nil
}

// Execute returns the item as it is to be created, and an operation for an XR.
func (a *Adopt) Execute(input *velero.RestoreItemActionExecuteInput) (*velero.RestoreItemActionExecuteOutput, error) {
	item := &unstructured.Unstructured{Object: input.Item.UnstructuredContent()}
	original := &unstructured.Unstructured{Object: input.ItemFromBackup.UnstructuredContent()}
	log := a.log.WithFields(logrus.Fields{"kind": item.GetKind(), "namespace": item.GetNamespace(), "name": item.GetName()})
	out := &velero.RestoreItemActionExecuteOutput{}

	if reason := xp.Rebuilt(original); reason != "" {
		log.WithField("reason", reason).Info("Not restored: the control plane makes it anew")

		return out.WithoutRestore(), nil
	}
	owned := xp.IsComposed(original) || xp.IsConnectionSecret(original) || xp.IsRevision(original)
	held := xp.IsComposite(original) || xp.IsClaim(original)
	live, err := a.isLive(item, input.Restore)
	if err != nil {
		return nil, err
	}
	if live {
		return a.leave(item, held, input.Restore, log), nil
	}
	if !owned && !held {
		return out, nil
	}
	if owned {
		if err := a.relink(item, original, targetNamespace(original, input.Restore), log); err != nil {
			return nil, err
		}
	}
	if xp.IsRevision(original) {
		if err := a.ranker.Outrank(context.Background(), original); err != nil {
			return nil, fmt.Errorf("cannot restore %s beside the live revisions of its Composition: %w", xp.String(original), err)
		}
	}
	if held {
		operation, err := a.hold(item, input.Restore)
		if err != nil {
			return nil, err
		}
		out.OperationID = operation
	}
	out.UpdatedItem = item

	return out, nil
}

// isLive tells whether Velero is about to write something over an XR, a claim, or what all XRs of a kind share.
func (a *Adopt) isLive(item *unstructured.Unstructured, restore *velerov1.Restore) (bool, error) {
	shared := xp.IsComposite(item) || xp.IsClaim(item) || xp.IsPlatform(item)
	if restore.Spec.ExistingResourcePolicy != velerov1.PolicyTypeUpdate || !shared {
		return false, nil
	}
	self := metav1.OwnerReference{APIVersion: item.GetAPIVersion(), Kind: item.GetKind(), Name: item.GetName()}
	_, err := a.owners.Owner(context.Background(), self, targetNamespace(item, restore))
	if isAbsent(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot find out whether %s exists: %w", xp.String(item), err)
	}

	return true, nil
}

// leave leaves what is live as it is, also with --existing-resource-policy=update. The resourceRefs of the backup would make an XR lose what it
// composes now, and the Composition of the backup would be everybody's, also in a restore of one namespace. An XR or a claim that an
// earlier restore holds is adopted all the same.
func (a *Adopt) leave(item *unstructured.Unstructured, held bool, restore *velerov1.Restore, log logrus.FieldLogger) *velero.RestoreItemActionExecuteOutput {
	log.Warn("It exists, so it is left as it is, also with --existing-resource-policy=update. To change it, change the live object; to restore it, delete it " +
		"first, with the external resources of what it composes kept")
	out := (&velero.RestoreItemActionExecuteOutput{}).WithoutRestore()
	if held {
		self := xp.RefTo(item)
		self.Namespace = targetNamespace(item, restore)
		out.OperationID = operationID(self)
	}

	return out
}

// targetNamespace is the namespace that the item is restored to; "" for a cluster-scoped item.
func targetNamespace(item *unstructured.Unstructured, restore *velerov1.Restore) string {
	if to, ok := restore.Spec.NamespaceMapping[item.GetNamespace()]; ok {
		return to
	}

	return item.GetNamespace()
}

// relink writes the item's owner references with the UIDs that the owners have now. An owner that is not live, or that does not know the
// item, is dropped, never written with its old UID: the garbage collector deletes an object whose owners are all absent (kubernetes
// pkg/controller/garbagecollector), and an MR's finalizer then deletes the cloud resource.
func (a *Adopt) relink(item, original *unstructured.Unstructured, namespace string, log logrus.FieldLogger) error {
	uids := map[types.UID]types.UID{}
	var refs []metav1.OwnerReference
	for _, ref := range original.GetOwnerReferences() {
		uid, reason, err := a.liveUID(ref, original, namespace)
		if err != nil {
			return fmt.Errorf("cannot find the owner %s %q of %s: %w", ref.Kind, ref.Name, xp.String(original), err)
		}
		if reason != "" {
			log.WithFields(logrus.Fields{"owner": ref.Kind + " " + ref.Name, "reason": reason, "next": withoutOwner(original)}).
				Warn("Restored without an owner that it had")

			continue
		}
		uids[ref.UID] = uid
		ref.UID = uid
		refs = append(refs, ref)
	}
	item.SetOwnerReferences(refs)
	xp.RenameOwners(item, uids)

	return nil
}

// withoutOwner says what becomes of an item that is restored without its owner, and what a person can do.
func withoutOwner(item *unstructured.Unstructured) string {
	switch {
	case xp.IsRevision(item):
		return "Crossplane takes it over when it reconciles the Composition"
	case xp.IsConnectionSecret(item):
		return "if what published it exists and can't publish again, delete this Secret"
	default:
		return "if its XR lists it, Crossplane takes it over; if not, nothing looks after it: delete it, with its external resource kept if that is still in use"
	}
}

// liveUID returns the UID of the owner that ref means, or the reason why the item is not to have it.
func (a *Adopt) liveUID(ref metav1.OwnerReference, original *unstructured.Unstructured, namespace string) (types.UID, string, error) {
	owner, err := a.owners.Owner(context.Background(), ref, namespace)
	if isAbsent(err) {
		return "", "it is not in the cluster", nil
	}
	if err != nil {
		return "", "", err
	}
	if owner.GetDeletionTimestamp() != nil {
		return "", "it is being deleted", nil
	}
	if ref.Controller == nil || !*ref.Controller {
		// Nothing in such an owner says that it knows the item, so it may not be anywhere that the item's own namespace doesn't reach.
		if owner.GetNamespace() != namespace {
			return "", "it is not the controller, and in another scope", nil
		}

		return owner.GetUID(), "", nil
	}

	return owner.GetUID(), xp.OwnedBothWays(owner, original, namespace), nil
}

// hold puts a hold on an XR or a claim and returns the ID of the operation that lifts it. A claim's hold is lifted by its XR's operation; it
// has one of its own only if its XR did not come back held, or belongs to another claim.
func (a *Adopt) hold(item *unstructured.Unstructured, restore *velerov1.Restore) (string, error) {
	if _, err := adoption.Put(item, restore.Namespace+"/"+restore.Name, a.now().UTC().Format(time.RFC3339)); err != nil {
		return "", err
	}
	xp.SetTree(item, nil)
	xp.SetDangling(item, nil)
	self := xp.RefTo(item)
	self.Namespace = targetNamespace(item, restore)
	if !xp.IsClaim(item) {
		return operationID(self), nil
	}
	ref, ok := xp.ClaimFrom(item).CompositeRef()
	if !ok {
		return operationID(self), nil
	}
	xr, err := a.owners.Owner(context.Background(), metav1.OwnerReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}, "")
	if isAbsent(err) {
		return operationID(self), nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot find the XR %s of %s: %w", ref.Name, xp.String(item), err)
	}
	claimRef, _ := xp.CompositeFrom(xr).ClaimRef()
	if h, err := adoption.HoldOf(xr); h == nil || err != nil || claimRef.ID() != self.ID() {
		return operationID(self), nil //nolint:nilerr // The operation names what can't be read.
	}

	return "", nil
}

// AreAdditionalItemsReady is not asked: the action returns no additional items.
func (a *Adopt) AreAdditionalItemsReady([]velero.ResourceIdentifier, *velerov1.Restore) (bool, error) {
	return true, nil
}
