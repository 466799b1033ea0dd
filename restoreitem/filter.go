package restoreitem

import (
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// ofNamespaces reports whether cluster-scoped items come only if an action requests them.
func ofNamespaces(restore *velerov1.Restore) bool {
	in, out := restore.Spec.IncludedNamespaces, restore.Spec.ExcludedNamespaces
	all := len(out) == 0 && (len(in) == 0 || slices.Equal(in, []string{"*"}))

	return !all && (restore.Spec.IncludeClusterResources == nil || !*restore.Spec.IncludeClusterResources)
}

var resourceSecrets = schema.GroupResource{Resource: "secrets"}

// isSelective reports whether a restore selects objects by labels or by a resource policy. Velero
// applies neither to what an action requests (velero pkg/restore/restore.go, restoreItem).
func isSelective(restore *velerov1.Restore) bool {
	return restore.Spec.LabelSelector != nil || len(restore.Spec.OrLabelSelectors) > 0 || restore.Spec.ResourcePolicy != nil
}

func included(restore *velerov1.Restore, namespace string) bool {
	return xp.IncludesNamespace(restore.Spec.IncludedNamespaces, restore.Spec.ExcludedNamespaces, namespace)
}

// targetNamespace returns the namespace that the given one is restored to; "" for "".
func targetNamespace(namespace string, restore *velerov1.Restore) string {
	if to, ok := restore.Spec.NamespaceMapping[namespace]; ok && namespace != "" {
		return to
	}

	return namespace
}

// inScope reports whether a restore includes an item's namespace, or cluster-scoped items.
func inScope(i xp.Item, restore *velerov1.Restore) bool {
	if i.Namespace == "" {
		return ptr.Deref(restore.Spec.IncludeClusterResources, true)
	}

	return included(restore, i.Namespace)
}

// isFiltered reports whether a restore's resource filters exclude an item.
func isFiltered(i xp.Item, restore *velerov1.Restore) bool {
	in, out := restore.Spec.IncludedResources, restore.Spec.ExcludedResources

	return xp.MatchesResource(out, i.GroupResource) || len(in) > 0 && !xp.MatchesResource(in, i.GroupResource)
}

// includesSecretsOf reports whether a restore takes connection secrets from a namespace that it
// does not include. It doesn't if its user chooses resources or excludes the namespace. Label
// selectors and resource policies are only for what Velero finds itself.
func includesSecretsOf(restore *velerov1.Restore, namespace string) bool {
	s := restore.Spec
	// Velero adds to the excluded resources those that it never restores (velero
	// pkg/controller/restore_controller.go, validateAndComplete).
	chosen := slices.ContainsFunc(s.ExcludedResources, func(resource string) bool { return !slices.Contains(xp.NeverRestoredResources(), resource) })
	all := len(s.IncludedResources) == 0 || slices.Equal(s.IncludedResources, []string{"*"})

	return all && !chosen && !xp.MatchesNamespace(s.ExcludedNamespaces, namespace)
}

// excludesSecret reports whether a restore's filters exclude a Secret, or may do so.
func excludesSecret(secret xp.Ref, restore *velerov1.Restore) bool {
	return !included(restore, secret.Namespace) || isFiltered(secretItem(secret), restore) || isSelective(restore)
}
