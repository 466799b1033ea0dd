// Package e2e tests the plugin on the real stack: for each version of Crossplane a source cluster is filled, backed up and lost for good, and
// its backups are restored in a target cluster that has just the platform. All tests of a version share the two clusters; each has a namespace of
// its own, with a Composition of its own and ten instances. The judges are the API server and the cloud's journal.
package e2e
