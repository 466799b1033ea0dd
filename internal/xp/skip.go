package xp

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SkipReason returns why a restore leaves u out, "" if it does not: the control plane makes such an
// object again, and a restored one does harm. Package revisions depend on their package; see
// ActivatesManually.
func SkipReason(u *unstructured.Unstructured) string {
	group, kind := u.GroupVersionKind().Group, u.GetKind()
	switch {
	case group == GroupPackage && kind == "Lock":
		return "the package manager rebuilds the Lock; a restored one makes missing packages look installed"
	case group == GroupOperations && kind == "Operation":
		return "a restored Operation would run again"
	case strings.HasSuffix(kind, "ProviderConfigUsage") && Label(u, "crossplane.io/provider-config") != "":
		return "its managed resource makes it again; Crossplane deletes one without its owner"
	case group == GroupProtection && Label(u, "crossplane.io/provider-protection") != "":
		return "Crossplane makes it again for each provider that is in use"
	default:
		return madeForPackage(u)
	}
}

// madeForPackage returns why a restore leaves out a Kubernetes object that runs a package, or that
// is RBAC for a package or XRD; "" for any other. Crossplane's own kinds that a package brings,
// such as XRDs, are not among these: the package takes them over when it is installed.
func madeForPackage(u *unstructured.Unstructured) string {
	c, _ := Controller(u)
	owner := schema.FromAPIVersionAndKind(c.APIVersion, c.Kind)
	switch gk := u.GroupVersionKind().GroupKind().String(); gk {
	case "Deployment.apps", "Service", "ServiceAccount", "Secret":
		if isPackageRevisionKind(owner) {
			return "the package manager makes it again when it runs the package " + c.Name
		}
	case "ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io":
		// After a restore without this plugin these have no owner.
		named := strings.HasPrefix(u.GetName(), "crossplane:provider:") || strings.HasPrefix(u.GetName(), "crossplane:composite:")
		if named || isPackageRevisionKind(owner) || IsPlatformKind(owner) {
			return "Crossplane's RBAC manager makes it again for what it is named after"
		}
	}

	return ""
}

// ActivatesManually reports whether a user activates the revisions of a package. A revision that
// the package manager makes then stays inactive, so revisions must be restored as they were.
func ActivatesManually(pkg *unstructured.Unstructured) bool {
	return Get[string](pkg.Object, "spec", "revisionActivationPolicy") == UpdateManual
}
