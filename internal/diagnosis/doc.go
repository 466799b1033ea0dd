// Package diagnosis builds the trees of claims, XRs and composed resources from the objects of a
// backup or a cluster, and finds what is wrong with them. It has no client and no clock; hooks and
// internal/live import it. Start reading in diagnosis.go. Each check has a file; backups and
// clusters share a rule where both can have the problem.
package diagnosis
