package backupitem

import (
	"context"
	"fmt"
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/policy"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// excludeLabel keeps an object, or all objects in a namespace, out of backups.
const excludeLabel = velerov1.ExcludeFromBackupLabel

// applyFilters removes what the backup's filters exclude, which Velero would drop silently, and
// warns of it. A connection secret belongs to its publisher in any namespace, and a password may be
// nowhere else. So it is taken from any namespace that is not excluded, unless the backup selects
// resources. The result reports whether Velero must look beyond its filters for that. Velero then
// ignores the labels too, so items with excludeLabel must not be among them.
func (res *Resolver) applyFilters(ctx context.Context, f *found, backup *velerov1.Backup) bool {
	beyond := false
	if _, err := res.resourcesOf(ctx, backup); err != nil {
		f.notes = append(f.notes, warning{
			of: xp.Ref{Kind: "Backup", Namespace: backup.Namespace, Name: backup.Name}, to: "the resource policy of the backup", once: true,
			why: reason.RelatedNotRead.Messagef("%v. The warnings lack what it leaves out. Let Velero read it, then back up again", err),
		})
	}
	f.items = slices.DeleteFunc(f.items, func(i xp.Item) bool {
		why, once := res.exclusion(ctx, f, i, backup)
		if why.IsZero() {
			beyond = beyond || i.Namespace != "" && !included(backup, i.Namespace)

			return false
		}
		if !once || res.isFirst(i) {
			f.skip(f.of, xp.Ref{Kind: i.GroupResource.String(), Namespace: i.Namespace, Name: i.Name}, why)
		}

		return true
	})
	f.before = slices.DeleteFunc(f.before, func(i xp.Item) bool {
		return !res.leftOut(ctx, backup, i, f.published[i]).IsZero() || !res.filteredOut(ctx, i, backup).IsZero()
	})

	return beyond
}

// exclusion returns why a backup must not have an item, none if it may, and whether that is said only
// once in a backup.
func (res *Resolver) exclusion(ctx context.Context, f *found, i xp.Item, backup *velerov1.Backup) (why reason.Message, once bool) {
	switch why := res.leftOut(ctx, backup, i, f.published[i]); {
	case !why.IsZero():
		return why, false
	case i.Namespace == "" && !ptr.Deref(backup.Spec.IncludeClusterResources, true):
		// Thousands of MRs need what activates their kind.
		return reason.ExcludedByFilter.Messagef("the backup has --include-cluster-resources=false. To restore the tree, back up without that"),
			i.GroupResource == xp.ResourceManagedDefinition || i.GroupResource == xp.ResourceActivationPolicy
	default:
		return res.filteredOut(ctx, i, backup), slices.Contains(f.shared, i)
	}
}

// leftOut returns why a backup must not have an item in a namespace that it does not include, none
// if it may.
func (res *Resolver) leftOut(ctx context.Context, backup *velerov1.Backup, i xp.Item, published bool) reason.Message {
	if i.Namespace == "" || included(backup, i.Namespace) {
		return reason.Message{}
	}
	reached := published && includesSecretsOf(backup, i.Namespace)
	// Velero adds the namespaces with the label to the excluded ones (velero
	// pkg/controller/backup_controller.go, prepareBackupRequest).
	if reached || xp.MatchesNamespace(backup.Spec.ExcludedNamespaces, i.Namespace) {
		switch namespace, err := res.get(ctx, xp.Ref{APIVersion: "v1", Kind: "Namespace", Name: i.Namespace}); {
		case namespace != nil && isExcluded(namespace):
			return reason.ExcludedByLabel.Messagef("the label %s of its namespace keeps it out of backups. If it can't be created again, remove that label from %s, "+
				"then back up again", excludeLabel, i.Namespace)
		case err != nil && reached:
			return reason.RelatedNotRead.Messagef("its namespace, which the label %s can keep out of backups, can't be read: %v. When the API server answers, "+
				"back up again", excludeLabel, err)
		}
	}
	if reached {
		return reason.Message{}
	}

	return reason.ExcludedByFilter.Messagef("its namespace is not in the backup. If it can't be created again, add %s to --include-namespaces", i.Namespace)
}

// isExcluded reports whether an object has excludeLabel.
func isExcluded(u *unstructured.Unstructured) bool {
	return u.GetLabels()[excludeLabel] == "true"
}

// includesSecretsOf reports whether a backup takes connection secrets from a namespace that it does
// not include.
func includesSecretsOf(backup *velerov1.Backup, namespace string) bool {
	s := backup.Spec
	filters := slices.Concat(s.IncludedResources, s.ExcludedResources, s.IncludedClusterScopedResources, s.ExcludedClusterScopedResources,
		s.IncludedNamespaceScopedResources, s.ExcludedNamespaceScopedResources)
	// Velero itself excludes VolumeSnapshots and related kinds from all backups (velero
	// pkg/controller/backup_controller.go).
	ofResources := slices.ContainsFunc(filters, func(f string) bool { return !strings.HasSuffix(f, ".snapshot.storage.k8s.io") })

	return !ofResources && s.ResourcePolicy == nil && ptr.Deref(s.IncludeClusterResources, true) && !xp.MatchesNamespace(s.ExcludedNamespaces, namespace)
}

// included reports whether a backup includes a namespace.
func included(backup *velerov1.Backup, namespace string) bool {
	return xp.IncludesNamespace(backup.Spec.IncludedNamespaces, backup.Spec.ExcludedNamespaces, namespace)
}

// includesAll reports whether a backup includes all namespaces.
func includesAll(backup *velerov1.Backup) bool {
	s := backup.Spec

	return len(s.ExcludedNamespaces) == 0 && (len(s.IncludedNamespaces) == 0 || slices.Equal(s.IncludedNamespaces, []string{"*"}))
}

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
		r := &res.filters
		r.policies = &policy.Policies{}
		r.namespaced.included = slices.Concat(s.IncludedResources, s.IncludedNamespaceScopedResources)
		r.namespaced.excluded = slices.Concat(s.ExcludedResources, s.ExcludedNamespaceScopedResources)
		r.cluster.excluded = slices.Concat(s.ExcludedResources, s.ExcludedClusterScopedResources)
		if s.IncludeClusterResources == nil {
			r.cluster.included = s.IncludedResources
		}
		if s.ResourcePolicy == nil {
			return
		}
		ref := xp.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: backup.Namespace, Name: s.ResourcePolicy.Name}
		p, err := res.policyOf(ctx, ref)
		if err != nil {
			res.policyErr = fmt.Errorf("cannot read the resource policy %s: %w", ref.Path(), err)

			return
		}
		r.policies = p
		if of := p.IncludeExclude; of != nil {
			r.namespaced = r.namespaced.with(scope{included: of.IncludedNamespaceScoped, excluded: of.ExcludedNamespaceScoped})
			r.cluster.excluded = r.cluster.with(scope{excluded: of.ExcludedClusterScoped}).excluded
		}
	})

	return res.filters, res.policyErr
}

// policyOf reads a resource policy.
func (res *Resolver) policyOf(ctx context.Context, r xp.Ref) (*policy.Policies, error) {
	u, err := res.reader.Get(ctx, r)
	if err != nil {
		return nil, err
	}
	data, _, _ := unstructured.NestedStringMap(u.Object, "data") // A ConfigMap has strings.

	return policy.Parse(data)
}

// filteredOut returns which filters of the backup for resources exclude an item, none if none do.
func (res *Resolver) filteredOut(ctx context.Context, i xp.Item, backup *velerov1.Backup) reason.Message {
	filters, _ := res.resourcesOf(ctx, backup) // applyFilters warns of the error.
	of := filters.namespaced
	if i.Namespace == "" {
		of = filters.cluster
	}
	switch {
	case of.leavesOut(i.GroupResource):
		return reason.ExcludedByFilter.Messagef("the backup's resource filters leave its kind out. If a restore needs it, include %s, then back up again",
			i.GroupResource)
	case !filters.policies.Admits(policy.Object{Resource: i.GroupResource, Namespace: i.Namespace, Name: i.Name}):
		return reason.ExcludedByFilter.Messagef("the names in the filter for %s in the backup's resource policy leave it out. If a restore needs it, add its name, "+
			"then back up again", i.GroupResource)
	default:
		return reason.Message{}
	}
}

// finds reports whether the backup's filters for resources include an object that nothing requests.
// u is nil if there is none.
func (res *Resolver) finds(ctx context.Context, u *unstructured.Unstructured, i xp.Item, backup *velerov1.Backup) bool {
	if !res.filteredOut(ctx, i, backup).IsZero() {
		return false
	}
	if u == nil {
		return true
	}
	filters, _ := res.resourcesOf(ctx, backup)
	selected, applies := filters.policies.Selects(policy.Object{Resource: i.GroupResource, Namespace: i.Namespace, Name: i.Name, Labels: u.GetLabels})

	return !applies || selected
}
