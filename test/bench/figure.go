package bench

import (
	"fmt"
	"math"
	"slices"
)

// A Figure is a measured value with its target.
type Figure struct {
	Name string
	// Target as text, "" if there is none. The value meets it if it is not more than Limit.
	Target string
	Limit  float64
	Unit   string
	// Values that were measured; empty without a measurement.
	Values []float64
	// Detail is a short note about the figure.
	Detail string
}

// number shows three digits of a value below 1000, and no decimals above.
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

// each applies a function to each measurement.
func each[T any](all []T, value func(T) float64) []float64 {
	var values []float64
	for _, one := range all {
		values = append(values, value(one))
	}

	return values
}

// typical returns the median as text.
func typical[T any](all []T, value func(T) float64) string { return number(median(each(all, value))) }
