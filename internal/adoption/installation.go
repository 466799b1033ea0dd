package adoption

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An Installation is the Crossplane of a cluster. The zero value means that none was found.
type Installation struct {
	// Namespace and Name are those of the Deployment.
	Namespace, Name string
	// Version has no leading v; "" if not known.
	Version string
	// Replicas is the desired number, Ready the number of ready ones.
	Replicas, Ready int64
	// Hidden means that the Deployment could not be looked for.
	Hidden bool
}

const (
	labelOfChart = "app.kubernetes.io/part-of"
	chart        = "crossplane"
)

// LabelCrossplane selects the Deployments of Crossplane's chart.
const LabelCrossplane = labelOfChart + "=" + chart

// namespaceCrossplane is the namespace of Crossplane's documentation.
const namespaceCrossplane = "crossplane-system"

// KindDeployment is the kind of the object that runs Crossplane.
var KindDeployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// IsOfCrossplane reports whether u is a Deployment of Crossplane's chart.
func IsOfCrossplane(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind() == KindDeployment && xp.Label(u, labelOfChart) == chart
}

// FindInstallation returns the Crossplane of the Deployments of its chart; the zero value if none.
func FindInstallation(deployments []*unstructured.Unstructured) Installation {
	// The RBAC manager belongs to the same chart.
	found := slices.DeleteFunc(slices.Clone(deployments), func(u *unstructured.Unstructured) bool { return strings.HasSuffix(u.GetName(), "-rbac-manager") })
	if len(found) == 0 {
		return Installation{}
	}
	// A user who can create a Deployment can give it the label. Tenants can't create one in the
	// namespace of Crossplane's documentation.
	isOther := func(u *unstructured.Unstructured) bool {
		return u.GetNamespace() != namespaceCrossplane || wanted(u) == 0
	}
	if own := slices.DeleteFunc(slices.Clone(found), isOther); len(own) > 0 {
		found = own
	}
	// A leftover Deployment has no ready replicas.
	u := slices.MaxFunc(found, func(a, b *unstructured.Unstructured) int { return cmp.Compare(ready(a), ready(b)) })

	return Installation{Namespace: u.GetNamespace(), Name: u.GetName(), Version: versionOf(u), Replicas: wanted(u), Ready: ready(u)}
}

func (i Installation) kubectl(verb ...string) xp.Command {
	return xp.NewCommand("kubectl").With("-n", i.Namespace).Word(verb...).On("deployment/" + i.Name)
}

// IsDown reports whether Crossplane is installed and no replica is ready.
func (i Installation) IsDown() bool { return i.Name != "" && i.Ready == 0 }

// Ref returns the reference to its Deployment.
func (i Installation) Ref() xp.Ref {
	return xp.Ref{APIVersion: KindDeployment.GroupVersion().String(), Kind: KindDeployment.Kind, Namespace: i.Namespace, Name: i.Name}
}

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

// versionOf returns the version of a Deployment of Crossplane's chart: from its image, or else from
// the chart, which has the same version; "" if neither has one.
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

func isVersion(tag string) bool {
	tag = strings.TrimPrefix(tag, "v")

	return tag != "" && tag[0] >= '0' && tag[0] <= '9' && strings.Contains(tag, ".")
}
