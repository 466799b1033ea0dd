package xp

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// SkipReason reports whether u, as it was backed up, is something that the control plane makes anew
// by itself and that does harm when it is restored. It returns the reason for a person, "" for
// anything else. A package revision is rebuilt only if its package says so, see ActivatesManually.
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

// madeForPackage reports whether a Kubernetes object is what runs a package, or RBAC for a package
// or an XRD. What of Crossplane's a package brings, such as XRDs and Compositions, is taken over by
// the package when it is installed.
func madeForPackage(u *unstructured.Unstructured) string {
	owner := &unstructured.Unstructured{}
	c, _ := Controller(u)
	owner.SetAPIVersion(c.APIVersion)
	owner.SetKind(c.Kind)
	switch gk := u.GroupVersionKind().GroupKind().String(); gk {
	case "Deployment.apps", "Service", "ServiceAccount", "Secret":
		if IsPackageRevision(owner) {
			return "the package manager makes it again when it runs the package " + c.Name
		}
	case "ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io":
		// A restore without this plugin has left them without an owner.
		named := strings.HasPrefix(u.GetName(), "crossplane:provider:") || strings.HasPrefix(u.GetName(), "crossplane:composite:")
		if named || IsPackageRevision(owner) || IsPlatform(owner) {
			return "Crossplane's RBAC manager makes it again for what it is named after"
		}
	}

	return ""
}

// ActivatesManually reports whether a package's revisions are activated by a person: what the
// package manager makes anew stays inactive then, so the revisions must come back as they were.
func ActivatesManually(pkg *unstructured.Unstructured) bool {
	s, _, _ := unstructured.NestedString(pkg.Object, "spec", "revisionActivationPolicy")

	return s == UpdateManual
}
