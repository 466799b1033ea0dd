package bench

import (
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/lab"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/meter"
)

// Restores are two of the same backup, with the plugin and with Velero alone.
type Restores struct {
	Plugin *lab.Restore `json:"plugin"`
	Alone  *lab.Restore `json:"alone"`
}

// Inspections are two of the same file: by inspect, and by a program that reads and decodes it and
// does nothing else.
type Inspections struct {
	Inspect *meter.Run `json:"inspect"`
	Decode  *meter.Run `json:"decode"`
}

// A Start is what was measured of the plugin's start.
type Start struct {
	// Milliseconds from the start of the process to the handshake, each time.
	Milliseconds []float64 `json:"milliseconds"`
	// Bytes of the program.
	Bytes int64 `json:"bytes"`
}

// Growth is what was measured of everything at one size, in one cluster.
type Growth struct {
	Held  *lab.Held
	Grown *lab.Grown
}

// Peak is the most memory that a process of the plugin has had, in bytes; zero if nothing was
// measured.
func (g Growth) Peak() float64 {
	var most int64
	if g.Held != nil {
		most = g.Held.Peak()
	}
	if g.Grown != nil {
		most = max(most, g.Grown.Peak())
	}

	return float64(most)
}

// Results are what was measured. What was not is nil.
type Results struct {
	Start *Start
	// Inspections are of the large file, and Tenth of one with a tenth of the objects.
	Inspections []Inspections
	Tenth       []meter.Run

	Restores []Restores
	Statuses []Restores
	Fast     []Restores
	Releases []lab.Release
	Backups  []lab.Backups
	Peer     *lab.Peer
	Held     *lab.Held

	// Base and Large are of the two sizes, and LargeAlone is the large restore by Velero alone.
	Base, Large Growth
	LargeAlone  *lab.Restore
}
