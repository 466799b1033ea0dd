// Package adoption decides what must be true before Crossplane may reconcile a held object, what
// proves that the object is adopted, and which patch comes next. It reads a Snapshot and returns
// patches, without a client or a clock, for the poll and the commands. What a hold is, is in
// internal/hold; it imports only that, internal/pack, internal/reason and internal/xp. Begin with
// Next (plan.go).
package adoption
