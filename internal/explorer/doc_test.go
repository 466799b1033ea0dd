// Package explorer runs the steps of all actors of a restore in every order, in small worlds. The
// plugin's steps are its real code (restoreitem, adoption). The other actors are rules, each with
// its source. It has tests only. Begin with engine_test.go; docs/dev/testing.md describes worlds and
// results.
package explorer
