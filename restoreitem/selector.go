package restoreitem

import (
	"path"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Crossplane selects what Crossplane may have to do with: custom resources, and Secrets, which
// Velero would restore before all of these.
func Crossplane() velero.ResourceSelector {
	include, exclude := xp.CustomResources()

	return velero.ResourceSelector{IncludedResources: append(include, "secrets"), ExcludedResources: exclude}
}

// Composed selects resources of Kubernetes' own that are labelled as composed by an XR.
func Composed() velero.ResourceSelector {
	include, exclude := xp.KubernetesResources()

	return velero.ResourceSelector{IncludedResources: include, ExcludedResources: exclude, LabelSelector: xp.LabelComposite}
}

// Used selects resources of Kubernetes' own that a Usage protects, and that no XR composes.
func Used() velero.ResourceSelector {
	include, exclude := xp.KubernetesResources()

	return velero.ResourceSelector{IncludedResources: include, ExcludedResources: exclude, LabelSelector: xp.LabelInUse + ",!" + xp.LabelComposite}
}

// Runtime selects what can be made for a package or an XRD, and is not composed.
func Runtime() velero.ResourceSelector {
	return velero.ResourceSelector{IncludedResources: xp.RuntimeResources(), LabelSelector: "!" + xp.LabelComposite}
}

// ofNamespaces reports whether a restore is of some namespaces only: then cluster-scoped items come
// only if an action asks for them.
func ofNamespaces(restore *velerov1.Restore) bool {
	in, out := restore.Spec.IncludedNamespaces, restore.Spec.ExcludedNamespaces
	all := len(out) == 0 && (len(in) == 0 || slices.Equal(in, []string{"*"}))

	return !all && (restore.Spec.IncludeClusterResources == nil || !*restore.Spec.IncludeClusterResources)
}

var resourceSecrets = schema.GroupResource{Resource: "secrets"}

// takesSecrets reports whether a restore takes Secrets at all. What a resource policy leaves out
// can't be known.
func takesSecrets(restore *velerov1.Restore) bool {
	isNamed := func(filter string) bool { return filter == "*" || filter == "secrets" || filter == "secret" }
	in, out := restore.Spec.IncludedResources, restore.Spec.ExcludedResources

	return (len(in) == 0 || slices.ContainsFunc(in, isNamed)) && !slices.ContainsFunc(out, isNamed)
}

// isSelective reports whether a restore is only of what has some labels, or of some objects, which
// is all that a resource policy can say of a restore. Velero applies neither to what an action asks
// for (velero pkg/restore/restore.go, restoreItem).
func isSelective(restore *velerov1.Restore) bool {
	return restore.Spec.LabelSelector != nil || len(restore.Spec.OrLabelSelectors) > 0 || restore.Spec.ResourcePolicy != nil
}

// included reports whether a restore takes a namespace.
func included(restore *velerov1.Restore, namespace string) bool {
	in, out := restore.Spec.IncludedNamespaces, restore.Spec.ExcludedNamespaces

	return (len(in) == 0 || matches(in, namespace)) && !matches(out, namespace)
}

// matches reports whether one of the patterns matches. Velero allows globs in its lists.
func matches(patterns []string, namespace string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, namespace)

		return ok && err == nil
	})
}

// targetNamespace is the namespace that what is in the given one is restored to; "" for what is
// cluster-scoped.
func targetNamespace(namespace string, restore *velerov1.Restore) string {
	if to, ok := restore.Spec.NamespaceMapping[namespace]; ok && namespace != "" {
		return to
	}

	return namespace
}
