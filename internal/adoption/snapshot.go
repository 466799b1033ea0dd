package adoption

import (
	"slices"
	"strings"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Snapshot is the observed state of a cluster.
type Snapshot struct {
	// key signs and verifies marks.
	key     hold.Key
	objects map[xp.ID]*unstructured.Unstructured
	// packed are the objects, except those of Crossplane's own kinds, if there is a packer.
	packed   map[xp.ID]pack.Object
	packer   *pack.Packer
	unserved map[schema.GroupKind]bool
	// retired are the versions of kinds that are not served, with the served version of the kind.
	retired map[schema.GroupVersionKind]schema.GroupVersionKind
	// unreadable are the kinds that could not be read, with the reason.
	unreadable map[schema.GroupVersionKind]string
	// restored are the UIDs of the objects that a restore has created.
	restored map[types.UID]bool
	// secretless means that connection secrets were not observed.
	secretless bool
	// leftBehind is what deleted MRs left behind.
	leftBehind map[xp.ID]leftBehind
	// now is when the Snapshot was observed.
	now time.Time
	// shared are the objects that all XRs share, by sharedKey.
	shared map[xp.ID][]*unstructured.Unstructured
	// whole are the kinds of which all objects were added.
	whole map[schema.GroupKind]bool
	// inactive is the function of Definitions; nil if there is none.
	inactive func(schema.GroupKind) string
	// observed are the objects that are not only read.
	observed map[xp.ID]*observedObject
	// investigation is what is asked; nil if objects that are not held are not judged. index finds
	// the restored composed resources; nil until needed.
	investigation *Investigation
	index         *composedIndex
	planCache
}

// NewSnapshot returns an empty Snapshot. key verifies marks; Unverified accepts any readable mark.
func NewSnapshot(key hold.Key) *Snapshot {
	return &Snapshot{
		key: key, objects: map[xp.ID]*unstructured.Unstructured{}, unserved: map[schema.GroupKind]bool{}, unreadable: map[schema.GroupVersionKind]string{},
		retired: map[schema.GroupVersionKind]schema.GroupVersionKind{}, restored: map[types.UID]bool{}, observed: map[xp.ID]*observedObject{},
		leftBehind: map[xp.ID]leftBehind{}, shared: map[xp.ID][]*unstructured.Unstructured{}, whole: map[schema.GroupKind]bool{},
	}
}

// SetTime sets when the Snapshot was observed.
func (s *Snapshot) SetTime(now time.Time) { s.now = now }

// Pack makes the Snapshot store objects, except the few of Crossplane's own kinds, in a tenth of
// the memory. Get then returns a copy each time.
func (s *Snapshot) Pack() { s.packer, s.packed = pack.New(), map[xp.ID]pack.Object{} }

// Add records that an object exists, in its current state.
func (s *Snapshot) Add(u *unstructured.Unstructured) {
	id := cloneRef(xp.RefTo(u)).ID()
	_, again := s.packed[id]
	delete(s.leftBehind, id)
	s.remove(id)
	s.keep(id, u, again)
	if key, ok := sharedKey(u); ok {
		s.shared[key] = append(s.shared[key], u)
	}
}

// keep stores an object; again means that it replaces another version.
func (s *Snapshot) keep(id xp.ID, u *unstructured.Unstructured, again bool) {
	s.invalidate(id)
	if !isOnlyRead(u) {
		s.observed[id] = s.observe(u)
	}
	if s.packer == nil || xp.IsCrossplaneGroup(id.Group) {
		s.objects[id] = u

		return
	}
	s.packed[id] = s.packer.Pack(u.Object)
	if again {
		s.packed[id] = s.packed[id].Clone()
	}
}

// isOnlyRead reports whether an object is only read as part of other Plans: it has no Plan of
// its own, and no search over all objects finds it.
func isOnlyRead(u *unstructured.Unstructured) bool {
	return !xp.IsComposite(u) && !xp.IsClaim(u) && !xp.IsCrossplaneGroup(u.GroupVersionKind().Group) && !xp.Publishes(u) &&
		!xp.HasAnnotation(u, hold.Annotation)
}

// Remove records that an object does not exist any more. u is its last known state.
func (s *Snapshot) Remove(u *unstructured.Unstructured) {
	s.remove(cloneRef(xp.RefTo(u)).ID())
	s.keepDeleted(u)
}

func (s *Snapshot) remove(id xp.ID) {
	before := s.get(id)
	if before == nil {
		return
	}
	s.invalidate(id)
	delete(s.objects, id)
	delete(s.packed, id)
	delete(s.restored, before.GetUID())
	delete(s.observed, id)
	if key, ok := sharedKey(before); ok {
		s.shared[key] = slices.DeleteFunc(s.shared[key], func(u *unstructured.Unstructured) bool { return u == before })
	}
}

// cloneRef returns a copy of a Ref that shares no memory with a packed object. Thousands of Refs
// have most texts in common.
func cloneRef(r xp.Ref) xp.Ref {
	return xp.Ref{
		APIVersion: unique.Make(r.APIVersion).Value(), Kind: unique.Make(r.Kind).Value(), Namespace: unique.Make(r.Namespace).Value(), Name: strings.Clone(r.Name),
	}
}

// All returns the objects of a kind without some, in no order.
func (s *Snapshot) All(gk schema.GroupKind, without map[xp.ID]bool) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for id, u := range s.objects {
		if id.Group == gk.Group && id.Kind == gk.Kind && !without[id] {
			all = append(all, u)
		}
	}
	for id, o := range s.packed {
		if id.Group == gk.Group && id.Kind == gk.Kind && !without[id] {
			all = append(all, &unstructured.Unstructured{Object: o.Unpack(nil)})
		}
	}

	return all
}

// AddRestored records that an object exists, and that a restore has created it.
func (s *Snapshot) AddRestored(u *unstructured.Unstructured) {
	s.Add(u)
	s.restored[types.UID(strings.Clone(string(u.GetUID())))] = true
}

// RestoredAt returns when a restore had created all objects: the time of the first poll, from the
// marks. Before a mark has it, it is the time of the observation if there are held XRs or claims
// (their marks will have it), else the time of the last hold. It uses verified marks only, so a
// user can't delay it by creating objects.
func (s *Snapshot) RestoredAt() time.Time {
	var since, polled time.Time
	trees := false
	for _, f := range s.observed {
		if f.hold == nil {
			continue
		}
		if at := xp.ParseTime(f.hold.Since); at.After(since) {
			since = at
		}
		if at := xp.ParseTime(f.hold.Polled); !at.IsZero() && (polled.IsZero() || at.Before(polled)) {
			polled = at
		}
		trees = trees || f.composite || f.claim
	}
	switch {
	case !polled.IsZero():
		return polled
	case trees && !s.now.IsZero():
		return s.now
	default:
		return since
	}
}

// AddUnserved records that the API server does not serve a kind.
func (s *Snapshot) AddUnserved(gk schema.GroupKind) {
	s.invalidateAll()
	s.unserved[gk] = true
}

// AddUnreadable records that a kind could not be read, and why: a missing object of that kind
// proves nothing.
func (s *Snapshot) AddUnreadable(gvk schema.GroupVersionKind, why string) {
	s.invalidateAll()
	s.unreadable[gvk] = why
}

// AddRetired records an unserved version of a kind, and a served one. Objects are the same in both.
func (s *Snapshot) AddRetired(version, served schema.GroupVersionKind) {
	if s.retired[version] == served {
		return
	}
	s.invalidateAll()
	s.retired[version] = served
}

// served returns the kind of r, in its served version if that is known to be another.
func (s *Snapshot) served(r xp.Ref) schema.GroupVersionKind {
	gvk := r.GroupVersionKind()
	if served, ok := s.retired[gvk]; ok {
		return served
	}

	return gvk
}

// isUnknown reports whether r may exist though it was not observed, and returns why.
func (s *Snapshot) isUnknown(r xp.Ref) (why string, unknown bool) {
	why, unknown = s.unreadable[s.served(r)]

	return why, unknown && !s.Has(r)
}

// WithoutSecrets records that connection secrets were not observed: a missing one proves nothing.
func (s *Snapshot) WithoutSecrets() {
	s.invalidateAll()
	s.secretless = true
}

// Get returns the object that r names; nil if it does not exist.
func (s *Snapshot) Get(r xp.Ref) *unstructured.Unstructured {
	id := r.ID()
	s.addRead(id)

	return s.get(id)
}

func (s *Snapshot) get(id xp.ID) *unstructured.Unstructured {
	if o, ok := s.packed[id]; ok {
		return &unstructured.Unstructured{Object: o.Unpack(nil)}
	}

	return s.objects[id]
}

// Has reports whether the object that r names exists.
func (s *Snapshot) Has(r xp.Ref) bool {
	id := r.ID()
	s.addRead(id)
	_, packed := s.packed[id]

	return packed || s.objects[id] != nil
}

// LooksAtComposed reports whether the next Plans can depend on changes of composed resources that
// no Plan waits for now. An XR that is still paused must find all of them, and an MR has a hold of
// its own. An XR that is unpaused has found them.
func (s *Snapshot) LooksAtComposed() bool {
	for _, f := range s.observed {
		if f.hold != nil && (f.paused || !f.composite && !f.claim) {
			return true
		}
	}

	return false
}

// Subjects returns the objects to plan for, in a stable order: all XRs, and the MRs that are held
// or publish connection details. The Plan of a held XR includes its composed resources.
func (s *Snapshot) Subjects() []xp.Ref {
	held := map[types.UID]bool{}
	for _, f := range s.observed {
		if f.composite && f.hold != nil {
			held[f.uid] = true
		}
	}
	var refs []xp.Ref
	for _, f := range s.observed {
		if f.composite || (f.publishes || f.marked) && !held[f.controller] {
			refs = append(refs, f.Ref)
		}
	}
	slices.SortFunc(refs, xp.Ref.Compare)

	return refs
}

// Needs returns what must be observed to plan for refs, as far as the Snapshot knows: refs, what
// belongs to them, and so on down the trees.
func (s *Snapshot) Needs(refs []xp.Ref) []xp.Ref {
	var needs []xp.Ref
	seen := map[xp.ID]bool{}
	var visit func(r xp.Ref)
	visit = func(r xp.Ref) {
		if seen[r.ID()] {
			return
		}
		seen[r.ID()] = true
		needs = append(needs, r)
		if f := s.observed[r.ID()]; f != nil { // An object that is only read needs nothing else.
			for _, l := range slices.Concat(s.composed(f), f.named()) {
				visit(l)
			}
		}
	}
	for _, r := range refs {
		visit(r)
	}

	return needs
}

// RequiredKinds returns the kinds without which nothing can be planned: those of the XRs and claims
// in needs, and of what these name besides composed resources. A tenant can name any other kind. An
// XRD has one group for its XRs and claims.
func (s *Snapshot) RequiredKinds(needs []xp.Ref) map[schema.GroupVersionKind]bool {
	vital := map[schema.GroupVersionKind]bool{}
	for _, r := range needs {
		f := s.observed[r.ID()]
		if f == nil || !f.composite && !f.claim {
			continue
		}
		own := f.GroupVersionKind()
		vital[own] = true
		for _, l := range f.named() {
			gvk := s.served(l)
			vital[gvk] = vital[gvk] || gvk.Group == own.Group || gvk.Group == "" || gvk.Group == xp.GroupAPIExtensions
		}
	}

	return vital
}

// composed returns the composed resources to observe: a held XR's in the backup, an investigated
// XR's.
func (s *Snapshot) composed(f *observedObject) []xp.Ref {
	var saved []xp.Ref
	switch {
	case f.hold == nil && !s.isInvestigated(f), !f.composite, f.claim:
		return nil
	case f.hold == nil:
	case f.paused, f.hold.Unpaused != "":
		return f.hold.Refs
	default: // Another writer has removed its pause. Its current resourceRefs show the result.
		saved = f.hold.Refs
	}
	now, err := xp.CompositeFrom(s.get(f.ID())).ResourceRefs()
	if err != nil || hold.KindsOf(now) > hold.MaxKinds {
		return saved
	}

	return slices.Concat(saved, now)
}

// named returns what else of an object must be observed.
func (f *observedObject) named() []xp.Ref {
	refs := f.inputs()
	if h := f.hold; h != nil {
		if f.composite || f.claim || h.Secret {
			refs = append(refs, f.secret)
		}
		refs = append(refs, f.revision)
		if h.Owner != nil {
			refs = append(refs, *h.Owner)
		}
		if h.FromUID != nil {
			refs = append(refs, h.FromUID.XR)
		}
	}

	return slices.DeleteFunc(append(refs, f.bound), func(r xp.Ref) bool { return r == (xp.Ref{}) })
}

func revisionRef(c xp.Composite) xp.Ref {
	return xp.Ref{APIVersion: xp.GroupAPIExtensions + "/v1", Kind: "CompositionRevision", Name: c.Revision()}
}
