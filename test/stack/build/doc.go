// Package build makes the programs of the real stack from their Go modules and keeps them in the
// user's cache directory, one directory per program, version and recipe. A program that is there is
// used as it is; the ones of this repository are always built, which the Go build cache makes
// quick.
package build
