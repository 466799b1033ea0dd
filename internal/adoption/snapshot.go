package adoption

import (
	"slices"
	"strings"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Snapshot is what was observed of a cluster.
type Snapshot struct {
	// key signs and verifies marks.
	key     Key
	objects map[xp.ID]*unstructured.Unstructured
	// packed are those but for what Crossplane itself brings, if there is a packer.
	packed   map[xp.ID]pack.Object
	packer   *pack.Packer
	unserved map[schema.GroupKind]bool
	// retired are versions of kinds that are not served, with one of the same kind that is.
	retired map[schema.GroupVersionKind]schema.GroupVersionKind
	// unreadable are kinds that whoever observed could not read, with the reason.
	unreadable map[schema.GroupVersionKind]string
	// restored are the objects that a restore has created.
	restored map[types.UID]bool
	// secretless says that nobody has looked for connection secrets.
	secretless bool
	// now is when it was observed.
	now      time.Time
	platform platform
	// inactive tells of a kind that is not active what its ManagedResourceDefinition is called; nil
	// if nobody can be asked.
	inactive func(schema.GroupKind) string
	// silent reports whether no Crossplane is known to run; nil if that changes nothing.
	silent func() bool
	// observedObjects are what was found out about objects: if there is a packer, about all that
	// are not only looked at.
	observedObjects map[xp.ID]*observedObject
	// investigation is what is asked about it, nil if nothing that is not held is judged, and index
	// finds what restores have brought back; nil until somebody asks.
	investigation *Investigation
	index         *composedIndex
	planCache
}

// NewSnapshot returns a Snapshot in which nothing exists. Marks count in it if they were signed
// with the key, and with Unverified all that can be read.
func NewSnapshot(key Key) *Snapshot {
	return &Snapshot{
		key: key, objects: map[xp.ID]*unstructured.Unstructured{}, unserved: map[schema.GroupKind]bool{}, unreadable: map[schema.GroupVersionKind]string{},
		retired: map[schema.GroupVersionKind]schema.GroupVersionKind{}, restored: map[types.UID]bool{}, observedObjects: map[xp.ID]*observedObject{},
	}
}

// SetTime says when it was observed.
func (s *Snapshot) SetTime(now time.Time) { s.now = now }

// Pack has the Snapshot keep objects in a tenth of the memory, but for the few that Crossplane
// itself brings. What Get returns of one is a copy each time.
func (s *Snapshot) Pack() { s.packer, s.packed = pack.New(), map[xp.ID]pack.Object{} }

// Add says that an object exists, as it is now.
func (s *Snapshot) Add(u *unstructured.Unstructured) {
	id := owned(xp.RefTo(u)).ID()
	_, again := s.packed[id]
	s.remove(id)
	s.keep(id, u, again)
	s.platform.add(u)
}

// saveOriginals keeps an object as it is now; again says that it was another before, and may be
// once more.
func (s *Snapshot) keep(id xp.ID, u *unstructured.Unstructured, again bool) {
	s.invalidate(id)
	if s.packer == nil {
		s.objects[id] = u

		return
	}
	if !isOnlyLookedAt(u) {
		s.observedObjects[id] = s.addObserved(u)
	}
	if xp.IsCrossplaneGroup(id.Group) {
		s.objects[id] = u

		return
	}
	s.packed[id] = s.packer.Pack(u.Object)
	if again {
		s.packed[id] = s.packed[id].Clone()
	}
}

// isReadOnly reports whether nothing is planned for an object by itself, nor anything found out by
// looking through all.
func isOnlyLookedAt(u *unstructured.Unstructured) bool {
	return !xp.IsComposite(u) && !xp.IsClaim(u) && !xp.IsCrossplaneGroup(u.GroupVersionKind().Group) && !xp.Publishes(u) &&
		!xp.HasAnnotation(u, AnnotationHold)
}

// Remove says that an object does not exist any more.
func (s *Snapshot) Remove(u *unstructured.Unstructured) { s.remove(owned(xp.RefTo(u)).ID()) }

func (s *Snapshot) remove(id xp.ID) {
	before := s.get(id)
	if before == nil {
		return
	}
	s.invalidate(id)
	delete(s.objects, id)
	delete(s.packed, id)
	delete(s.restored, before.GetUID())
	delete(s.observedObjects, id)
	s.platform.remove(before)
}

// owned returns a Ref that keeps nothing else in memory: what is unpacked is part of what it was
// packed in. Thousands have most texts of it in common.
func owned(r xp.Ref) xp.Ref {
	return xp.Ref{
		APIVersion: unique.Make(r.APIVersion).Value(), Kind: unique.Make(r.Kind).Value(), Namespace: unique.Make(r.Namespace).Value(), Name: strings.Clone(r.Name),
	}
}

// All returns the objects of a kind that exist, in no order.
func (s *Snapshot) All(gk schema.GroupKind) []*unstructured.Unstructured { return s.AllBut(gk, nil) }

// AllBut is All without some of them.
func (s *Snapshot) AllBut(gk schema.GroupKind, without map[xp.ID]bool) []*unstructured.Unstructured {
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

// AddRestored says that an object exists and that a restore has created it.
func (s *Snapshot) AddRestored(u *unstructured.Unstructured) {
	s.Add(u)
	s.restored[types.UID(strings.Clone(string(u.GetUID())))] = true
}

// RestoredAt returns when Velero first asked after what is held: a restore has brought all of it
// back then. As long as nothing says when that was, it is when the last hold was put on or, if
// there are XRs, the time of the observation, since their marks will say it. It goes by signed
// marks only, so that nobody has it be later by making objects.
func (s *Snapshot) RestoredAt() time.Time {
	var since, polled time.Time
	trees := false
	s.each(func(f *observedObject) {
		if f.hold == nil {
			return
		}
		if at := at(f.hold.Since); at.After(since) {
			since = at
		}
		if at := at(f.hold.Polled); !at.IsZero() && (polled.IsZero() || at.Before(polled)) {
			polled = at
		}
		trees = trees || f.composite || f.claim
	})
	switch {
	case !polled.IsZero():
		return polled
	case trees && !s.now.IsZero():
		return s.now
	default:
		return since
	}
}

// AddUnserved says that the API server does not serve a kind.
func (s *Snapshot) AddUnserved(gk schema.GroupKind) {
	s.invalidateAll()
	s.unserved[gk] = true
}

// AddUnreadable says that a kind could not be read, and why: that an object is not there proves
// nothing.
func (s *Snapshot) AddUnreadable(gvk schema.GroupVersionKind, why string) {
	s.invalidateAll()
	s.unreadable[gvk] = why
}

// isUnknown reports whether the object that r names may exist though it was not observed, and why
// that is.
func (s *Snapshot) isUnknown(r xp.Ref) (why string, unknown bool) {
	why, unknown = s.unreadable[s.served(r)]

	return why, unknown && !s.Has(r)
}

// WithoutSecrets says that nobody has looked for connection secrets, so that one is not there means
// nothing.
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

// Has reports whether there is the object that r names.
func (s *Snapshot) Has(r xp.Ref) bool {
	id := r.ID()
	s.addRead(id)
	_, packed := s.packed[id]

	return packed || s.objects[id] != nil
}

// LooksAtComposed reports whether what is planned next can depend on what becomes of what XRs
// compose, whatever the Plans wait for now: an XR that is still to be let reconcile must find all
// of it, and an MR has a hold of its own. Who has been let reconcile has seen for itself.
func (s *Snapshot) LooksAtComposed() bool {
	below := false
	s.each(func(f *observedObject) { below = below || f.hold != nil && (f.paused || !f.composite && !f.claim) })

	return below
}

// Subjects returns what can be planned for: the XRs, held or not, and the MRs that publish
// connection details or are held, in a stable order. What a held XR composes is part of the plan
// for that.
func (s *Snapshot) Subjects() []xp.Ref {
	held := map[types.UID]bool{}
	s.each(func(f *observedObject) {
		if f.composite && f.hold != nil {
			held[f.uid] = true
		}
	})
	var refs []xp.Ref
	s.each(func(f *observedObject) {
		if f.composite || (f.publishes || f.marked) && !held[f.controller] {
			refs = append(refs, f.Ref)
		}
	})
	slices.SortFunc(refs, xp.Ref.Compare)

	return refs
}

// Needs returns what else must be observed to plan for the objects in refs, as far as w already has
// them: what they compose, their claims, CompositionRevisions and connection secrets, and so on
// down the trees.
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
		if f := s.observed(r.ID()); f != nil { // Nothing more is needed for what is only looked at.
			for _, l := range slices.Concat(s.composed(f), s.named(f)) {
				visit(l)
			}
		}
	}
	for _, r := range refs {
		visit(r)
	}

	return needs
}

// Vital returns the kinds without which nothing can be planned: those of the XRs and claims among
// needs, and of what these name besides what they compose. Of the other kinds a tenant can have
// named any. An XRD has one group for XRs and claims.
func (s *Snapshot) Vital(needs []xp.Ref) map[schema.GroupVersionKind]bool {
	vital := map[schema.GroupVersionKind]bool{}
	for _, r := range needs {
		f := s.observed(r.ID())
		if f == nil || !f.composite && !f.claim {
			continue
		}
		own := f.GroupVersionKind()
		vital[own] = true
		for _, l := range s.named(f) {
			gvk := s.served(l)
			vital[gvk] = vital[gvk] || gvk.Group == own.Group || gvk.Group == "" || gvk.Group == xp.GroupAPIExtensions
		}
	}

	return vital
}

// composed returns what a held XR composed when it was backed up, and what one composes of which it
// is to be told whether it is adopted.
func (s *Snapshot) composed(f *observedObject) []xp.Ref {
	if f.hold == nil {
		return s.investigatedRefs(f)
	}
	if !f.composite || f.claim || s.skipsComposed(f) {
		return nil
	}

	if f.paused || f.hold.Unpaused != "" {
		return f.hold.Refs
	}
	now, err := xp.CompositeFrom(s.get(f.ID())).ResourceRefs() // Somebody has taken its pause off, and what it lists now tells what came of that.
	if err != nil || kindsOf(now) > maxKinds {
		return f.hold.Refs
	}

	return append(slices.Clone(f.hold.Refs), now...)
}

// named returns what else must be observed to plan for an object.
func (s *Snapshot) named(f *observedObject) []xp.Ref {
	held := f.hold != nil
	none := xp.Ref{}
	if !f.claim && !f.composite {
		refs := append(f.inputs(), f.stored()...)
		if held && f.hold.Owner != nil {
			refs = append(refs, *f.hold.Owner)
		}
		if f.secret != none && held && f.hold.Secret {
			refs = append(refs, f.secret)
		}

		return refs
	}
	if s.skipsComposed(f) {
		return f.unreportedClaim()
	}
	var refs []xp.Ref
	if held {
		refs = append(f.stored(), f.secret)
	}
	if held && !f.claim {
		refs = append(refs, f.revision)
	}

	return slices.DeleteFunc(append(refs, f.bound), func(r xp.Ref) bool { return r == none })
}

func revisionRef(c xp.Composite) xp.Ref {
	return xp.Ref{APIVersion: xp.GroupAPIExtensions + "/v1", Kind: "CompositionRevision", Name: c.Revision()}
}
