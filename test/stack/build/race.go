//go:build race

package build

// Race says whether this is built with the race detector.
const Race = true
