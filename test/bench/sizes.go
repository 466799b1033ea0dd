// Package bench measures what the plugin costs, on the real stack, and compares that with what it
// may cost. Each figure has a function that takes it from what was measured.
package bench

import (
	"errors"
	"fmt"
)

// Sizes say how much is measured.
type Sizes struct {
	// XRs is how many composite resources there are, and MRs how many managed resources each of
	// them composes.
	XRs int `json:"xrs"`
	MRs int `json:"mrs"`
	// Pairs is how often each two things are measured that are compared.
	Pairs int `json:"pairs"`
	// Large is the number of XRs for what is measured at a larger size, once.
	Large int `json:"large"`
	// Held is the number of held XRs that are polled.
	Held int `json:"held"`
	// Objects is how many objects there are in the backup that is inspected.
	Objects int `json:"objects"`
}

// Full are the sizes for which there are targets.
func Full() Sizes {
	return Sizes{XRs: 500, MRs: 10, Pairs: 5, Large: 5000, Held: 1000, Objects: 100000}
}

// Check returns an error if nothing can be measured so.
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

// Items is how many objects there are in that many trees.
func (s Sizes) Items(xrs int) int { return xrs * (s.MRs + 1) }

// Trees is how many trees have about as many objects as are inspected.
func (s Sizes) Trees() int { return s.Objects / (s.MRs + 1) }

// Factor is how many times as much there is at the larger size.
func (s Sizes) Factor() float64 { return float64(s.Large) / float64(s.XRs) }
