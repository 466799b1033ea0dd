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
	What: "stops watching a kind of which there was no object for a minute, such as that of an XRD that came back early (crossplane #5400, #5151), and takes it " +
		"up again only when it starts",
	Until: "restart it if what is restored stays without a word",
}

// defects are all known bugs; a new one is added here. A bug belongs here if it can make a restore
// into that version fail, or a usual workaround.
var defects = []Defect{ //nolint:gochecknoglobals // It is a constant list.
	stopsWatching,
	{
		From: "2.0.0", Before: "2.0.3",
		What: "does not look at a namespaced XR when something that it composes has changed (crossplane #6780), so that one which was restored may never say that " +
			"it is Ready",
		Until: `start it with "--enable-realtime-compositions=false"`,
	},
	{
		From: "2.4.0", Before: "2.4.2",
		What: "has a new revision of a package fail to take over the ServiceAccount of the one before, if both have the same name for it (crossplane #7838): when " +
			"Crossplane or such a package was upgraded, its provider or function has no Pod",
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
