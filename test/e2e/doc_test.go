// Package e2e tests the plugin on the real stack. For each version of Crossplane a source cluster
// is filled, backed up and lost, and its backups are restored into a target cluster that has just
// the platform. Each top-level test has two such clusters, which its subtests share. Each subtest
// has a namespace of its own, with a Composition and instances of its own. The tests judge by the
// API server and by the cloud's journal.
package e2e
