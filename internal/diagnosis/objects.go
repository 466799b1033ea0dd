package diagnosis

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Objects are the objects of a diagnosis. Add all of them before any other call.
type Objects struct {
	byID  map[xp.ID]*object
	byUID map[types.UID]*object
	// roots are the XRs by name.
	roots map[string][]*object
	// all caches sortedAll, and listed caches listers; nil after an addition.
	all    []*object
	listed map[*object][]*object
	// witnesses are XRs of which only the references count.
	witnesses []*object
	malformed []report.Problem
	// unreadable are existing objects whose content cannot be read.
	unreadable map[xp.ID]bool
	// unread are kinds whose objects are not known, with the reason. broken are those among them
	// that the API server fails to list for any user. unserved are kinds that the API server does
	// not serve.
	unread           map[schema.GroupKind]string
	broken, unserved map[schema.GroupKind]bool
	// namespace is the only one that was read; "" for all.
	namespace string
	// owners caches XRs reduced to shapeOwner: reading an XR that lists thousands takes long.
	owners map[*object]xp.Composite
}

// NewObjects returns empty Objects.
func NewObjects() *Objects {
	return &Objects{
		byID: map[xp.ID]*object{}, byUID: map[types.UID]*object{}, roots: map[string][]*object{}, owners: map[*object]xp.Composite{},
		unreadable: map[xp.ID]bool{}, unread: map[schema.GroupKind]string{}, broken: map[schema.GroupKind]bool{}, unserved: map[schema.GroupKind]bool{},
	}
}

// Add adds an object, unless its ID exists already.
func (o *Objects) Add(u *unstructured.Unstructured) { o.AddFrom(memorySource{u}) }

// AddFrom adds the object of a Source, unless its ID exists already.
func (o *Objects) AddFrom(s Source) {
	u := s.Part(shapeKnown)
	self := newObject(s, u)
	if o.get(self.Ref) != nil {
		return
	}
	o.byID[self.ID()], o.byUID[self.uid] = self, self
	delete(o.byUID, "") // What has no UID controls nothing.
	o.all, o.listed = nil, nil
	switch {
	case self.is(isForged):
		// It could reference itself in both roles, so its references are ignored.
		o.addMalformed(self.Ref, report.Error, "it has the marks of a claim and of an XR, and no object is both, so its references are ignored",
			"find out who wrote it; remove the finalizer "+xp.FinalizerComposite+" or "+xp.FinalizerClaim+" and the fields that do not belong to it, or delete it")
	case self.is(isComposite):
		o.roots[self.Name] = append(o.roots[self.Name], self)
		refs, err := xp.CompositeFrom(u).ResourceRefs()
		if err != nil {
			self.set(isUnlisted, true)
			o.addMalformed(self.Ref, report.Error, err.Error(), "correct its resourceRefs; what it composes is unknown")
		}
		self.refs = withoutRepeated(refs)
	}
}

// AddWitness adds an XR that is not diagnosed. Only its references count.
func (o *Objects) AddWitness(xr *unstructured.Unstructured) {
	if o.byUID[xr.GetUID()] == nil {
		self := newObject(memorySource{xr}, xr)
		self.set(isWitness, true)
		refs, _ := xp.CompositeFrom(xr).ResourceRefs() // Unreadable references count as none.
		self.refs = withoutRepeated(refs)
		o.byUID[self.uid], o.witnesses, o.listed = self, append(o.witnesses, self), nil
	}
}

// withoutRepeated returns each reference once: an XR can list one object thousands of times.
func withoutRepeated(refs []xp.Ref) []xp.Ref {
	known := make(map[xp.ID]bool, len(refs))

	return slices.DeleteFunc(refs, func(r xp.Ref) bool {
		before := len(known)
		known[r.ID()] = true

		return len(known) == before
	})
}

// listers returns the XRs that list an object.
func (o *Objects) listers(of *object) []*object {
	if o.listed == nil {
		o.listed = map[*object][]*object{}
		for _, xr := range slices.Concat(o.with(isComposite), o.witnesses) {
			for _, r := range xr.refs {
				if u := o.get(r); u != nil {
					o.listed[u] = append(o.listed[u], xr)
				}
			}
		}
	}

	return o.listed[of]
}

// AddUnread records that the user may not read a kind, and why.
func (o *Objects) AddUnread(gk schema.GroupKind, why string) { o.unread[gk] = why }

// AddBroken records that the API server fails to list a kind, and why.
func (o *Objects) AddBroken(gk schema.GroupKind, why string) { o.unread[gk], o.broken[gk] = why, true }

// AddUnserved records that the API server does not serve a kind.
func (o *Objects) AddUnserved(gk schema.GroupKind) { o.unserved[gk] = true }

// Limit records that namespaced objects come from one namespace only.
func (o *Objects) Limit(namespace string) { o.namespace = namespace }

// AddMalformed records an object that exists and cannot be read.
func (o *Objects) AddMalformed(r xp.Ref, severity report.Severity, why, next string) {
	o.unreadable[r.ID()] = true
	o.addMalformed(r, severity, why, next)
}

func (o *Objects) addMalformed(r xp.Ref, severity report.Severity, why, next string) {
	o.malformed = append(o.malformed, report.Problem{Code: reason.Malformed, Severity: severity, Object: r, Reason: why, Next: next})
}

// Get returns the object that r names; nil if there is none.
func (o *Objects) Get(r xp.Ref) *unstructured.Unstructured {
	if u := o.get(r); u != nil {
		return u.full()
	}

	return nil
}

func (o *Objects) get(r xp.Ref) *object { return o.byID[r.ID()] }

// All returns the objects in a stable order.
func (o *Objects) All() []*unstructured.Unstructured { return fullObjects(o.sortedAll()) }

func (o *Objects) sortedAll() []*object {
	if o.all == nil {
		o.all = slices.SortedFunc(maps.Values(o.byID), func(a, b *object) int { return a.Compare(b.Ref) })
	}

	return o.all
}

// with returns the objects that have one of the traits, in a stable order.
func (o *Objects) with(t trait) []*object {
	return slices.DeleteFunc(slices.Clone(o.sortedAll()), func(u *object) bool { return !u.is(t) })
}

func (o *Objects) ofKind(gk schema.GroupKind) []*object {
	return slices.DeleteFunc(slices.Clone(o.sortedAll()), func(u *object) bool { return u.GroupVersionKind().GroupKind() != gk })
}

// Missing returns what XRs and claims reference and what was not added, except for unread kinds.
func (o *Objects) Missing() []xp.Ref {
	var missing []xp.Ref
	need := func(r xp.Ref, ok bool) {
		if ok && o.get(r) == nil && !o.IsUnread(r) {
			missing = append(missing, r)
		}
	}
	for _, u := range o.byID {
		switch {
		case u.is(isClaim):
			need(xp.ClaimFrom(u.full()).CompositeRef())
		case u.is(isComposite):
			need(xp.CompositeFrom(u.full()).ClaimRef())
		}
		for _, r := range u.refs {
			need(r, true)
		}
	}

	return missing
}

// isAddedXR reports whether the UID is that of an XR that was added.
func (o *Objects) isAddedXR(uid types.UID) bool {
	xr := o.byUID[uid]

	return xr != nil && xr.is(isComposite) && !xr.is(isWitness)
}

// Named returns a function that reports whether an XR that was added lists or controls an object.
func (o *Objects) Named() func(u *unstructured.Unstructured) bool {
	listed := map[xp.ID]bool{}
	for _, xr := range o.byID {
		for _, r := range xr.refs {
			listed[r.ID()] = true
		}
	}

	return func(u *unstructured.Unstructured) bool {
		c, controlled := xp.Controller(u)

		return controlled && o.isAddedXR(c.UID) || listed[xp.RefTo(u).ID()]
	}
}

// Controllers returns the kinds of missing controllers of composed resources. A controller is
// cluster-scoped or in the namespace of the object that it controls.
func (o *Objects) Controllers() []schema.GroupVersionKind {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, u := range o.byID {
		if !u.is(isComposed) && len(o.listers(u)) == 0 {
			continue
		}
		if c, ok := xp.Controller(u.full()); ok && o.byUID[c.UID] == nil {
			kinds[schema.FromAPIVersionAndKind(c.APIVersion, c.Kind)] = true
		}
	}

	return slices.Collect(maps.Keys(kinds))
}

// Composed returns the kinds that XRs list, each once.
func (o *Objects) Composed() []schema.GroupVersionKind {
	kinds := map[schema.GroupKind]schema.GroupVersionKind{}
	for _, u := range slices.Concat(o.with(isComposite), o.witnesses) {
		for _, r := range u.refs {
			gvk := r.GroupVersionKind()
			kinds[gvk.GroupKind()] = gvk
		}
	}

	return slices.Collect(maps.Values(kinds))
}

// UnreadKinds returns the kinds that could not be read, and why.
func (o *Objects) UnreadKinds() map[schema.GroupKind]string { return maps.Clone(o.unread) }

// IsUnread reports whether r could not be read, so that its absence proves nothing.
func (o *Objects) IsUnread(r xp.Ref) bool {
	return o.unreadable[r.ID()] || o.isUnreadKind(r.APIVersion, r.Kind) || o.namespace != "" && r.Namespace != "" && r.Namespace != o.namespace
}

func (o *Objects) isUnreadKind(apiVersion, kind string) bool {
	gk := schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
	_, unread := o.unread[gk]
	_, group := o.unread[schema.GroupKind{Group: gk.Group, Kind: "*"}]

	return unread || group
}
