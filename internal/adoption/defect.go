package adoption

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
)

// A Defect is one that some versions of Crossplane have, and that a restore can run into.
type Defect struct {
	// From is the first version that has it, "" if all before Before do, and Before the first that
	// has not.
	From, Before string
	// What it does, to be put behind "Crossplane".
	What string
	// Until is what helps as long as it is not upgraded; "" if nothing does.
	Until string
}

// stopsWatching is the watch garbage collector of versions that are not supported any more.
var stopsWatching = Defect{ //nolint:gochecknoglobals // It is a constant.
	Before: "1.20.0",
	What: "stops watching a kind of which there was no object for a minute, such as that of an XRD that came back early (crossplane #5400, #5151), and takes it " +
		"up again only when it starts",
	Until: "restart it if what is restored stays without a word",
}

// defects are those that are known: the one place for another. A version belongs here if a restore
// into it, or what people do about it, can fail because of it.
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

// Defects returns those that its version is known to have, none if that is not known.
func (i Installation) Defects() []Defect {
	return slices.DeleteFunc(slices.Clone(defects), func(d Defect) bool { return !i.has(d) })
}

func (i Installation) has(d Defect) bool {
	return i.isBefore(d.Before) && (d.From == "" || i.isAtLeast(d.From))
}

// isBefore takes a candidate of a version for the version, as isAtLeast does: what is in the one is
// mostly in the other.
func (i Installation) isBefore(v string) bool {
	have, err := version.ParseGeneric(i.Version)

	return err == nil && have.LessThan(version.MustParseGeneric(v))
}

func (i Installation) isAtLeast(v string) bool {
	have, err := version.ParseGeneric(i.Version)

	return err == nil && have.AtLeast(version.MustParseGeneric(v))
}
