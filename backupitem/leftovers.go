package backupitem

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// leftovers names the Usages of an XR that a restore would not bring back: those that it does not list any more, and those that are being deleted, of
// which Velero says in its log that there is one, but not which.
func (l *Links) leftovers(ctx context.Context, f *found, xr xp.Composite) error {
	refs, err := xr.ResourceRefs()
	if err != nil {
		return err
	}
	listed := map[xp.ID]bool{}
	for _, r := range refs {
		listed[r.ID()] = true
	}
	usages, err := l.usages(ctx, xr.GetNamespace())
	if err != nil {
		return err
	}
	_, composed := xp.Controller(xr.Unstructured)
	for _, u := range usages {
		_, controlled := xp.Controller(u)
		lost := !controlled && !composed && u.GetLabels()[xp.LabelComposite] == xr.GetName()
		switch {
		case !xp.Controls(xr.Unstructured, u) && !lost:
		case u.GetDeletionTimestamp() != nil:
			f.leave(xr, u, "it is being deleted, so Velero does not back it up")
		case !lost && !listed[xp.RefTo(u).ID()]:
			f.leave(xr, u, "the XR composed it and does not list it any more, so a restore leaves it out")
		}
	}

	return nil
}

// usages returns the Usages in a namespace, or in all if it is "", that an XR composed. It lists each kind once.
func (l *Links) usages(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
	key := shelf{GroupKind: xp.UsageKinds()[0][0].GroupKind(), namespace: namespace, selector: "of any kind"}
	if all, ok := l.shelves.Get(key); ok {
		return all.([]*unstructured.Unstructured), nil //nolint:forcetypeassert // Nothing else is put in.
	}
	var all []*unstructured.Unstructured
	for _, versions := range xp.UsageKinds() {
		for _, gvk := range versions {
			found, err := l.reader.List(ctx, gvk, namespace, metav1.ListOptions{LabelSelector: xp.LabelComposite})
			if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			all = append(all, found...)

			break // Another version has the same objects.
		}
	}
	l.shelves.Add(key, all)

	return all, nil
}

// leave remembers a Usage to warn of.
func (f *found) leave(xr xp.Composite, usage *unstructured.Unstructured, why string) {
	f.left = append(f.left, warning{of: xp.RefTo(xr.Unstructured), to: xp.RefTo(usage), why: why + ". It protects " + xp.Protected(usage) +
		"; if that is not in use any more, clear it with: " + xp.ClearUsage(usage)})
}
