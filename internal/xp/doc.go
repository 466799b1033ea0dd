// Package xp has typed views of Crossplane's objects, over unstructured ones: composite resources
// (XRs), claims, managed resources (MRs), connection secrets, revisions. Crossplane v1 and v2
// differ in this package only. It does no I/O. Every package may import it; it imports none of this
// module. Begin with composite.go (views) and role.go (what an object is).
package xp
