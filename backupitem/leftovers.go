package backupitem

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// leftovers names the Usages of an XR that a restore would not bring back: those that it does not list any more, and those that are being deleted, of
// which Velero says in its log that there is one, but not which.
func (l *Links) leftovers(ctx context.Context, f *found, xr xp.Composite) error {
	refs, err := xr.ResourceRefs()
	if err != nil {
		return nil //nolint:nilerr // Which ones it does not list any more can't be told.
	}
	listed := map[xp.ID]bool{}
	for _, r := range refs {
		listed[r.ID()] = true
	}
	usages, err := l.usages(ctx, xr.GetNamespace())
	if err != nil {
		return err
	}
	for _, u := range usages.controlled[xr.GetUID()] {
		switch {
		case u.GetDeletionTimestamp() != nil:
			f.leave(xr, u, "it is being deleted, so Velero does not back it up")
		case !listed[xp.RefTo(u).ID()]:
			f.leave(xr, u, "the XR composed it and does not list it any more, so a restore leaves it out")
		}
	}
	if _, composed := xp.Controller(xr.Unstructured); composed {
		return nil // The label names the XR at the top of the tree.
	}
	for _, u := range usages.lost[xr.GetName()] {
		if u.GetDeletionTimestamp() != nil {
			f.leave(xr, u, "it is being deleted, so Velero does not back it up")
		}
	}

	return nil
}

// composedUsages are the Usages that XRs composed: by the XR that controls them and, those that nobody does, by the name of the XR in their label.
type composedUsages struct {
	controlled map[types.UID][]*unstructured.Unstructured
	lost       map[string][]*unstructured.Unstructured
}

func (c composedUsages) add(u *unstructured.Unstructured) {
	if o, ok := xp.Controller(u); ok {
		c.controlled[o.UID] = append(c.controlled[o.UID], u)

		return
	}
	root := u.GetLabels()[xp.LabelComposite]
	c.lost[root] = append(c.lost[root], u)
}

// usages returns the Usages in a namespace, or in all if it is "", that an XR composed. It lists each kind once.
func (l *Links) usages(ctx context.Context, namespace string) (composedUsages, error) {
	key := shelf{GroupKind: xp.UsageKinds()[0], namespace: namespace, selector: "of any kind"}
	if all, ok := l.shelves.Get(key); ok {
		return all.(composedUsages), nil //nolint:forcetypeassert // Nothing else is put in.
	}
	all := composedUsages{controlled: map[types.UID][]*unstructured.Unstructured{}, lost: map[string][]*unstructured.Unstructured{}}
	for _, gk := range xp.UsageKinds() {
		gvk, ok, err := l.reader.Served(gk)
		if err != nil {
			return composedUsages{}, err
		}
		if !ok {
			continue
		}
		if _, namespaced, err := l.reader.Resource(gvk); err != nil {
			return composedUsages{}, err
		} else if namespace != "" && !namespaced {
			continue // An XR in a namespace composes nothing outside of it.
		}
		found, err := l.reader.List(ctx, gvk, namespace, metav1.ListOptions{LabelSelector: xp.LabelComposite})
		if err != nil {
			return composedUsages{}, err
		}
		for _, u := range found {
			all.add(u)
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
