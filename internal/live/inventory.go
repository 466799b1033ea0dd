package live

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An inventory lists the objects of a kind. It is made once, when the kind is first asked for.
type inventory struct {
	objects map[xp.ID]bool
	// deleting are the objects that are being deleted.
	deleting map[xp.ID]bool
	// takeable are the objects for which adoption.CanTakeOver is true.
	takeable map[xp.ID]bool
	// named are the MRs by external-name, or by their provider's id if they have no external-name.
	named map[string][]xp.Managing
}

// Exists reports whether the object that r names existed when its inventory was made.
func (c *Cluster) Exists(ctx context.Context, r xp.Ref) (bool, error) {
	i, err := c.inventoryOf(ctx, r.GroupVersionKind())

	return i.objects[r.ID()], err
}

// ExistsNow reports whether the object that r names exists.
func (c *Cluster) ExistsNow(ctx context.Context, r xp.Ref) (bool, error) {
	_, err := c.Get(ctx, r)
	if isUnserved(err) {
		return false, nil
	}

	return err == nil, err
}

// Deleting reports whether the object that r names was being deleted when its inventory was made.
func (c *Cluster) Deleting(ctx context.Context, r xp.Ref) (bool, error) {
	i, err := c.inventoryOf(ctx, r.GroupVersionKind())

	return i.deleting[r.ID()], err
}

// CanTakeOver reports whether adoption.CanTakeOver was true for the XR or claim that r names when
// its inventory was made.
func (c *Cluster) CanTakeOver(ctx context.Context, r xp.Ref) (bool, error) {
	i, err := c.inventoryOf(ctx, r.GroupVersionKind())

	return i.takeable[r.ID()], err
}

// Named returns the MRs of a kind that had the external-name when its inventory was made.
func (c *Cluster) Named(ctx context.Context, gvk schema.GroupVersionKind, externalName string) ([]xp.Managing, error) {
	i, err := c.inventoryOf(ctx, gvk)

	return i.named[externalName], err
}

func (c *Cluster) inventoryOf(ctx context.Context, gvk schema.GroupVersionKind) (inventory, error) {
	c.mu.Lock()
	i, ok := c.inventories[gvk.GroupKind()]
	c.mu.Unlock()
	if ok {
		return i, nil
	}
	if err := c.conversionError(gvk); err != nil {
		return inventory{}, err
	}
	accounts := map[xp.Ref]xp.Ref{} // Thousands of MRs share one account, and so one copy of its strings.
	i = inventory{objects: map[xp.ID]bool{}, deleting: map[xp.ID]bool{}, takeable: map[xp.ID]bool{}, named: map[string][]xp.Managing{}}
	err := c.Each(ctx, gvk, "", metav1.ListOptions{}, func(u *unstructured.Unstructured) {
		r := xp.RefTo(u)
		i.objects[r.ID()] = true
		if u.GetDeletionTimestamp() != nil {
			i.deleting[r.ID()] = true
		}
		if adoption.CanTakeOver(u) {
			i.takeable[r.ID()] = true
		}
		name := u.GetAnnotations()[xp.AnnotationExternalName]
		if name == "" {
			name, _ = xp.ProviderID(u) // The MR manages that resource, although only its status has the id.
		}
		if name != "" {
			m := xp.ManagingOf(u)
			if _, ok := accounts[m.Account]; !ok {
				accounts[m.Account] = m.Account
			}
			m.Account = accounts[m.Account]
			i.named[name] = append(i.named[name], m)
		}
	})
	if err != nil && !isUnserved(err) {
		return inventory{}, c.recordUnreadable(gvk, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inventories[gvk.GroupKind()] = i

	return i, nil
}

// List returns the objects of a kind that the options select. It lists one namespace, or all if
// namespace is "" or the kind is cluster-scoped. Errors are as for Get.
func (c *Cluster) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	err := c.Each(ctx, gvk, namespace, options, func(u *unstructured.Unstructured) { all = append(all, u) })

	return all, err
}

// Each calls do with each object of a kind that the options select, in the namespace, or in all if
// namespace is "". It reads one page at a time, so objects that do does not keep take no memory.
// Secrets that no selector limits have only their metadata. Errors are as for Get.
func (c *Cluster) Each(
	ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions, do func(*unstructured.Unstructured),
) error {
	if c.metadata != nil && areAllSecrets(gvk, options) {
		return c.eachSecret(ctx, namespace, "", do)
	}
	_, err := c.eachWithRetry(ctx, gvk, namespace, options, c.retryForever(ctx), do, nil)

	return err
}

// retryForever returns withRetry for the API server, which outlasts its restart.
func (c *Cluster) retryForever(ctx context.Context) func(func() error) error {
	return func(do func() error) error { return c.withRetry(ctx.Done(), apiServerName, do) }
}

// eachWithRetry is Each with try as the retry function. It returns the resourceVersion of the list.
// After each page but the last it calls onPage with that version, if onPage is not nil.
func (c *Cluster) eachWithRetry(
	ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions, try func(func() error) error,
	do func(*unstructured.Unstructured), onPage func(version string),
) (version string, err error) {
	gvr, namespaced, err := c.Resource(gvk)
	if err != nil {
		return "", err
	}
	if !namespaced {
		namespace = ""
	}
	options.Limit = pageSize
	for {
		var p page
		err := try(func() (err error) {
			if p, err = c.pages(ctx, gvr, namespace, options); err != nil {
				return fmt.Errorf("cannot list %s: %w", gvr.GroupResource(), err)
			}

			return nil
		})
		if err != nil {
			return "", err
		}
		for _, u := range p.objects {
			do(ofKind(u, gvk))
		}
		// All pages have the version of the first.
		if version = cmp.Or(version, p.version); p.next == "" {
			return version, nil
		}
		if onPage != nil {
			onPage(version)
		}
		options.Continue = p.next
	}
}

// isUnserved reports whether a kind can have no objects: it is not served, or can only be created,
// such as a TokenReview. It is true for NotFound too.
func isUnserved(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// ofKind sets the kind of a list's item, which some servers leave out.
func ofKind(u *unstructured.Unstructured, gvk schema.GroupVersionKind) *unstructured.Unstructured {
	if u.GetKind() == "" {
		u.SetGroupVersionKind(gvk)
	}

	return u
}
