package adoption

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

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
	// LabelCrossplane selects the Deployments of Crossplane's chart.
	LabelCrossplane = labelOfChart + "=" + chart
	// namespaceCrossplane is the namespace of Crossplane's documentation.
	namespaceCrossplane = "crossplane-system"
)

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
// the label of the chart; "" if neither has one.
func versionOf(u *unstructured.Unstructured) string {
	tags := make([]string, 0, 2)
	for _, container := range xp.Maps(u.Object, "spec", "template", "spec", "containers") {
		image, _ := container["image"].(string)
		image, _, _ = strings.Cut(image, "@")
		if n := strings.LastIndex(image, ":"); n > strings.LastIndex(image, "/") {
			tags = append(tags, image[n+1:])
		}
	}
	for _, tag := range append(tags, xp.Label(u, "app.kubernetes.io/version")) {
		if _, err := version.ParseGeneric(tag); err == nil {
			return strings.TrimPrefix(tag, "v")
		}
	}

	return ""
}

// A Defect is a bug of some versions of Crossplane that a restore can hit.
type Defect struct {
	// From is the first version with the bug; "" if all versions before Before have it. Before is
	// the first version without it.
	From, Before string
	// OfUnserved means that the bug shows as a kind that a cluster does not serve.
	OfUnserved bool
	// What describes the bug; the text continues a sentence that begins with "Crossplane".
	What string
	// Until is the workaround until Crossplane is upgraded; "" if there is none.
	Until string
}

// stopsWatching is a bug of the watch garbage collector in versions that are no longer supported.
var stopsWatching = Defect{ //nolint:gochecknoglobals // It is a constant.
	Before: "1.20.0",
	What: "stops watching a kind that had no objects for a minute, such as that of an XRD that was restored early (crossplane #5400, #5151), until it is " +
		"restarted",
	Until: "restart it if nothing reconciles what is restored",
}

// truncates describes a bug of the cache of packages: the connection to the registry or the volume
// fails, and what was read until then is taken for the package from the next reconcile on
// (crossplane-runtime pkg/xpkg, CachedClient.Get and FsPackageCache.Store).
const truncates = "can keep a package whose download or whose write into the cache broke off as if it were whole (crossplane-runtime #1112): its " +
	"provider is Healthy and lacks some of its CRDs for good"

// emptiesCache is what gets a truncated package out of the cache.
const emptiesCache = "if a Healthy provider lacks CRDs, delete Crossplane's Pod, which has its cache of packages in an emptyDir, or the package's file in " +
	"the volume that is used instead"

// defects are all known bugs; a new one is added here. A bug belongs here if it can make a restore
// into that version fail, or a usual workaround.
var defects = []Defect{ //nolint:gochecknoglobals // It is a constant list.
	stopsWatching,
	{
		From: "2.0.0", Before: "2.0.3",
		What:  "does not reconcile a namespaced XR when a resource that it composes changes (crossplane #6780), so a restored one may never become Ready",
		Until: `start it with "--enable-realtime-compositions=false"`,
	},
	{
		From: "2.4.0", Before: "2.4.2",
		What: "does not give the ServiceAccount of a package's former revision to a new one with the same name for it (crossplane #7838): after an upgrade of " +
			"Crossplane or of such a package, its provider or function has no Pod",
	},
	{From: "2.2.0", Before: "2.2.7", OfUnserved: true, What: truncates, Until: emptiesCache},
	{From: "2.3.0", Before: "2.4.3", OfUnserved: true, What: truncates, Until: emptiesCache}, // 2.3.5 was the last 2.3 whose source could be read.
}

// Defects returns the known bugs of the installed version; none if the version is not known. Those
// that show as a kind that is not served are included if the cluster lacks one.
func (i Installation) Defects(unserved bool) []Defect {
	return slices.DeleteFunc(slices.Clone(defects), func(d Defect) bool { return !i.has(d) || d.OfUnserved && !unserved })
}

// has treats a release candidate as the release: most of a release is in its candidates.
func (i Installation) has(d Defect) bool {
	v, err := version.ParseGeneric(i.Version)

	return err == nil && v.LessThan(version.MustParseGeneric(d.Before)) && (d.From == "" || v.AtLeast(version.MustParseGeneric(d.From)))
}
