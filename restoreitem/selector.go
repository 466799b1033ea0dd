package restoreitem

import (
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Crossplane selects what Crossplane may use: custom resources, and Secrets, which Velero restores
// before these.
func Crossplane() velero.ResourceSelector {
	include, exclude := xp.CustomResources()

	return velero.ResourceSelector{IncludedResources: append(include, "secrets"), ExcludedResources: exclude}
}

// Composed selects resources of Kubernetes' kinds that an XR composes.
func Composed() velero.ResourceSelector {
	include, exclude := xp.KubernetesResources()

	return velero.ResourceSelector{IncludedResources: include, ExcludedResources: exclude, LabelSelector: xp.LabelComposite}
}

// Used selects resources of Kubernetes' kinds that a Usage protects and no XR composes.
func Used() velero.ResourceSelector {
	include, exclude := xp.KubernetesResources()

	return velero.ResourceSelector{IncludedResources: include, ExcludedResources: exclude, LabelSelector: xp.LabelInUse + ",!" + xp.LabelComposite}
}

// Runtime selects what Crossplane creates for a package or an XRD, and no XR composes.
func Runtime() velero.ResourceSelector {
	return velero.ResourceSelector{IncludedResources: xp.RuntimeResources(), LabelSelector: "!" + xp.LabelComposite}
}

// ofNamespaces reports whether a restore is of some namespaces only. Cluster-scoped items then come
// only if an action requests them.
func ofNamespaces(restore *velerov1.Restore) bool {
	in, out := restore.Spec.IncludedNamespaces, restore.Spec.ExcludedNamespaces
	all := len(out) == 0 && (len(in) == 0 || slices.Equal(in, []string{"*"}))

	return !all && (restore.Spec.IncludeClusterResources == nil || !*restore.Spec.IncludeClusterResources)
}

var resourceSecrets = schema.GroupResource{Resource: "secrets"}

// takesSecrets reports whether a restore takes Secrets.
func takesSecrets(restore *velerov1.Restore) bool {
	isNamed := func(filter string) bool { return filter == "*" || filter == "secrets" || filter == "secret" }
	in, out := restore.Spec.IncludedResources, restore.Spec.ExcludedResources

	return (len(in) == 0 || slices.ContainsFunc(in, isNamed)) && !slices.ContainsFunc(out, isNamed)
}

// isSelective reports whether a restore selects objects by labels or by a resource policy. Velero
// applies neither to what an action requests (velero pkg/restore/restore.go, restoreItem).
func isSelective(restore *velerov1.Restore) bool {
	return restore.Spec.LabelSelector != nil || len(restore.Spec.OrLabelSelectors) > 0 || restore.Spec.ResourcePolicy != nil
}

// included reports whether a restore includes a namespace.
func included(restore *velerov1.Restore, namespace string) bool {
	return xp.IncludesNamespace(restore.Spec.IncludedNamespaces, restore.Spec.ExcludedNamespaces, namespace)
}

// targetNamespace returns the namespace that the given one is restored to, "" for cluster-scoped
// items.
func targetNamespace(namespace string, restore *velerov1.Restore) string {
	if to, ok := restore.Spec.NamespaceMapping[namespace]; ok && namespace != "" {
		return to
	}

	return namespace
}
