// Package live is the only code that talks to the API server: it finds live owners for restored
// objects, observes what adoption needs to know and carries out the steps that adoption decides on.
package live
