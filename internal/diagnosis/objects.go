package diagnosis

import (
	"maps"
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
	byID  map[xp.ID]*unstructured.Unstructured
	byUID map[types.UID]*unstructured.Unstructured
	// lists says which XRs list an object.
	lists map[xp.ID][]*unstructured.Unstructured
	refs  map[types.UID][]xp.Ref
	// composites and the like are the objects by what they are.
	composites, claims, managed, usages, definitions []*unstructured.Unstructured
	// platform are packages, XRDs, Compositions and CompositionRevisions.
	platform  []*unstructured.Unstructured
	malformed []report.Problem
	// unreadable are the objects that are there and can't be read.
	unreadable map[xp.ID]bool
	// unread kinds are those that nothing is known of, broken ones those of them that the API server can't give anybody, and unserved ones those of
	// which there can be no object.
	unread, broken map[schema.GroupKind]string
	unserved       map[schema.GroupKind]bool
	// secretive are the XRs whose resourceRefs can't be read, and roots are the XRs by name.
	secretive map[types.UID]bool
	roots     map[string][]*unstructured.Unstructured
	// namespace is the only one that was looked into; "" if all were.
	namespace string
}

// NewObjects returns Objects of which there are none.
func NewObjects() *Objects {
	return &Objects{
		byID: map[xp.ID]*unstructured.Unstructured{}, byUID: map[types.UID]*unstructured.Unstructured{},
		lists: map[xp.ID][]*unstructured.Unstructured{}, refs: map[types.UID][]xp.Ref{}, unreadable: map[xp.ID]bool{},
		unread: map[schema.GroupKind]string{}, broken: map[schema.GroupKind]string{}, unserved: map[schema.GroupKind]bool{},
		secretive: map[types.UID]bool{}, roots: map[string][]*unstructured.Unstructured{},
	}
}

// Add adds an object, unless it was added before.
func (o *Objects) Add(u *unstructured.Unstructured) {
	id := xp.RefTo(u).ID()
	if _, again := o.byID[id]; again {
		return
	}
	o.byID[id] = u
	o.byUID[u.GetUID()] = u
	if xp.IsPlatform(u) || xp.IsPackage(u) {
		o.platform = append(o.platform, u)
	}
	switch {
	case xp.IsClaim(u):
		o.claims = append(o.claims, u)
	case xp.IsComposite(u):
		o.composites = append(o.composites, u)
		o.roots[u.GetName()] = append(o.roots[u.GetName()], u)
		o.addRefs(u)
	case xp.IsUsage(u):
		o.usages = append(o.usages, u)
	case xp.IsDefinition(u):
		o.definitions = append(o.definitions, u)
	case xp.IsManaged(u), isNew(u):
		o.managed = append(o.managed, u)
	}
}

// isNew tells whether u is in quarantine and looks like nothing of Crossplane's, since nobody had reconciled it yet when it was backed up.
func isNew(u *unstructured.Unstructured) bool {
	h, err := adoption.HoldOf(u)

	return err == nil && h != nil && h.Quarantine && !xp.IsSchedule(u)
}

// AddWitness adds an XR that is no subject itself, and of which only counts what it lists.
func (o *Objects) AddWitness(xr *unstructured.Unstructured) {
	if o.byUID[xr.GetUID()] == nil {
		o.byUID[xr.GetUID()] = xr
		o.addLists(xr)
	}
}

func (o *Objects) addRefs(xr *unstructured.Unstructured) {
	refs, err := xp.CompositeFrom(xr).ResourceRefs()
	if err != nil {
		o.secretive[xr.GetUID()] = true
		o.malformed = append(o.malformed, report.Problem{
			Code: report.Malformed, Severity: report.Grave, Object: xp.RefTo(xr), Reason: err.Error(),
			Next: "correct its resourceRefs: nothing is known of what it composes",
		})
	}
	o.refs[xr.GetUID()] = refs
	o.addLists(xr)
}

func (o *Objects) addLists(xr *unstructured.Unstructured) {
	refs, _ := xp.CompositeFrom(xr).ResourceRefs() // What can't be read lists nothing.
	for _, r := range refs {
		if !slices.Contains(o.lists[r.ID()], xr) {
			o.lists[r.ID()] = append(o.lists[r.ID()], xr)
		}
	}
}

// AddUnread says that the objects of a kind may not be read, and why: that one is not there proves nothing.
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
	return o.byID[r.ID()]
}

// All returns the objects in a stable order.
func (o *Objects) All() []*unstructured.Unstructured {
	return sorted(slices.Collect(maps.Values(o.byID)))
}

// Missing returns what XRs and claims refer to, of what can be there, and has not been added.
func (o *Objects) Missing() []xp.Ref {
	var missing []xp.Ref
	need := func(r xp.Ref, ok bool) {
		if ok && o.Get(r) == nil && !o.IsUnread(r) {
			missing = append(missing, r)
		}
	}
	for _, refs := range o.refs {
		for _, r := range refs {
			need(r, true)
		}
	}
	for _, claim := range o.claims {
		need(xp.ClaimFrom(claim).CompositeRef())
	}
	for _, xr := range o.composites {
		need(xp.CompositeFrom(xr).ClaimRef())
	}

	return missing
}

// Controllers returns the controllers, which have not been added, of what XRs compose or composed. They are in the namespace of what they control, or in
// none.
func (o *Objects) Controllers() []schema.GroupVersionKind {
	seen := map[schema.GroupVersionKind]bool{}
	var kinds []schema.GroupVersionKind
	for id, u := range o.byID {
		if !xp.IsComposed(u) && len(o.lists[id]) == 0 {
			continue
		}
		c, ok := xp.Controller(u)
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

// IsUnread tells whether nothing is known of what r names.
func (o *Objects) IsUnread(r xp.Ref) bool {
	return o.unreadable[r.ID()] || o.isUnreadKind(r.APIVersion, r.Kind) || o.namespace != "" && r.Namespace != "" && r.Namespace != o.namespace
}

func (o *Objects) isUnreadKind(apiVersion, kind string) bool {
	gk := schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
	_, unread := o.unread[gk]
	_, group := o.unread[schema.GroupKind{Group: gk.Group, Kind: "*"}]

	return unread || group
}

// isComposedBy tells whether an XR lists u and no other object controls it.
func isComposedBy(xr, u *unstructured.Unstructured) bool {
	return xp.Composed(xp.CompositeFrom(xr), u)
}
