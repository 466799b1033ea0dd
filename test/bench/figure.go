package bench

import (
	"fmt"
	"math"
	"slices"
)

// A Figure is something that was measured, and what it is to be.
type Figure struct {
	Name string
	// Target as a person reads it, "" if there is none; what was measured meets it if it is not
	// more than Limit.
	Target string
	Limit  float64
	Unit   string
	// Values that were measured; none if nothing was.
	Values []float64
	// Detail is what else there is to know, in a few words.
	Detail string
}

// Median of what was measured.
func (f Figure) Median() float64 { return median(f.Values) }

// Verdict says in a word whether the target is met. It is not if nothing was measured.
func (f Figure) Verdict() string { return verdict(f, f.Median(), len(f.Values) > 0) }

func verdict(f Figure, median float64, isMeasured bool) string {
	switch {
	case !isMeasured:
		return "not measured"
	case f.Target == "":
		return ""
	case median <= f.Limit:
		return "met"
	default:
		return "missed"
	}
}

// Measured is the median with its unit.
func (f Figure) Measured() string {
	if len(f.Values) == 0 {
		return "-"
	}

	return number(f.Median()) + f.Unit
}

// Spread is from the least to the most.
func (f Figure) Spread() string {
	if len(f.Values) < 2 {
		return "-"
	}

	return number(slices.Min(f.Values)) + " to " + number(slices.Max(f.Values)) + f.Unit
}

// number shows three digits of what is below 1000, and none behind the point above.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a == math.Trunc(a) && a < 1000:
		return fmt.Sprintf("%.0f", v)
	case a < 1:
		return fmt.Sprintf("%.3f", v)
	case a < 10:
		return fmt.Sprintf("%.2f", v)
	case a < 100:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}

	return (sorted[middle-1] + sorted[middle]) / 2
}

// each takes a value from each of what was measured.
func each[T any](all []T, value func(T) float64) []float64 {
	var values []float64
	for _, one := range all {
		values = append(values, value(one))
	}

	return values
}
