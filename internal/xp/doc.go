// Package xp knows what Crossplane's objects look like: typed views over unstructured composite
// resources (XRs), claims, managed resources (MRs), connection secrets and CompositionRevisions.
// Where Crossplane v1 and v2 keep a field in different places, the difference is in this package
// and nowhere else. It does no I/O.
package xp
