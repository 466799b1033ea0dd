// Package backupitem has Velero's backup actions, which decide what belongs into a backup with an
// item; only main imports it. Begin with Tree and Resolver. A link between two objects counts only
// if both confirm it, so that a tenant can't add another's objects to a backup by naming them.
package backupitem
