package diagnosis

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Objects are those that a diagnosis is made of. All are added before anything is asked.
type Objects struct {
	byID  byID
	byUID map[types.UID]*object
	refs  map[types.UID][]xp.Ref
	// lists are what each XR lists, and listed says which XRs list an object, if that was asked for
	// since the last was added.
	lists  []list
	listed map[*object][]*object
	// composites and the like are the objects by what they are.
	composites, claims, managed, usages, definitions []*object
	// platform are packages, XRDs, Compositions and CompositionRevisions.
	platform []*object
	// deployments are those of Crossplane.
	deployments []*object
	// forged are those that say that they are claims and XRs.
	forged    []*object
	malformed []report.Problem
	// unreadable are the objects that are there and can't be read.
	unreadable map[xp.ID]bool
	// unread kinds are those that nothing is known of, broken ones those of them that the API
	// server can't give anybody, and unserved ones those of which there can be no object.
	unread, broken map[schema.GroupKind]string
	unserved       map[schema.GroupKind]bool
	// secretive are the XRs whose resourceRefs can't be read, and roots are the XRs by name.
	secretive map[types.UID]bool
	roots     map[string][]*object
	// namespace is the only one that was looked into; "" if all were.
	namespace string
	// all are those of byID in their order, if it was asked for since the last was added.
	all []*object
	// owners are XRs without what no ownership depends on, as far as they were asked for: to read
	// one that lists thousands takes long.
	owners map[*object]xp.Composite
}

// A list is what an XR lists.
type list struct {
	xr   *object
	refs []xp.Ref
}

// NewObjects returns Objects of which there are none.
func NewObjects() *Objects {
	return &Objects{
		byID: byID{}, byUID: map[types.UID]*object{}, refs: map[types.UID][]xp.Ref{},
		unreadable: map[xp.ID]bool{}, unread: map[schema.GroupKind]string{}, broken: map[schema.GroupKind]string{}, unserved: map[schema.GroupKind]bool{},
		secretive: map[types.UID]bool{}, roots: map[string][]*object{}, owners: map[*object]xp.Composite{},
	}
}

// Add adds an object, unless it was added before.
func (o *Objects) Add(u *unstructured.Unstructured) { o.AddFrom(memorySource{u}) }

// AddFrom adds the object of a Source, unless it was added before.
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

// addForged adds what says that it is a claim and an XR. It can refer to itself as both, so nothing
// of what it refers to is followed.
func (o *Objects) addForged(self *object) {
	o.forged = append(o.forged, self)
	o.malformed = append(o.malformed, report.Problem{
		Code: report.Malformed, Severity: report.Grave, Object: self.Ref,
		Reason: "it has what marks a claim and what marks an XR, and no object is both, so nothing that it refers to is followed",
		Next: "find out who has written it; take off the finalizer " + xp.FinalizerComposite + " or " + xp.FinalizerClaim +
			", and the fields of what it is not, or delete it",
	})
}

// isNew reports whether u waits for a person and looks like nothing of Crossplane's, since nobody
// had reconciled it yet when it was backed up.
func isNew(u *unstructured.Unstructured) bool {
	h, err := adoption.HoldOf(u)
	if err != nil || h == nil || xp.IsSchedule(u) {
		return false
	}
	_, kept := h.AwaitsConsent()

	return kept
}

// AddWitness adds an XR that is no subject itself, and of which only counts what it lists.
func (o *Objects) AddWitness(xr *unstructured.Unstructured) {
	if o.byUID[xr.GetUID()] == nil {
		self := newObject(memorySource{xr}, xr)
		o.byUID[self.uid] = self
		refs, _ := xp.CompositeFrom(xr).ResourceRefs() // What can't be read lists nothing.
		o.addLists(self, refs)
	}
}

func (o *Objects) addRefs(xr *object, u *unstructured.Unstructured) {
	refs, err := xp.CompositeFrom(u).ResourceRefs()
	if err != nil {
		o.secretive[xr.uid] = true
		o.malformed = append(o.malformed, report.Problem{
			Code: report.Malformed, Severity: report.Grave, Object: xr.Ref, Reason: err.Error(),
			Next: "correct its resourceRefs: nothing is known of what it composes",
		})
	}
	o.refs[xr.uid] = refs
	o.addLists(xr, refs)
}

func (o *Objects) addLists(xr *object, refs []xp.Ref) {
	o.lists, o.listed = append(o.lists, list{xr: xr, refs: refs}), nil
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

// AddUnread says that the objects of a kind may not be read, and why: that one is not there proves
// nothing.
func (o *Objects) AddUnread(gk schema.GroupKind, why string) { o.unread[gk] = why }

// AddBroken says that the API server can't give the objects of a kind, and why.
func (o *Objects) AddBroken(gk schema.GroupKind, why string) { o.unread[gk], o.broken[gk] = why, why }

// AddUnserved says that the API server does not serve a kind.
func (o *Objects) AddUnserved(gk schema.GroupKind) { o.unserved[gk] = true }

// Limit says that of namespaced kinds only what is in the namespace is added.
func (o *Objects) Limit(namespace string) { o.namespace = namespace }

// AddMalformed says that an object is there and can't be read.
func (o *Objects) AddMalformed(r xp.Ref, severity report.Severity, reason, next string) {
	o.unreadable[r.ID()] = true
	o.malformed = append(o.malformed, report.Problem{Code: report.Malformed, Severity: severity, Object: r, Reason: reason, Next: next})
}

// Get returns the object that r names; nil if it is not there.
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

// Missing returns what XRs and claims refer to, of what can be there, and has not been added.
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

// Controllers returns the controllers, which have not been added, of what XRs compose or composed.
// They are in the namespace of what they control, or in none.
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

// Composed returns the kinds of what XRs list, each once.
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

// IsUnread reports whether nothing is known of what r names.
func (o *Objects) IsUnread(r xp.Ref) bool {
	return o.unreadable[r.ID()] || o.isUnreadKind(r.APIVersion, r.Kind) || o.namespace != "" && r.Namespace != "" && r.Namespace != o.namespace
}

func (o *Objects) isUnreadKind(apiVersion, kind string) bool {
	gk := schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
	_, unread := o.unread[gk]
	_, group := o.unread[schema.GroupKind{Group: gk.Group, Kind: "*"}]

	return unread || group
}
