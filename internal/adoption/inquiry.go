package adoption

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Requester is a Restore that asks, for what it has operations for.
type Requester struct {
	// Restore is which, as namespace/name; "" if none asks.
	Restore string
	// Started is when it began; zero if that is not known.
	Started time.Time
	// Held returns the hold that it has put on what r names, as far as whoever asks has put it on
	// and not lifted it; nil if none is known, or nobody can say so.
	Held func(id xp.ID) *Hold
}

// An Investigation is what a Restore asks about a Snapshot, and how much of what there is whoever
// observed it has looked for.
type Investigation struct {
	Requester

	// Label is what the name of the Restore is in the label of what it has created.
	Label string
	// Requested reports whether it asks for what r names: it has an operation that has not ended.
	Requested func(id xp.ID) bool
	// Listed reports whether that was listed of the kind and in the namespace of r which restores
	// have created, and Whole whether all there is.
	Listed, Whole func(r xp.Ref) bool
	// Released reports whether whoever asks has lifted the hold of an object themselves.
	Released func(uid types.UID) bool
	// Unmarked reports whether the mark of a hold was taken off an object again as soon as whoever
	// asks had put it on.
	Unmarked func(uid types.UID) bool
}

// Investigate has objects that a restore has created, and that are not held, be judged by what is
// there: somebody else may have taken their hold off. Without it they count as adopted.
func (s *Snapshot) Investigate(q Investigation) {
	s.invalidateAll()
	s.investigation = &q
}

// isSuspect reports whether the hold of an object may have been taken off by somebody else. It is
// for what has none.
func (s *Snapshot) isSuspect(u *unstructured.Unstructured) bool {
	return s.investigation != nil && (s.restored[u.GetUID()] || s.isUnlabelled(u)) && u.GetDeletionTimestamp() == nil && !s.investigation.Released(u.GetUID())
}

// isUnlabelled reports whether an operation is asked for that is about an object which was created
// since the Restore began and does not say that this has created it: whoever replaces an object
// takes its labels off too.
func (s *Snapshot) isUnlabelled(u *unstructured.Unstructured) bool {
	started := s.investigation.Started

	return !started.IsZero() && xp.Label(u, xp.LabelRestore) == "" && s.isRequested(u) && !u.GetCreationTimestamp().Time.Before(started)
}

// isListed reports whether that was listed which restores have created of what can be where r is,
// and isWhole whether all there is.
func (s *Snapshot) isListed(r xp.Ref) bool {
	return s.investigation == nil || s.investigation.Listed(r)
}

func (s *Snapshot) isWhole(r xp.Ref) bool { return s.investigation == nil || s.investigation.Whole(r) }

// isRequested reports whether an operation is asked for that is about an object.
func (s *Snapshot) isRequested(u *unstructured.Unstructured) bool {
	return s.investigation.Requested(xp.RefTo(u).ID())
}

// isOfRestore reports whether the Restore that asks has created an object.
func (s *Snapshot) isOfRestore(u *unstructured.Unstructured) bool {
	return xp.Label(u, xp.LabelRestore) == s.investigation.Label || s.isUnlabelled(u)
}

// investigatedRefs returns what an XR that is not held lists, if that must be observed to tell
// whether it is adopted. What an earlier restore has created was judged then, and costs no list
// now.
func (s *Snapshot) investigatedRefs(f *observedObject) []xp.Ref {
	if s.investigation == nil || f.hold != nil || f.err != nil || !f.composite || f.claim || !s.investigation.Requested(f.ID()) {
		return nil
	}
	u := s.get(f.ID())
	if u == nil || !s.isSuspect(u) || !s.isOfRestore(u) {
		return nil
	}
	refs, err := xp.CompositeFrom(u).ResourceRefs()
	if err != nil || kindsOf(refs) > maxKinds {
		return nil
	}

	return refs
}

// A place is where an XR has something that it composes: two objects in one place do the same work.
type place struct {
	schema.GroupKind

	// resource is what the Composition calls it; "" if that is not known.
	resource string
}

func placeOf(u *unstructured.Unstructured) place {
	return place{GroupKind: u.GroupVersionKind().GroupKind(), resource: xp.Annotation(u, xp.AnnotationResourceName)}
}

// isSame reports whether two places are one, as far as is known.
func (p place) isSame(other place) bool {
	return p.GroupKind == other.GroupKind && (p.resource == other.resource || p.resource == "" || other.resource == "")
}

// TookPlaceOf reports whether an object was made after a restore had brought back another that is
// in the same place of a Composition.
func TookPlaceOf(u, back *unstructured.Unstructured) bool {
	return xp.Label(u, xp.LabelRestore) == "" && placeOf(u).isSame(placeOf(back)) && !u.GetCreationTimestamp().Time.Before(back.GetCreationTimestamp().Time)
}
