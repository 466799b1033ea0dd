package adoption

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An Installation is the Crossplane that runs in a cluster; the zero value is one that was not
// found.
type Installation struct {
	// Namespace and Name of its Deployment.
	Namespace, Name string
	// Version without a leading v; "" if it is not known.
	Version string
	// Replicas are those that are wanted, Ready those that there are.
	Replicas, Ready int64
	// Hidden says that it could not be looked for.
	Hidden bool
}

// labelOfChart and chart are the label of the objects of Crossplane's chart.
const (
	labelOfChart = "app.kubernetes.io/part-of"
	chart        = "crossplane"
)

// LabelCrossplane selects the Deployments of Crossplane's chart.
const LabelCrossplane = labelOfChart + "=" + chart

// namespaceCrossplane is where Crossplane usually is.
const namespaceCrossplane = "crossplane-system"

// KindDeployment is the kind of what runs Crossplane.
var KindDeployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// IsOfCrossplane reports whether u is a Deployment of Crossplane's chart.
func IsOfCrossplane(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind() == KindDeployment && xp.Label(u, labelOfChart) == chart
}

// FindInstallation returns the Crossplane that the Deployments of its chart are of; the zero value
// is none.
func FindInstallation(deployments []*unstructured.Unstructured) Installation {
	// The RBAC manager is of the same chart.
	found := slices.DeleteFunc(slices.Clone(deployments), func(u *unstructured.Unstructured) bool { return strings.HasSuffix(u.GetName(), "-rbac-manager") })
	if len(found) == 0 {
		return Installation{}
	}
	// Whoever can make a Deployment can give it the label. Tenants can't in the namespace that
	// Crossplane's documentation has it installed in.
	isOther := func(u *unstructured.Unstructured) bool {
		return u.GetNamespace() != namespaceCrossplane || wanted(u) == 0
	}
	if own := slices.DeleteFunc(slices.Clone(found), isOther); len(own) > 0 {
		found = own
	}
	// One that was left behind has no replicas.
	u := slices.MaxFunc(found, func(a, b *unstructured.Unstructured) int { return cmp.Compare(ready(a), ready(b)) })

	return Installation{Namespace: u.GetNamespace(), Name: u.GetName(), Version: versionOf(u), Replicas: wanted(u), Ready: ready(u)}
}

// kubectl returns a command of kubectl's about its Deployment.
func (i Installation) kubectl(verb ...string) xp.Command {
	return xp.NewCommand("kubectl").With("-n", i.Namespace).Word(verb...).On("deployment/" + i.Name)
}

// IsDown reports whether no replica of a Crossplane that is installed is ready.
func (i Installation) IsDown() bool { return i.Name != "" && i.Ready == 0 }

// IsGone reports whether no Crossplane was found that runs.
func (i Installation) IsGone() bool { return !i.Hidden && i.Ready == 0 }

// Ref names its Deployment.
func (i Installation) Ref() xp.Ref {
	return xp.Ref{APIVersion: KindDeployment.GroupVersion().String(), Kind: KindDeployment.Kind, Namespace: i.Namespace, Name: i.Name}
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

// versionOf returns the version of a Deployment of Crossplane's chart: that of its image, or else
// that of the chart, which has the same.
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
