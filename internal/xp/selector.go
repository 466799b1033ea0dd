package xp

import "strings"

// CustomResources returns the resources that can be Crossplane's, as Velero's include and exclude
// lists with globs: which kinds XRs, claims and MRs have is up to their XRDs and providers, and
// Velero asks once, when there may be no XRD yet. The group of a custom resource has a dot, so its
// resource.group has two. CRDs are left out above all: item, original and Restore together must
// stay below 4 MiB (velero pkg/plugin/framework, go-plugin's default), and a CRD can exceed it.
func CustomResources() (include, exclude []string) {
	return []string{"*.*.*"}, []string{"*.k8s.io", "*.velero.io"}
}

// IsCustomGroup reports whether the resources of a group are among Custom.
func IsCustomGroup(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") && !strings.HasSuffix(group, ".velero.io")
}

// KubernetesResources returns the resources of Kubernetes' own that an XR can compose, other than
// Secrets and Namespaces, as Custom does. Velero asks no action about Namespaces.
func KubernetesResources() (include, exclude []string) {
	return []string{
		"configmaps", "endpoints", "limitranges", "persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "replicationcontrollers",
		"resourcequotas", "serviceaccounts", "services", "*.apps", "*.autoscaling", "*.batch", "*.policy", "*.k8s.io",
	}, []string{"customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io"}
}

// RuntimeResources returns the resources of Kubernetes' own, other than Secrets, that Crossplane
// makes to run packages and to let people use XRDs.
func RuntimeResources() []string {
	return []string{"deployments.apps", "services", "serviceaccounts", "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"}
}
