package restoreitem

import (
	"strings"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An item is an object that is being restored.
type item struct {
	// The object that Velero is about to create. Its namespace is still that of the backup.
	*unstructured.Unstructured

	// original is the object in the backup.
	original *unstructured.Unstructured
	// namespace is the target namespace.
	namespace string
	restore   *velerov1.Restore
	settings  setting.Settings
	// owners are its owner references with current UIDs, whether this plugin or Velero writes them.
	owners []metav1.OwnerReference
	// liveUIDs are the UIDs of its live owners by those of the backup, and carried those of the XRs
	// above it that names in it come from.
	liveUIDs, carried map[types.UID]types.UID
	// absentOwner is the UID of an owner that was looked for and is not live; "" for none.
	absentOwner types.UID
	// secretWas is the name of its connection secret in the backup, "" if it is the same.
	secretWas string
	// fromUID are fields that come from a UID and may identify what it manages.
	fromUID *hold.FromUID
	// copied means that it is a copy, which is held whether its owners are live or not.
	copied bool
	// early means that what Velero restores first requested it: what it needs may come later.
	early bool
	// recovered means that its external-name comes from its status.
	recovered bool
	// inputs are the missing Secrets of its provider that it is held for.
	inputs []hold.Input
	// ownerless is the XR that was its controller, and without which it is restored.
	ownerless *xp.Ref
	// abandoned means that ownerless is not live, or does not list the item.
	abandoned bool
	// fresh means that Crossplane or a provider reconciles it, and had not when it was backed up.
	fresh bool
	log   logrus.FieldLogger
	// remarks are what an action reports about it, for a dry run.
	remarks []remark
	// warned counts the warnings about it, by code.
	warned map[reason.Code]int
	// notes are messages for the user. failed means that it was not restored and should have been.
	notes  []reason.Message
	failed bool
	// unreadable means that one of the notes is about unreadable settings.
	unreadable bool
}

func newItem(input *velero.RestoreItemActionExecuteInput, log logrus.FieldLogger) *item {
	u := &unstructured.Unstructured{Object: input.Item.UnstructuredContent()}

	return &item{
		Unstructured: u,
		original:     &unstructured.Unstructured{Object: input.ItemFromBackup.UnstructuredContent()},
		restore:      input.Restore,
		namespace:    targetNamespace(u.GetNamespace(), input.Restore),
		log:          log.WithFields(logrus.Fields{"kind": u.GetKind(), "namespace": u.GetNamespace(), "name": u.GetName()}),
	}
}

// self returns the reference to the item once it is restored.
func (i *item) self() xp.Ref {
	r := xp.RefTo(i.Unstructured)
	r.Namespace = i.namespace

	return r
}

func (i *item) itemName() itemName {
	return itemName{i.original.GroupVersionKind().Group, i.original.GetNamespace(), i.original.GetName()}
}

// isHeld reports whether Crossplane must not reconcile the item before its adoption.
func (i *item) isHeld() bool { return xp.IsComposite(i.original) || xp.IsClaim(i.original) }

// isQuarantined reports whether no controller may reconcile the item until a user allows it.
func (i *item) isQuarantined() bool { return i.settings.Hold == setting.HoldAll }

func (i *item) controller() (metav1.OwnerReference, bool) {
	for _, o := range i.owners {
		if isController(o) {
			return o, true
		}
	}

	return metav1.OwnerReference{}, false
}

// keepGenerateName restores generateName, which Velero removes but keeps in managedFields: the XR's
// first reconcile would update each composed resource, which requeues the XR. The API server accepts
// only a valid prefix of a name, and the backup may have been changed.
func (i *item) keepGenerateName() {
	prefix := i.original.GetGenerateName()
	if strings.HasPrefix(i.GetName(), prefix) && !strings.HasSuffix(prefix, ".") || i.isCut(prefix) {
		i.SetGenerateName(prefix)
	}
}

// isCut reports whether the item's name begins with the prefix as far as Crossplane takes it, so
// that a hyphen and a hash of 12 characters fit into 63 (crossplane internal/names, ChildName).
func (i *item) isCut(prefix string) bool {
	const longest = validation.DNS1123LabelMaxLength - 13

	return len(prefix) > longest && strings.HasPrefix(i.GetName(), prefix[:longest]) && len(apivalidation.NameIsDNSSubdomain(prefix, true)) == 0
}

// restoreName returns the Restore as marks name it: namespace/name.
func (i *item) restoreName() string { return i.restore.Namespace + "/" + i.restore.Name }

// isOwned reports whether Crossplane relies on the item's owner references.
func (i *item) isOwned() bool {
	return xp.IsComposed(i.original) || xp.IsConnectionSecret(i.original) || xp.IsRevision(i.original) || xp.IsPackageRevision(i.original) ||
		xp.IsUsage(i.original)
}

// isReplaceable reports whether Velero may write the item over a live object
// (--existing-resource-policy=update). That is so for packages and configuration, which name no
// external resource and no composed ones. All namespaces share what is cluster-scoped, so a restore
// of namespaces leaves that.
func (i *item) isReplaceable() bool {
	if i.GetNamespace() == "" && ofNamespaces(i.restore) {
		return false
	}
	gvk := i.GroupVersionKind()

	return xp.IsProviderConfig(i.original) || gvk.Group == xp.GroupPackage && !xp.IsPackageRevision(i.original) ||
		gvk.Group == xp.GroupAPIExtensions && gvk.Kind == "EnvironmentConfig" || xp.IsActivationPolicy(i.original)
}

// isOfCrossplane reports whether Crossplane or a provider uses the item.
func (i *item) isOfCrossplane() bool {
	return i.isHeld() || i.isOwned() || xp.IsManaged(i.original) || xp.IsProviderConfig(i.original) || xp.IsCrossplaneGroup(i.GroupVersionKind().Group)
}

// isUnchanged reports whether the item needs no change but a hold.
func (i *item) isUnchanged() bool {
	mapped := len(i.restore.Spec.NamespaceMapping) > 0

	return !i.isHeld() && !i.isOwned() && !i.recovered && !xp.IsSchedule(i.original) && !mapped && !xp.HasBackupMetadata(i.original) &&
		!xp.HasDeletionAttempt(i.original) && xp.CreatedAs(i.original) == i.original.GroupVersionKind()
}
