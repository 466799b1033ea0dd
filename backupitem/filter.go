package backupitem

import (
	"context"
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

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
	beyond, of := false, f.of
	f.items = slices.DeleteFunc(f.items, func(i xp.Item) bool {
		to := xp.Ref{Kind: i.GroupResource.String(), Namespace: i.Namespace, Name: i.Name}
		switch why := res.leftOut(ctx, backup, i, f.published[i]); {
		case !why.IsZero():
			f.skip(of, to, why)

			return true
		case i.Namespace == "" && !ptr.Deref(backup.Spec.IncludeClusterResources, true):
			if f.activating[i] && !res.isFirst(i) {
				return true // Thousands of MRs need the same.
			}
			f.skip(of, to, reason.ExcludedByFilter.Messagef("the backup has --include-cluster-resources=false. To restore the tree, back up without that"))

			return true
		}
		if why := res.filteredOut(ctx, f, i, backup); why != "" {
			if !slices.Contains(f.shared, i) || res.isFirst(i) {
				f.skip(of, to, reason.ExcludedByFilter.Messagef("%s", why))
			}

			return true
		}
		beyond = beyond || i.Namespace != "" && !included(backup, i.Namespace)

		return false
	})
	f.before = slices.DeleteFunc(f.before, func(i xp.Item) bool {
		return !res.leftOut(ctx, backup, i, f.published[i]).IsZero() || res.filteredOut(ctx, f, i, backup) != ""
	})

	return beyond
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
		switch kept, err := res.isExcluded(ctx, i.Namespace); {
		case kept:
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

// isExcluded reports whether a namespace has excludeLabel. It reads the namespace once.
func (res *Resolver) isExcluded(ctx context.Context, namespace string) (bool, error) {
	return cached(res.excludedNamespaces, namespace, func() (bool, error) {
		u, err := res.get(ctx, xp.Ref{APIVersion: "v1", Kind: "Namespace", Name: namespace})

		return u != nil && isExcluded(u), err
	})
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

// takesSecrets reports whether a backup takes Secrets. A resource policy can't be evaluated here.
func takesSecrets(backup *velerov1.Backup) bool {
	s := backup.Spec
	named := func(filters []string) bool {
		return slices.ContainsFunc(filters, func(f string) bool { return f == "*" || f == "secrets" || f == "secret" })
	}
	for _, in := range [][]string{s.IncludedResources, s.IncludedNamespaceScopedResources} {
		if len(in) > 0 && !named(in) {
			return false
		}
	}

	return !named(s.ExcludedResources) && !named(s.ExcludedNamespaceScopedResources)
}

// included reports whether a backup includes a namespace.
func included(backup *velerov1.Backup, namespace string) bool {
	return xp.IncludesNamespace(backup.Spec.IncludedNamespaces, backup.Spec.ExcludedNamespaces, namespace)
}
