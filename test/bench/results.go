package bench

import (
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/lab"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/meter"
)

// Restores are two restores of the same backup, with the plugin and with Velero alone.
type Restores struct {
	Plugin *lab.Restore `json:"plugin"`
	Alone  *lab.Restore `json:"alone"`
}

// Inspections are two runs over the same file: of inspect, and of a program that only reads and
// decodes it.
type Inspections struct {
	Inspect *meter.Run `json:"inspect"`
	Decode  *meter.Run `json:"decode"`
}

// A Start is the measurement of the plugin's start.
type Start struct {
	// Milliseconds of each start, from the process' start to the handshake.
	Milliseconds []float64 `json:"milliseconds"`
	// Bytes of the program.
	Bytes int64 `json:"bytes"`
}

// Growth has the measurements at one size, in one cluster.
type Growth struct {
	Held  *lab.Held
	Grown *lab.Grown
}

// Peak returns the largest peak memory of the plugin's processes, in bytes; zero without a
// measurement.
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

// Results are all measurements; nil where there is none.
type Results struct {
	Start *Start
	// Inspections are of the large file, and Tenth of one with a tenth of its objects.
	Inspections []Inspections
	Tenth       []*meter.Run

	Restores []Restores
	Statuses []Restores
	Fast     []Restores
	Releases []*lab.Release
	Backups  []*lab.Backups
	Peer     *lab.Peer
	Held     *lab.Held

	// Base and Large are of the two sizes. LargeAlone is the large restore with Velero alone.
	Base, Large Growth
	LargeAlone  *lab.Restore
}
