package live

import (
	"cmp"
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
)

// namespaceCrossplane is where Crossplane usually is.
const namespaceCrossplane = "crossplane-system"

// Installation finds the Deployment of Crossplane; the zero value is none.
func (c *Cluster) Installation(ctx context.Context) (adoption.Installation, error) {
	found, err := c.List(ctx, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "",
		metav1.ListOptions{LabelSelector: adoption.LabelCrossplane})
	if err != nil {
		return adoption.Installation{}, err
	}
	// The RBAC manager is of the same chart.
	found = slices.DeleteFunc(found, func(u *unstructured.Unstructured) bool { return strings.HasSuffix(u.GetName(), "-rbac-manager") })
	if len(found) == 0 {
		return adoption.Installation{}, nil
	}
	// Whoever can make a Deployment can give it the label. Tenants can't in the namespace that Crossplane's documentation has it installed in.
	isOther := func(u *unstructured.Unstructured) bool {
		return u.GetNamespace() != namespaceCrossplane || wanted(u) == 0
	}
	if own := slices.DeleteFunc(slices.Clone(found), isOther); len(own) > 0 {
		found = own
	}
	// One that was left behind has no replicas.
	u := slices.MaxFunc(found, func(a, b *unstructured.Unstructured) int { return cmp.Compare(ready(a), ready(b)) })
	i := adoption.Installation{Namespace: u.GetNamespace(), Name: u.GetName(), Version: versionOf(u), Replicas: wanted(u), Ready: ready(u)}

	return i, nil
}

// wanted returns how many replicas a Deployment is to have.
func wanted(u *unstructured.Unstructured) int64 {
	if n, set, err := unstructured.NestedInt64(u.Object, "spec", "replicas"); err == nil && set {
		return n
	}

	return 1
}

func ready(u *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")

	return n
}

// versionOf returns the version of a Deployment of Crossplane's chart: that of its image, or else that of the chart, which has the same.
func versionOf(u *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	for _, entry := range containers {
		container, _ := entry.(map[string]any)
		image, _ := container["image"].(string)
		image, _, _ = strings.Cut(image, "@")
		if n := strings.LastIndex(image, ":"); n > strings.LastIndex(image, "/") && isVersion(image[n+1:]) {
			return strings.TrimPrefix(image[n+1:], "v")
		}
	}
	labels := u.GetLabels()
	if v := labels["app.kubernetes.io/version"]; isVersion(v) {
		return strings.TrimPrefix(v, "v")
	}
	if n := strings.LastIndex(labels["helm.sh/chart"], "-"); n >= 0 && isVersion(labels["helm.sh/chart"][n+1:]) {
		return labels["helm.sh/chart"][n+1:]
	}

	return ""
}

// isVersion tells a version from a tag such as "latest".
func isVersion(tag string) bool {
	tag = strings.TrimPrefix(tag, "v")

	return tag != "" && tag[0] >= '0' && tag[0] <= '9' && strings.Contains(tag, ".")
}
