package backupitem

import (
	"context"
	"fmt"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/policy"
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
	// policies are further filters, by resource and for single objects.
	policies *policy.Policies
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
			cluster:  scope{excluded: slices.Concat(old.excluded, s.ExcludedClusterScopedResources)},
			policies: &policy.Policies{},
		}
		if s.IncludeClusterResources == nil {
			r.cluster.included = old.included
		}
		res.filters = r
		if s.ResourcePolicy == nil {
			return
		}
		p, err := res.policyOf(ctx, xp.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: backup.Namespace, Name: s.ResourcePolicy.Name})
		if err != nil {
			res.policyErr = err

			return
		}
		res.filters.policies = p
		if of := p.IncludeExclude; of != nil {
			res.filters.namespaced = r.namespaced.with(scope{included: of.IncludedNamespaceScoped, excluded: of.ExcludedNamespaceScoped})
			res.filters.cluster.excluded = r.cluster.with(scope{excluded: of.ExcludedClusterScoped}).excluded
		}
	})

	return res.filters, res.policyErr
}

// policyOf reads a resource policy.
func (res *Resolver) policyOf(ctx context.Context, r xp.Ref) (*policy.Policies, error) {
	u, err := res.reader.Get(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("cannot read the resource policy %s: %w", r.Path(), err)
	}
	data, _, err := unstructured.NestedStringMap(u.Object, "data")
	if err != nil {
		return nil, fmt.Errorf("cannot read the resource policy %s: %w", r.Path(), err)
	}
	p, err := policy.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("cannot read the resource policy %s: %w", r.Path(), err)
	}

	return p, nil
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

// filteredOut returns which filters of the backup for resources exclude an item; "" if none do.
func (res *Resolver) filteredOut(ctx context.Context, f *found, i xp.Item, backup *velerov1.Backup) string {
	filters, err := res.resourcesOf(ctx, backup)
	if err != nil {
		res.reportedUnfiltered.Do(func() {
			f.unknown = append(f.unknown, gap{
				of: xp.RefTo(f.of), what: "the resource policy of the backup",
				why: reason.RelatedNotRead.Messagef("%v. The warnings lack what it leaves out. Let Velero read it, then back up again", err),
			})
		})
	}
	of := filters.namespaced
	if i.Namespace == "" {
		of = filters.cluster
	}
	switch {
	case of.leavesOut(i.GroupResource):
		return "the backup's resource filters leave its kind out. If a restore needs it, include " + i.GroupResource.String() + ", then back up again"
	case !filters.policies.Admits(policy.Object{Resource: i.GroupResource, Namespace: i.Namespace, Name: i.Name}):
		return "the names in the filter for " + i.GroupResource.String() + " in the backup's resource policy leave it out. If a restore needs it, add its name, " +
			"then back up again"
	default:
		return ""
	}
}

// finds reports whether the backup's filters for resources include an object that nothing requests.
// u is nil if there is none.
func (res *Resolver) finds(ctx context.Context, f *found, u *unstructured.Unstructured, i xp.Item, backup *velerov1.Backup) bool {
	if res.filteredOut(ctx, f, i, backup) != "" {
		return false
	}
	if u == nil {
		return true
	}
	filters, _ := res.resourcesOf(ctx, backup)
	selected, applies := filters.policies.Selects(policy.Object{Resource: i.GroupResource, Namespace: i.Namespace, Name: i.Name, Labels: u.GetLabels})

	return !applies || selected
}
