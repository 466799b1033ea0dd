package xp

// Custom returns the resources that can be Crossplane's, as Velero's include and exclude lists with globs: which kinds XRs, claims and MRs
// have is up to their XRDs and providers, and Velero asks once, when there may be no XRD yet. The group of a custom resource has a
// dot, so its resource.group has two. CRDs are left out above all: item, original and Restore together must stay below
// 4 MiB (velero pkg/plugin/framework, go-plugin's default), and a CRD can exceed it.
func Custom() (include, exclude []string) {
	return []string{"*.*.*"}, []string{"*.k8s.io", "*.velero.io"}
}
