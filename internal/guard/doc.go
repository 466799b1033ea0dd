// Package guard builds the admission policies that let only Velero and Crossplane create claims and
// XRs until a restore is over. Only main.go, hooks and internal/live import it; it has no client.
// Begin with Guard (guard.go).
package guard
