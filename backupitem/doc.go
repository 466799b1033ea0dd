// Package backupitem decides what goes into a backup: with a claim its XR, with an XR what it
// composes and runs on, with an MR its connection secret. A link is followed only if it holds both
// ways, so that a tenant can't pull somebody else's objects into a backup by naming them.
package backupitem
