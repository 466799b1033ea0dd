// Package adoption decides which hold a restored object is created with, what must be true before
// Crossplane may reconcile it, what proves that it is adopted, and what to give back then. It reads
// a Snapshot and returns patches, without a client or a clock, for the actions, the poll and the
// commands; it imports only internal/xp and internal/pack. Begin with Put (hold.go) and Next
// (plan.go).
package adoption
