package backupitem

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// leftovers warns of the Usages of an XR that a restore would not bring back: those that it does
// not list any more, and those that are being deleted, which Velero's log counts but does not name.
// If they can't be listed, it warns too, since an error would leave the XR out of the backup.
func (res *Resolver) leftovers(ctx context.Context, f *found, xr xp.Composite) {
	refs, err := xr.ResourceRefs()
	if err != nil {
		return // Without them it is unknown which Usages are left.
	}
	listed := xp.IDs(refs)
	usages := res.usages(ctx, xr.GetNamespace())
	for _, w := range usages.unread {
		f.note(xr.Unstructured, w.to, w.why)
	}
	left := usages.controlled[xr.GetUID()]
	if _, composed := xp.Controller(xr.Unstructured); !composed { // The label names the XR at the top of the tree.
		left = slices.Concat(left, usages.lost[xr.GetName()])
	}
	for _, u := range left {
		_, controlled := xp.Controller(u)
		why := ""
		switch {
		case u.GetDeletionTimestamp() != nil:
			why = "it is being deleted, so Velero does not back it up"
		case controlled && !listed[xp.RefTo(u).ID()]:
			why = "its XR composed it and no longer lists it, so a restore leaves it out"
		default:
			continue
		}
		f.note(xr.Unstructured, xp.String(u), reason.UsageLeftBehind.Messagef("%s is left behind: %s. It protects %s. If that is not in use, run: %s",
			xp.String(u), why, xp.Protected(u), xp.ClearUsage(u)))
	}
}

// composedUsages are the Usages that XRs composed, by the UID of their controller. Those without a
// controller are by the name of the XR in their label.
type composedUsages struct {
	controlled map[types.UID][]*unstructured.Unstructured
	lost       map[string][]*unstructured.Unstructured
	// unread is of the kinds of Usages that could not be listed.
	unread []warning
}

func (c composedUsages) add(u *unstructured.Unstructured) {
	if o, ok := xp.Controller(u); ok {
		c.controlled[o.UID] = append(c.controlled[o.UID], u)

		return
	}
	root := u.GetLabels()[xp.LabelComposite]
	c.lost[root] = append(c.lost[root], u)
}

// usages returns the Usages that XRs composed in a namespace, in all if it is "". It lists each
// kind once, also if that fails.
func (res *Resolver) usages(ctx context.Context, namespace string) composedUsages {
	key := listKey{GroupKind: xp.UsageKinds()[0], namespace: namespace, selector: "of any kind"}
	usages, _ := cached(res.lists, key, func() (composedUsages, error) {
		all := composedUsages{controlled: map[types.UID][]*unstructured.Unstructured{}, lost: map[string][]*unstructured.Unstructured{}}
		for _, gk := range xp.UsageKinds() {
			if err := res.usagesOf(ctx, gk, namespace, all.add); err != nil {
				all.unread = append(all.unread, warning{to: gk.String(), why: reason.RelatedNotRead.Messagef(
					"%s can't be listed: %v. The warnings lack those that the XR left behind. To look for them, run: %s",
					gk, err, xp.NewCommand("kubectl", "get").On(gk.String()).Word("-A"))})
			}
		}

		return all, nil
	})

	return usages
}

func (res *Resolver) usagesOf(ctx context.Context, gk schema.GroupKind, namespace string, do func(*unstructured.Unstructured)) error {
	gvk, ok, err := res.served(gk)
	if err != nil || !ok {
		return err
	}
	if _, namespaced, err := res.resource(gvk); err != nil || namespace != "" && !namespaced {
		return err // An XR in a namespace composes nothing outside of it.
	}

	return res.each(ctx, gvk, namespace, metav1.ListOptions{LabelSelector: xp.LabelComposite}, do)
}
