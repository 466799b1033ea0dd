package diagnosis

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Objects are the objects of a diagnosis. Add all of them before any other call.
type Objects struct {
	byID  byID
	byUID map[types.UID]*object
	refs  map[types.UID][]xp.Ref
	// lists are what each XR lists. listed caches listers; nil after an addition.
	lists  []list
	listed map[*object][]*object
	// These are the objects by role.
	composites, claims, managed, usages, definitions []*object
	// platform are packages, XRDs, Compositions and CompositionRevisions.
	platform []*object
	// deployments are Crossplane's Deployments.
	deployments []*object
	// forged are objects with the marks of both a claim and an XR.
	forged    []*object
	malformed []report.Problem
	// unreadable are existing objects whose content cannot be read.
	unreadable map[xp.ID]bool
	// unread are kinds whose objects are not known, with the reason. broken are those among them
	// that the API server fails to list for any user. unserved are kinds that the API server does
	// not serve.
	unread, broken map[schema.GroupKind]string
	unserved       map[schema.GroupKind]bool
	// unreadRefs are the XRs whose resourceRefs cannot be read. roots are the XRs by name.
	unreadRefs map[types.UID]bool
	roots      map[string][]*object
	// namespace is the only one that was read; "" for all.
	namespace string
	// all caches sortedAll; nil after an addition.
	all []*object
	// owners caches XRs reduced to shapeOwner: reading an XR that lists thousands takes long.
	owners map[*object]xp.Composite
}

type list struct {
	xr   *object
	refs []xp.Ref
}

// NewObjects returns empty Objects.
func NewObjects() *Objects {
	return &Objects{
		byID: byID{}, byUID: map[types.UID]*object{}, refs: map[types.UID][]xp.Ref{},
		unreadable: map[xp.ID]bool{}, unread: map[schema.GroupKind]string{}, broken: map[schema.GroupKind]string{}, unserved: map[schema.GroupKind]bool{},
		unreadRefs: map[types.UID]bool{}, roots: map[string][]*object{}, owners: map[*object]xp.Composite{},
	}
}

// Add adds an object, unless its ID exists already.
func (o *Objects) Add(u *unstructured.Unstructured) { o.AddFrom(memorySource{u}) }

// AddFrom adds the object of a Source, unless its ID exists already.
func (o *Objects) AddFrom(s Source) {
	u := s.Part(shapeKnown)
	self := newObject(s, u)
	if !o.byID.add(self) {
		return
	}
	o.all, o.listed = nil, nil
	o.byUID[self.uid] = self
	if self.is(isPlatform) {
		o.platform = append(o.platform, self)
	}
	if adoption.IsOfCrossplane(u) {
		o.deployments = append(o.deployments, self)
	}
	switch {
	case self.isForged():
		o.addForged(self)
	case self.is(isClaim):
		o.claims = append(o.claims, self)
	case self.is(isComposite):
		o.composites = append(o.composites, self)
		o.roots[self.Name] = append(o.roots[self.Name], self)
		o.addRefs(self, u)
	case self.is(isUsage):
		o.usages = append(o.usages, self)
	case self.is(isDefinition):
		o.definitions = append(o.definitions, self)
	case self.is(isManaged), isNew(u):
		o.managed = append(o.managed, self)
	}
}

// addForged adds an object with the marks of both a claim and an XR. It could reference itself in
// both roles, so its references are ignored.
func (o *Objects) addForged(self *object) {
	o.forged = append(o.forged, self)
	o.malformed = append(o.malformed, report.Problem{
		Code: reason.Malformed, Severity: report.Error, Object: self.Ref,
		Reason: "it has the marks of a claim and of an XR, and no object is both, so its references are ignored",
		Next: "find out who wrote it; remove the finalizer " + xp.FinalizerComposite + " or " + xp.FinalizerClaim +
			" and the fields that do not belong to it, or delete it",
	})
}

// isNew reports whether u waits for a user's consent. At backup time no controller had reconciled
// it, so it lacks the signs of a managed resource.
func isNew(u *unstructured.Unstructured) bool {
	h, err := adoption.HoldOf(u)
	if err != nil || h == nil || xp.IsSchedule(u) {
		return false
	}
	_, waits := h.AwaitsConsent()

	return waits
}

// AddWitness adds an XR that is not diagnosed. Only its references count.
func (o *Objects) AddWitness(xr *unstructured.Unstructured) {
	if o.byUID[xr.GetUID()] == nil {
		self := newObject(memorySource{xr}, xr)
		o.byUID[self.uid] = self
		refs, _ := xp.CompositeFrom(xr).ResourceRefs() // Unreadable references count as none.
		o.addLists(self, withoutRepeated(refs))
	}
}

func (o *Objects) addRefs(xr *object, u *unstructured.Unstructured) {
	refs, err := xp.CompositeFrom(u).ResourceRefs()
	if err != nil {
		o.unreadRefs[xr.uid] = true
		o.malformed = append(o.malformed, report.Problem{
			Code: reason.Malformed, Severity: report.Error, Object: xr.Ref, Reason: err.Error(),
			Next: "correct its resourceRefs; what it composes is unknown",
		})
	}
	refs = withoutRepeated(refs)
	o.refs[xr.uid] = refs
	o.addLists(xr, refs)
}

func (o *Objects) addLists(xr *object, refs []xp.Ref) {
	o.lists, o.listed = append(o.lists, list{xr: xr, refs: refs}), nil
}

// withoutRepeated returns each reference once: an XR can list one object thousands of times.
func withoutRepeated(refs []xp.Ref) []xp.Ref {
	known := make(map[xp.ID]bool, len(refs))

	return slices.DeleteFunc(refs, func(r xp.Ref) bool {
		id := r.ID()
		repeated := known[id]
		known[id] = true

		return repeated
	})
}

// listers returns the XRs that list an object.
func (o *Objects) listers(of *object) []*object {
	if o.listed == nil {
		o.listed = map[*object][]*object{}
		for _, l := range o.lists {
			for _, r := range l.refs {
				if u := o.get(r); u != nil && !slices.Contains(o.listed[u], l.xr) {
					o.listed[u] = append(o.listed[u], l.xr)
				}
			}
		}
	}

	return o.listed[of]
}

// AddUnread records that the user may not read a kind, and why. A missing object of it proves
// nothing.
func (o *Objects) AddUnread(gk schema.GroupKind, why string) { o.unread[gk] = why }

// AddBroken records that the API server fails to list a kind, and why.
func (o *Objects) AddBroken(gk schema.GroupKind, why string) { o.unread[gk], o.broken[gk] = why, why }

// AddUnserved records that the API server does not serve a kind.
func (o *Objects) AddUnserved(gk schema.GroupKind) { o.unserved[gk] = true }

// Limit records that namespaced objects come from one namespace only.
func (o *Objects) Limit(namespace string) { o.namespace = namespace }

// AddMalformed records an object that exists and cannot be read.
func (o *Objects) AddMalformed(r xp.Ref, severity report.Severity, why, next string) {
	o.unreadable[r.ID()] = true
	o.malformed = append(o.malformed, report.Problem{Code: reason.Malformed, Severity: severity, Object: r, Reason: why, Next: next})
}

// Get returns the object that r names; nil if there is none.
func (o *Objects) Get(r xp.Ref) *unstructured.Unstructured {
	u := o.get(r)
	if u == nil {
		return nil
	}

	return u.full()
}

func (o *Objects) get(r xp.Ref) *object { return o.byID.get(r) }

// All returns the objects in a stable order.
func (o *Objects) All() []*unstructured.Unstructured { return fullObjects(o.sortedAll()) }

func (o *Objects) sortedAll() []*object {
	if o.all == nil {
		o.all = sorted(slices.Collect(o.byID.all()))
	}

	return o.all
}

// Missing returns the objects that XRs and claims reference and that were not added, unless their
// kind is unread.
func (o *Objects) Missing() []xp.Ref {
	var missing []xp.Ref
	need := func(r xp.Ref, ok bool) {
		if ok && o.get(r) == nil && !o.IsUnread(r) {
			missing = append(missing, r)
		}
	}
	for _, refs := range o.refs {
		for _, r := range refs {
			need(r, true)
		}
	}
	for _, claim := range o.claims {
		need(xp.ClaimFrom(claim.full()).CompositeRef())
	}
	for _, xr := range o.composites {
		need(xp.CompositeFrom(xr.full()).ClaimRef())
	}

	return missing
}

// Named returns a function that reports whether an XR that was added lists or controls an object.
func (o *Objects) Named() func(u *unstructured.Unstructured) bool {
	listed := map[xp.ID]bool{}
	for _, refs := range o.refs {
		for _, r := range refs {
			listed[r.ID()] = true
		}
	}

	return func(u *unstructured.Unstructured) bool {
		c, controlled := xp.Controller(u)
		_, ours := o.refs[c.UID]

		return controlled && ours || listed[xp.RefTo(u).ID()]
	}
}

// Controllers returns the kinds of missing controllers of composed resources. A controller is
// cluster-scoped or in the namespace of the object that it controls.
func (o *Objects) Controllers() []schema.GroupVersionKind {
	seen := map[schema.GroupVersionKind]bool{}
	var kinds []schema.GroupVersionKind
	for u := range o.byID.all() {
		if !u.is(isComposed) && len(o.listers(u)) == 0 {
			continue
		}
		c, ok := xp.Controller(u.full())
		gvk := schema.FromAPIVersionAndKind(c.APIVersion, c.Kind)
		if ok && o.byUID[c.UID] == nil && !seen[gvk] {
			seen[gvk] = true
			kinds = append(kinds, gvk)
		}
	}

	return kinds
}

// Composed returns the kinds that XRs list, each once.
func (o *Objects) Composed() []schema.GroupVersionKind {
	seen := map[schema.GroupKind]bool{}
	var kinds []schema.GroupVersionKind
	for _, refs := range o.refs {
		for _, r := range refs {
			if gvk := r.GroupVersionKind(); !seen[gvk.GroupKind()] {
				seen[gvk.GroupKind()] = true
				kinds = append(kinds, gvk)
			}
		}
	}

	return kinds
}

// UnreadKinds returns the kinds that could not be read, and why.
func (o *Objects) UnreadKinds() map[schema.GroupKind]string { return maps.Clone(o.unread) }

// IsUnread reports whether the object that r names could not be read, so that its absence proves
// nothing.
func (o *Objects) IsUnread(r xp.Ref) bool {
	return o.unreadable[r.ID()] || o.isUnreadKind(r.APIVersion, r.Kind) || o.namespace != "" && r.Namespace != "" && r.Namespace != o.namespace
}

func (o *Objects) isUnreadKind(apiVersion, kind string) bool {
	gk := schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
	_, unread := o.unread[gk]
	_, group := o.unread[schema.GroupKind{Group: gk.Group, Kind: "*"}]

	return unread || group
}
