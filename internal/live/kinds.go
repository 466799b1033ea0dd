package live

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Kinds returns the kinds in one of the categories that can be listed, each in the version that its
// group prefers, else in the first version that has it. The map has the groups and versions that
// could not be read, such as those of an extension API server that is down, with the reason.
func (c *Cluster) Kinds(ctx context.Context, categories ...string) ([]schema.GroupVersionKind, map[string]string, error) {
	groups, err := c.groupList()
	if err != nil {
		return nil, nil, err
	}
	var kinds []schema.GroupVersionKind
	unread := map[string]string{}
	for _, g := range groups.Groups {
		seen := map[string]bool{}
		for _, v := range append([]metav1.GroupVersionForDiscovery{g.PreferredVersion}, g.Versions...) {
			if err := ctx.Err(); err != nil {
				return nil, nil, fmt.Errorf("cannot ask which kinds are served: %w", err)
			}
			gv := schema.GroupVersion{Group: g.Name, Version: v.Version}
			list, err := c.kindsOf(gv)
			if err != nil {
				unread[gv.String()] = err.Error()

				continue
			}
			for _, r := range list.APIResources {
				if seen[r.Kind] || !slices.Contains(r.Verbs, "list") || !slices.ContainsFunc(r.Categories, func(s string) bool { return slices.Contains(categories, s) }) {
					continue
				}
				seen[r.Kind] = true
				kinds = append(kinds, gv.WithKind(r.Kind))
			}
		}
	}

	return kinds, unread, nil
}

// IsReconciled reports whether a kind is served and Crossplane or a provider reconciles it,
// according to its categories.
func (c *Cluster) IsReconciled(_ context.Context, gvk schema.GroupVersionKind) (bool, error) {
	categories, err := c.categoriesOf(gvk)

	return xp.AreReconciled(categories), err
}

// IsClaimKind reports whether a kind is served and is one of claims, according to its categories.
func (c *Cluster) IsClaimKind(gvk schema.GroupVersionKind) (bool, error) {
	categories, err := c.categoriesOf(gvk)

	return slices.Contains(categories, xp.CategoryClaim), err
}

// categoriesOf returns the categories of a kind, none if it is not served.
func (c *Cluster) categoriesOf(gvk schema.GroupVersionKind) ([]string, error) {
	if _, _, err := c.Resource(gvk); err != nil {
		if meta.IsNoMatchError(err) {
			err = nil
		}

		return nil, err
	}
	list, err := c.kindsOf(gvk.GroupVersion())
	if err != nil {
		return nil, err
	}
	r, _ := find(list, gvk.Kind)

	return r.Categories, nil
}

// groupList returns the groups that were served when the groups were last read.
func (c *Cluster) groupList() (*metav1.APIGroupList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups.list == nil {
		if err := c.readGroups(); err != nil {
			return nil, err
		}
	}

	return c.groups.list, nil
}
