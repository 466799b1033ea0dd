package adoption

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
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
	Held func(id xp.ID) *hold.Hold
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

// isInvestigated reports whether the resourceRefs of an object, which is not held, must be observed to
// find out whether it is adopted: it is an XR of the polling Restore. Others were judged before.
func (s *Snapshot) isInvestigated(f *observedObject) bool {
	if s.investigation == nil || f.err != nil || !f.composite || f.claim || !s.investigation.Requested(f.ID()) {
		return false
	}
	u := s.get(f.ID())

	return u != nil && s.isSuspect(u) && s.isOfRestore(u)
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

// A restoredResource is a composed resource that a restore has created.
type restoredResource struct {
	xp.Ref
	place

	// controller is the owner reference of its controller; nil if it has none.
	controller *metav1.OwnerReference
}

// A composedIndex finds the composed resources that restores have created, by the XR that they name
// as their owner.
type composedIndex struct {
	// at is the Snapshot's clock when the index was built.
	at int
	// controlled are by the UID of the observed XR that controls them. labelled are all others with
	// a composite label, by its value.
	controlled map[types.UID][]restoredResource
	labelled   map[string][]restoredResource
	// listed are the resourceRefs of all observed XRs.
	listed map[xp.ID]bool
}

// shapeComposed is the part of an object that the index reads.
var shapeComposed = &pack.Shape{ //nolint:gochecknoglobals // It is a constant.
	Only: []string{"apiVersion", "kind", "metadata"},
	Fields: map[string]*pack.Shape{
		"metadata": {Only: []string{"name", "namespace", "uid", "ownerReferences", "labels", "annotations", "deletionTimestamp"}},
	},
}

// composedNow returns the index of the current objects. It is kept until an object changes, since a
// cluster can have a hundred thousand objects.
func (s *Snapshot) composedNow() *composedIndex {
	if s.index != nil && s.index.at == s.clock {
		return s.index
	}
	x := &composedIndex{
		at: s.clock, controlled: map[types.UID][]restoredResource{}, labelled: map[string][]restoredResource{}, listed: map[xp.ID]bool{},
	}
	xrs := map[types.UID]bool{}
	for _, f := range s.observed {
		if !f.composite {
			continue
		}
		xrs[f.uid] = true
		refs, _ := xp.CompositeFrom(s.get(f.ID())).ResourceRefs() // An XR whose resourceRefs can't be read lists nothing.
		for _, r := range refs {
			x.listed[r.ID()] = true
		}
	}
	for _, u := range s.objects {
		s.addTo(x, xrs, u)
	}
	for _, o := range s.packed {
		s.addTo(x, xrs, &unstructured.Unstructured{Object: o.Unpack(shapeComposed)})
	}
	s.index = x

	return x
}

// addTo adds an object to the index, if a restore created it and an XR may have composed it. xrs
// are the UIDs of the observed XRs.
func (s *Snapshot) addTo(x *composedIndex, xrs map[types.UID]bool, u *unstructured.Unstructured) {
	if !s.restored[u.GetUID()] || u.GetDeletionTimestamp() != nil {
		return
	}
	c, controlled := xp.Controller(u)
	root := xp.Label(u, xp.LabelComposite)
	b := restoredResource{Ref: cloneRef(xp.RefTo(u)), place: placeOf(u)}
	switch {
	case controlled && xrs[c.UID]:
		x.controlled[c.UID] = append(x.controlled[c.UID], b)
	case root != "":
		if controlled {
			b.controller = &c
		}
		x.labelled[root] = append(x.labelled[root], b)
	}
}

// unlisted returns the restored objects that name the XR as their owner but are not in listed, its
// resourceRefs, in a stable order. The XR controls such an object; or no XR lists it, it has the
// label of the XR's tree, and no controller or an earlier XR of that name.
func (s *Snapshot) unlisted(xr xp.Composite, listed map[xp.ID]bool) []restoredResource {
	x := s.composedNow()
	var found []restoredResource
	for _, b := range x.controlled[xr.GetUID()] {
		if !listed[b.ID()] {
			found = append(found, b)
		}
	}
	root := xp.Label(xr.Unstructured, xp.LabelComposite)
	if root == "" {
		root = xr.GetName()
	}
	for _, b := range x.labelled[root] {
		switch {
		case listed[b.ID()], xr.GetNamespace() != "" && b.Namespace != xr.GetNamespace():
		case b.controller != nil && !isEarlier(b.controller, xr):
		case x.listed[b.ID()]:
		default:
			found = append(found, b)
		}
	}
	slices.SortFunc(found, func(a, b restoredResource) int { return a.Compare(b.Ref) })

	return found
}

// isEarlier reports whether the controller is an earlier XR of the same kind and name.
func isEarlier(c *metav1.OwnerReference, xr xp.Composite) bool {
	r := xp.Ref{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: xr.GetNamespace(), Name: c.Name}

	return r.ID() == xp.RefTo(xr.Unstructured).ID() && c.UID != xr.GetUID()
}
