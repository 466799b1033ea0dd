package adoption

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
)

// A Defect is a bug of some versions of Crossplane that a restore can hit.
type Defect struct {
	// From is the first version with the bug; "" if all versions before Before have it. Before is
	// the first version without it.
	From, Before string
	// Fixed is the version to upgrade to, if Before is only the first version not known to have it.
	Fixed string
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
	// 2.3.5 was the last 2.3 whose source could be read.
	{From: "2.3.0", Before: "2.3.6", Fixed: "2.4.3", OfUnserved: true, What: truncates, Until: emptiesCache},
	{From: "2.4.0", Before: "2.4.3", OfUnserved: true, What: truncates, Until: emptiesCache},
}

// Defects returns the known bugs of the installed version; none if the version is not known. Those
// that show as a kind that is not served are included if the cluster lacks one.
func (i Installation) Defects(unserved bool) []Defect {
	return slices.DeleteFunc(slices.Clone(defects), func(d Defect) bool { return !i.has(d) || d.OfUnserved && !unserved })
}

func (i Installation) has(d Defect) bool {
	return i.isBefore(d.Before) && (d.From == "" || i.isAtLeast(d.From))
}

// isBefore treats a release candidate as the release, as isAtLeast does: most of a release is in
// its candidates.
func (i Installation) isBefore(v string) bool {
	have, err := version.ParseGeneric(i.Version)

	return err == nil && have.LessThan(version.MustParseGeneric(v))
}

func (i Installation) isAtLeast(v string) bool {
	have, err := version.ParseGeneric(i.Version)

	return err == nil && have.AtLeast(version.MustParseGeneric(v))
}
