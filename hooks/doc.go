// Package hooks is what runs after a restore, and before one: the commands with which people, Jobs
// and Velero's restore hooks look into a backup, validate a cluster, wait for the adoption and lift
// holds.
package hooks
