// Package build builds the programs of the real stack from their Go modules and keeps them in the
// user's cache directory, one directory per program, version and recipe. A program in the cache is
// used as it is. The programs of this repository are always built; Go's build cache makes that
// quick.
package build
