// Package e2e tests the plugin on the real stack: for each version of Crossplane a source cluster
// is filled, backed up and lost for good, and its backups are restored in a target cluster that has
// just the platform. Each top-level test has two such clusters, which its subtests share; each of
// these has a namespace of its own, with a Composition and instances of its own. The judges are the
// API server and the cloud's journal.
package e2e
