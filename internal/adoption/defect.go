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
}

// Defects returns the known bugs of the installed version; none if the version is not known.
func (i Installation) Defects() []Defect {
	return slices.DeleteFunc(slices.Clone(defects), func(d Defect) bool { return !i.has(d) })
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
