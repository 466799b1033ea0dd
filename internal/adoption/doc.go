// Package adoption plans how a restored XR gets from held to adopted. It decides which hold an
// object is created with, what must be true before Crossplane may reconcile it, what proves that an
// XR controls its composed resources again, and which settings to give back.
//
// It reads a Snapshot and returns patches. It has no client and no clock: only internal/xp and
// internal/pack are below it, and the actions, the poll and the commands import it. Begin with Put
// (hold.go) and Next (plan.go).
package adoption
