// Package restoreitem has Velero's restore actions. Only main imports it. Begin with Order and
// Adopt. Velero calls an action once per item, sorted by name, and restores the AdditionalItems of
// one action before it calls the next (velero pkg/restore/restore.go, restoreItem).
package restoreitem
