// Package restoreitem decides how a backed-up item comes back. Velero calls an action once per
// item, sorted by name, and restores the AdditionalItems of one action before it calls the next
// (velero pkg/restore/restore.go, restoreItem).
package restoreitem
