package backupitem

import (
	"context"
	"fmt"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A scope is a backup's filters by resource for what is namespaced, or for what is not.
type scope struct {
	included, excluded []string
}

// leavesOut reports whether the filters leave a resource out that an action asks for.
func (s scope) leavesOut(r schema.GroupResource) bool {
	return xp.MatchesResource(s.excluded, r) || len(s.included) > 0 && !xp.MatchesResource(s.included, r)
}

// with returns the filters with those of a resource policy, which the backup's own go before
// (velero pkg/util/collections, CombineWithPolicy).
func (s scope) with(policy scope) scope {
	without := func(filters, own []string) []string {
		return slices.DeleteFunc(slices.Clone(filters), func(f string) bool { return slices.Contains(own, f) })
	}

	return scope{
		included: append(slices.Clone(s.included), without(policy.included, s.excluded)...),
		excluded: append(slices.Clone(s.excluded), without(policy.excluded, s.included)...),
	}
}

// resources are a backup's filters by resource, as Velero applies them to what an action asks for
// (velero pkg/backup/item_backupper.go, itemInclusionChecks): of what is cluster-scoped it leaves
// out what is excluded, and what is not included only if nothing says that cluster-scoped resources
// are in the backup.
type resources struct {
	namespaced, cluster scope
}

// resourcesOf returns the filters of a backup, and an error if it can't read its resource policy,
// whose filters are not among them then.
func (res *Resolver) resourcesOf(ctx context.Context, backup *velerov1.Backup) (resources, error) {
	res.filtering.Do(func() {
		s := backup.Spec
		old := scope{included: s.IncludedResources, excluded: s.ExcludedResources}
		r := resources{
			namespaced: scope{
				included: slices.Concat(old.included, s.IncludedNamespaceScopedResources), excluded: slices.Concat(old.excluded, s.ExcludedNamespaceScopedResources),
			},
			cluster: scope{excluded: slices.Concat(old.excluded, s.ExcludedClusterScopedResources)},
		}
		if s.IncludeClusterResources == nil {
			r.cluster.included = old.included
		}
		res.filters = r
		if s.ResourcePolicy == nil {
			return
		}
		policy, err := res.policy(ctx, xp.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: backup.Namespace, Name: s.ResourcePolicy.Name})
		if err != nil {
			res.unfiltered = err

			return
		}
		res.filters = resources{namespaced: r.namespaced.with(policy.namespaced), cluster: scope{
			included: r.cluster.included, excluded: r.cluster.with(policy.cluster).excluded,
		}}
	})

	return res.filters, res.unfiltered
}

// policy reads the filters of a resource policy. Those that it has for single objects are not
// looked at.
func (res *Resolver) policy(ctx context.Context, r xp.Ref) (resources, error) {
	u, err := res.reader.Get(ctx, r)
	if err != nil {
		return resources{}, fmt.Errorf("cannot read the resource policy %s: %w", r.Path(), err)
	}
	data, _, err := unstructured.NestedStringMap(u.Object, "data")
	if err != nil {
		return resources{}, fmt.Errorf("cannot read the resource policy %s: %w", r.Path(), err)
	}
	var all resources
	for _, text := range data {
		var policy struct {
			IncludeExcludePolicy struct {
				ExcludedClusterScopedResources   []string `json:"excludedClusterScopedResources"`
				IncludedNamespaceScopedResources []string `json:"includedNamespaceScopedResources"`
				ExcludedNamespaceScopedResources []string `json:"excludedNamespaceScopedResources"`
			} `json:"includeExcludePolicy"`
		}
		if err := yaml.Unmarshal([]byte(text), &policy); err != nil {
			return resources{}, fmt.Errorf("cannot read the resource policy %s: %w", r.Path(), err)
		}
		p := policy.IncludeExcludePolicy
		all.namespaced.included = append(all.namespaced.included, p.IncludedNamespaceScopedResources...)
		all.namespaced.excluded = append(all.namespaced.excluded, p.ExcludedNamespaceScopedResources...)
		all.cluster.excluded = append(all.cluster.excluded, p.ExcludedClusterScopedResources...)
	}

	return all, nil
}

// isFirst reports whether it is the first time that an item is to be told of which thousands of
// others can name too.
func (res *Resolver) isFirst(i xp.Item) bool {
	res.mu.Lock()
	defer res.mu.Unlock()
	told := res.told[i]
	res.told[i] = true

	return !told
}

// filteredOut reports whether the backup's filters by resource leave an item out.
func (res *Resolver) filteredOut(ctx context.Context, f *found, i xp.Item, backup *velerov1.Backup) bool {
	filters, err := res.resourcesOf(ctx, backup)
	if err != nil {
		res.toldUnfiltered.Do(func() {
			f.unknown = append(f.unknown, gap{
				of: xp.RefTo(f.of), what: "the resource policy of the backup",
				why: err.Error() + ". What it leaves out is not named; see that Velero may read it, then back up again",
			})
		})
	}
	if i.Namespace == "" {
		return filters.cluster.leavesOut(i.GroupResource)
	}

	return filters.namespaced.leavesOut(i.GroupResource)
}
