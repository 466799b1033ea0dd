package adoption

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Requester is the Restore whose operations are polled.
type Requester struct {
	// Restore is its namespace/name; "" if no Restore polls.
	Restore string
	// Started is when the Restore began; zero if not known.
	Started time.Time
	// Held returns the hold that the Restore put on the object id, if the polling process put it on
	// and has not lifted it; nil if none is known. Held itself is nil if nothing is known.
	Held func(id xp.ID) *Hold
}

// An Investigation is what a Restore asks about a Snapshot, and how completely the Snapshot was
// observed.
type Investigation struct {
	Requester

	// Label is the name of the Restore as its label has it on restored objects.
	Label string
	// Requested reports whether the Restore has an operation for the object id that has not ended.
	Requested func(id xp.ID) bool
	// Listed reports whether the restored objects of r's kind and namespace were all listed, and
	// Whole whether all objects were.
	Listed, Whole func(r xp.Ref) bool
	// Released reports whether the polling process itself has lifted the hold of an object.
	Released func(uid types.UID) bool
	// Unmarked reports whether a mark was removed as soon as the polling process had written it.
	Unmarked func(uid types.UID) bool
}

// Investigate judges restored objects that are not held by their observed state, since another
// writer may have removed their holds. Without it they count as adopted.
func (s *Snapshot) Investigate(q Investigation) {
	s.invalidateAll()
	s.investigation = &q
}

// isSuspect reports whether another writer may have removed the hold of u, which has none.
func (s *Snapshot) isSuspect(u *unstructured.Unstructured) bool {
	return s.investigation != nil && (s.restored[u.GetUID()] || s.isUnlabelled(u)) && u.GetDeletionTimestamp() == nil && !s.investigation.Released(u.GetUID())
}

// isUnlabelled reports whether a requested object was created since the Restore began, but without
// its label. A writer who replaces an object removes its labels, too.
func (s *Snapshot) isUnlabelled(u *unstructured.Unstructured) bool {
	started := s.investigation.Started

	return !started.IsZero() && xp.Label(u, xp.LabelRestore) == "" && s.isRequested(u) && !u.GetCreationTimestamp().Time.Before(started)
}

// isListed and isWhole are Listed and Whole of the Investigation; true without one.
func (s *Snapshot) isListed(r xp.Ref) bool {
	return s.investigation == nil || s.investigation.Listed(r)
}

func (s *Snapshot) isWhole(r xp.Ref) bool { return s.investigation == nil || s.investigation.Whole(r) }

func (s *Snapshot) isRequested(u *unstructured.Unstructured) bool {
	return s.investigation.Requested(xp.RefTo(u).ID())
}

// isOfRestore reports whether the polling Restore created u.
func (s *Snapshot) isOfRestore(u *unstructured.Unstructured) bool {
	return xp.Label(u, xp.LabelRestore) == s.investigation.Label || s.isUnlabelled(u)
}

// investigatedRefs returns the resourceRefs of an XR that is not held, if they must be observed to
// find out whether it is adopted. It returns none for XRs of earlier restores: these were judged
// before, and cost no list now.
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

// A place is where a Composition has a composed resource. Two objects in one place do the same.
type place struct {
	schema.GroupKind

	// resource is the resource's name in the Composition; "" if not known.
	resource string
}

func placeOf(u *unstructured.Unstructured) place {
	return place{GroupKind: u.GroupVersionKind().GroupKind(), resource: xp.Annotation(u, xp.AnnotationResourceName)}
}

// isSame reports whether two places are the same, as far as is known.
func (p place) isSame(other place) bool {
	return p.GroupKind == other.GroupKind && (p.resource == other.resource || p.resource == "" || other.resource == "")
}

// TookPlaceOf reports whether u was created after the restored back, in the same place.
func TookPlaceOf(u, back *unstructured.Unstructured) bool {
	return xp.Label(u, xp.LabelRestore) == "" && placeOf(u).isSame(placeOf(back)) && !u.GetCreationTimestamp().Time.Before(back.GetCreationTimestamp().Time)
}
