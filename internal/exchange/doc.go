// Package exchange plans how to replace what a recreated XR or claim composes with what a backup
// has: what is deleted, with or without its external resource, and what comes back. Only main.go,
// hooks and internal/live import it; it has no client. Begin with Plan (plan.go).
package exchange
