package restoreitem

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// removeDeletionAttempt removes the annotation of an attempt to delete the object before it was
// backed up, and reports whether there was one. Crossplane would replay it when a Usage with
// replayDeletion goes, in a cluster where no user tried to.
func (i *item) removeDeletionAttempt() bool {
	if !xp.HasDeletionAttempt(i.Unstructured) {
		return false
	}
	unstructured.RemoveNestedField(i.Object, "metadata", "annotations", xp.AnnotationDeletionAttempt)
	i.warn(reason.DeletionAttemptDropped.Messagef("Restored without the annotation %s, with which its Usage could delete it later. To delete it, delete it again",
		xp.AnnotationDeletionAttempt))

	return true
}

// checkUsage reports whether a Usage is left out because it was being deleted at backup time or is
// in this cluster. For others it warns of what Crossplane needs and does not find.
func (a *Adopt) checkUsage(i *item) (left bool, err error) {
	if i.original.GetDeletionTimestamp() != nil {
		i.warn(reason.UsageDeleted.Messagef("The Usage is not restored, because it was being deleted at the backup; it protected %s", xp.Protected(i.original)))

		return true, nil
	}
	if i.protectsOutside() {
		return true, nil
	}
	var live *unstructured.Unstructured // Few are, so it is read only if the inventory has it.
	exists, err := a.cluster.Exists(context.Background(), i.self())
	if err == nil && exists {
		live, err = a.find(i.self(), i.namespace)
	}
	if err != nil {
		return false, apiErrorf("cannot find out whether %s is being deleted: %w", xp.String(i.original), err)
	}
	if live != nil {
		if live.GetDeletionTimestamp() == nil {
			return false, nil // Velero leaves it.
		}
		i.warn(reason.UsageDeleted.Messagef("The Usage exists and is being deleted, so it stops protecting %s when %s. If you need it, restore again when it is gone",
			xp.Protected(live), waitsFor(live)))

		return true, nil
	}
	used, named := xp.Used(i.Unstructured)
	if !named || isSelective(i.restore) {
		return false, nil // Crossplane looks for it, or it is restored later.
	}
	if u, err := a.find(used, i.namespace); err != nil {
		return false, apiErrorf("cannot find what %s protects: %w", xp.String(i.original), err)
	} else if u == nil {
		i.warn(reason.UsageIncomplete.Messagef("%s, which the Usage protects, is not in the cluster. Restore that too, or delete the Usage", used))
	}
	user, named := xp.User(i.Unstructured)
	if !named {
		return false, nil
	}
	if u, err := a.find(user, i.namespace); err != nil {
		return false, apiErrorf("cannot find what %s protects something for: %w", xp.String(i.original), err)
	} else if u == nil {
		i.warn(reason.UsageIncomplete.Messagef("%s, for which the Usage protects %s, is not in the cluster, so nothing ends the protection. Restore that too, or "+
			"clear the Usage: %s", user, used, xp.ClearUsage(i.original)))
	}

	return false, nil
}

// protectsOutside reports whether a Usage would protect an object in a namespace that is not
// restored, unless an XR composes the Usage, and warns.
func (i *item) protectsOutside() bool {
	used, _ := xp.Used(i.original)
	if xp.IsComposed(i.original) || !ofNamespaces(i.restore) || used.Namespace == "" || included(i.restore, used.Namespace) {
		return false
	}
	i.warn(reason.OutsideNamespace.Messagef("The Usage is not restored, because it would protect %s in namespace %s, which is not restored. If it should, "+
		"restore that namespace too, or apply it", xp.Protected(i.original), used.Namespace))

	return true
}

// find returns the live object r, nil if there is none. It looks in the namespace if r has none.
func (a *Adopt) find(r xp.Ref, namespace string) (*unstructured.Unstructured, error) {
	return a.owner(metav1.OwnerReference{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name}, cmp.Or(r.Namespace, namespace))
}

// owner returns the live object that an owner reference in the namespace means, nil for none.
func (a *Adopt) owner(ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, error) {
	u, err := a.cluster.Owner(context.Background(), ref, namespace)
	if isAbsent(err) {
		return nil, nil //nolint:nilnil // There is none.
	}

	return u, err
}

// isLeftover reports whether an XR, live or restored, composed a Usage once and does not list it
// any more. Unlike other objects, a Usage has no data that could be lost.
func isLeftover(owner *unstructured.Unstructured, ref metav1.OwnerReference, i *item) bool {
	if owner == nil || owner.GetDeletionTimestamp() != nil || !isController(ref) || !xp.IsUsage(i.original) || !xp.IsComposite(owner) {
		return false
	}
	_, err := xp.CompositeFrom(owner).ResourceRefs()

	return err == nil // Without them it is unknown.
}

// waitsFor returns what a Usage that is being deleted waits for (crossplane
// internal/controller/protection/usage).
func waitsFor(usage *unstructured.Unstructured) string {
	if user, ok := xp.User(usage); ok && usage.GetLabels()[xp.LabelComposite] != "" {
		return user.String() + " is gone"
	}

	return "Crossplane has seen that"
}
