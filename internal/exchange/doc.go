// Package exchange decides what it takes to have what a backup knows in place of what an XR or a
// claim has composed anew: what goes, with its external resource or without, what comes back, and
// why it can't be done.
package exchange
