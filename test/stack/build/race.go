//go:build race

package build

// Race reports whether this program is built with the race detector.
const Race = true
