// Package bench measures the plugin's costs on the real stack and compares them with their targets.
// Each figure has a function that computes it from the measurements.
package bench

import (
	"errors"
	"fmt"
)

// Sizes are the sizes of the measured backups and the number of measurements.
type Sizes struct {
	// XRs is the number of composite resources, and MRs the number of managed resources of each.
	XRs int `json:"xrs"`
	MRs int `json:"mrs"`
	// Pairs is how often each two compared things are measured.
	Pairs int `json:"pairs"`
	// Large is the number of XRs at the larger size, which is measured once.
	Large int `json:"large"`
	// Held is the number of held XRs that are polled.
	Held int `json:"held"`
	// Objects is the number of objects in the inspected backup.
	Objects int `json:"objects"`
}

// Full returns the sizes that have targets.
func Full() Sizes {
	return Sizes{XRs: 500, MRs: 10, Pairs: 5, Large: 5000, Held: 1000, Objects: 100000}
}

// Check returns an error if nothing can be measured with these sizes.
func (s Sizes) Check() error {
	for name, n := range map[string]int{"XRS": s.XRs, "MRS": s.MRs, "PAIRS": s.Pairs, "HELD": s.Held} {
		if n < 1 {
			return fmt.Errorf("cannot measure with %s=%d: it is at least 1", name, n)
		}
	}
	if s.Large <= s.XRs {
		return errors.New("cannot measure how the cost grows: LARGE must be more than XRS")
	}
	if s.Objects < 100*(s.MRs+1) {
		return fmt.Errorf("cannot measure inspect with OBJECTS=%d: it is at least %d, a hundred trees", s.Objects, 100*(s.MRs+1))
	}

	return nil
}

// Items returns the number of objects in that many trees.
func (s Sizes) Items(xrs int) int { return xrs * (s.MRs + 1) }

// Trees returns the number of trees with about as many objects as the inspected backup.
func (s Sizes) Trees() int { return s.Objects / (s.MRs + 1) }

// Factor returns the ratio of the larger size to the normal one.
func (s Sizes) Factor() float64 { return float64(s.Large) / float64(s.XRs) }
