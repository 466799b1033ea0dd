package backupitem

import (
	"context"
	"fmt"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A scope has a backup's resource filters for namespaced or for cluster-scoped resources.
type scope struct {
	included, excluded []string
}

// leavesOut reports whether the filters exclude a resource that an action requests.
func (s scope) leavesOut(r schema.GroupResource) bool {
	return xp.MatchesResource(s.excluded, r) || len(s.included) > 0 && !xp.MatchesResource(s.included, r)
}

// with returns the filters with those of a resource policy. The backup's own take precedence
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

// resources are a backup's resource filters, as Velero applies them to what an action requests
// (velero pkg/backup/item_backupper.go, itemInclusionChecks). Of cluster-scoped resources Velero
// leaves out the excluded ones. It leaves out those that are not included only if nothing puts
// cluster-scoped resources into the backup.
type resources struct {
	namespaced, cluster scope
}

// resourcesOf returns the filters of a backup. If its resource policy can't be read, they lack
// those of the policy, and there is an error.
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
			res.policyErr = err

			return
		}
		res.filters = resources{namespaced: r.namespaced.with(policy.namespaced), cluster: scope{
			included: r.cluster.included, excluded: r.cluster.with(policy.cluster).excluded,
		}}
	})

	return res.filters, res.policyErr
}

// policy reads the filters of a resource policy, without those for single objects.
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

// isFirst reports whether an item that thousands of others can name is warned of for the first
// time.
func (res *Resolver) isFirst(i xp.Item) bool {
	res.mu.Lock()
	defer res.mu.Unlock()
	_, reported := res.reported.Get(i)
	res.reported.Add(i, true)

	return !reported
}

// filteredOut reports whether the backup's resource filters exclude an item.
func (res *Resolver) filteredOut(ctx context.Context, f *found, i xp.Item, backup *velerov1.Backup) bool {
	filters, err := res.resourcesOf(ctx, backup)
	if err != nil {
		res.reportedUnfiltered.Do(func() {
			f.unknown = append(f.unknown, gap{
				of: xp.RefTo(f.of), what: "the resource policy of the backup",
				why: reason.RelatedNotRead.Messagef("%v. The warnings lack what it leaves out. Let Velero read it, then back up again", err),
			})
		})
	}
	if i.Namespace == "" {
		return filters.cluster.leavesOut(i.GroupResource)
	}

	return filters.namespaced.leavesOut(i.GroupResource)
}
