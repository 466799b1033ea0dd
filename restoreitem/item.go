package restoreitem

import (
	"strings"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An item is an object on its way back.
type item struct {
	// What Velero is about to create. Its namespace is still that of the backup.
	*unstructured.Unstructured

	// original is the object as it is in the backup.
	original *unstructured.Unstructured
	// namespace is where it is restored to.
	namespace string
	restore   *velerov1.Restore
	settings  setting.Settings
	// owners are those that it is to have, as they are now, whoever writes them.
	owners []metav1.OwnerReference
	// copied says that it is a copy that is held whether its owners look after it or not.
	copied bool
	// early says that it comes back before others that it may need, since something that Velero
	// restores first has asked for it.
	early bool
	// recovered says that it got its external-name from its status.
	recovered bool
	// inputs are the Secrets that its provider reads and that it must be held for.
	inputs []adoption.Input
	// ownerless is the XR that its controller was, and that it comes back without, since that is at
	// work.
	ownerless *xp.Ref
	// fresh says that it does not look like anything that Crossplane or a provider reconciles, and
	// that they do: nobody had when it was backed up.
	fresh bool
	log   logrus.FieldLogger
	// notes are what a person has to know of it, and failed says that it did not come back and
	// should have.
	notes  []string
	failed bool
	// unreadable says that among the notes is that nobody can read the settings.
	unreadable bool
}

// self is what the item is called once it is restored.
func (i *item) self() xp.Ref {
	r := xp.RefTo(i.Unstructured)
	r.Namespace = i.namespace

	return r
}

// isHeld reports whether Crossplane must not reconcile the item before it is adopted.
func (i *item) isHeld() bool { return xp.IsComposite(i.original) || xp.IsClaim(i.original) }

// isQuarantined reports whether nothing may reconcile the item until a person says so.
func (i *item) isQuarantined() bool { return i.settings.Hold == setting.HoldAll }

// controller returns the one of its owners that is its controller.
func (i *item) controller() (metav1.OwnerReference, bool) {
	for _, o := range i.owners {
		if isController(o) {
			return o, true
		}
	}

	return metav1.OwnerReference{}, false
}

// keepGenerateName gives the item back what its name was made from, which Velero takes away and
// leaves in managedFields. Crossplane applies what an XR composes with it, so each object would be
// written anew in the XR's first reconcile, and the XR reconciled again for that. The API server
// wants it to be what a name can begin with, and nothing says that nobody has changed it since.
func (i *item) keepGenerateName() {
	prefix := i.original.GetGenerateName()
	if strings.HasPrefix(i.GetName(), prefix) && !strings.HasSuffix(prefix, ".") {
		i.SetGenerateName(prefix)
	}
}

// restoreName names the Restore as holds do.
func (i *item) restoreName() string { return i.restore.Namespace + "/" + i.restore.Name }

// isOwned reports whether the item's owners matter to Crossplane.
func (i *item) isOwned() bool {
	return xp.IsComposed(i.original) || xp.IsConnectionSecret(i.original) || xp.IsRevision(i.original) || xp.IsPackageRevision(i.original) ||
		xp.IsUsage(i.original)
}

// isReplaceable reports whether the item can be written over what is live, if a person wants that
// (--existing-resource-policy=update): what is installed, and how it works. Nothing in it says
// which external resource something manages, or what an XR composes. What is cluster-scoped is
// everybody's, and no restore of namespaces writes over it.
func (i *item) isReplaceable() bool {
	if i.GetNamespace() == "" && ofNamespaces(i.restore) {
		return false
	}
	gvk := i.GroupVersionKind()

	return xp.IsProviderConfig(i.original) || gvk.Group == xp.GroupPackage && !xp.IsPackageRevision(i.original) ||
		gvk.Group == xp.GroupAPIExtensions && gvk.Kind == "EnvironmentConfig" || xp.IsActivationPolicy(i.original)
}

// isOfCrossplane reports whether the item is something that Crossplane or a provider works with.
func (i *item) isOfCrossplane() bool {
	return i.isHeld() || i.isOwned() || xp.IsManaged(i.original) || xp.IsProviderConfig(i.original) || xp.IsCrossplaneGroup(i.GroupVersionKind().Group) ||
		xp.IsStored(i.original)
}

// isUnchanged reports whether nothing of the item is to be changed, if it is not to be held. To say
// so saves Velero from reading it again.
func (i *item) isUnchanged() bool {
	mapped := len(i.restore.Spec.NamespaceMapping) > 0

	return !i.isHeld() && !i.isOwned() && !i.recovered && !xp.IsSchedule(i.original) && !mapped && !xp.HasBackupMetadata(i.original) &&
		!xp.HasDeletionAttempt(i.original)
}
