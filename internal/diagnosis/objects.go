package diagnosis

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

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
	unread    map[schema.GroupKind]string
	// unreadable are the objects that are there and can't be read.
	unreadable map[xp.ID]bool
}

// NewObjects returns Objects of which there are none.
func NewObjects() *Objects {
	return &Objects{
		byID: map[xp.ID]*unstructured.Unstructured{}, byUID: map[types.UID]*unstructured.Unstructured{},
		lists: map[xp.ID][]*unstructured.Unstructured{}, refs: map[types.UID][]xp.Ref{}, unread: map[schema.GroupKind]string{}, unreadable: map[xp.ID]bool{},
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
		o.addRefs(u)
	case xp.IsUsage(u):
		o.usages = append(o.usages, u)
	case xp.IsDefinition(u):
		o.definitions = append(o.definitions, u)
	case xp.IsManaged(u):
		o.managed = append(o.managed, u)
	}
}

func (o *Objects) addRefs(xr *unstructured.Unstructured) {
	refs, err := xp.CompositeFrom(xr).ResourceRefs()
	if err != nil {
		o.malformed = append(o.malformed, report.Problem{
			Code: report.Malformed, Severity: report.Grave, Object: xp.RefTo(xr), Reason: err.Error(),
			Next: "correct its resourceRefs: nothing is known of what it composes",
		})
	}
	o.refs[xr.GetUID()] = refs
	for _, r := range refs {
		if !slices.Contains(o.lists[r.ID()], xr) {
			o.lists[r.ID()] = append(o.lists[r.ID()], xr)
		}
	}
}

// AddUnread says that the objects of a kind could not be read, and why: that one is not there proves nothing.
func (o *Objects) AddUnread(gk schema.GroupKind, why string) {
	o.unread[gk] = why
}

// AddMalformed says that an object is there and can't be read.
func (o *Objects) AddMalformed(r xp.Ref, severity report.Severity, reason, next string) {
	o.unreadable[r.ID()] = true
	o.malformed = append(o.malformed, report.Problem{Code: report.Malformed, Severity: severity, Object: r, Reason: reason, Next: next})
}

// Get returns the object that r names; nil if it is not there.
func (o *Objects) Get(r xp.Ref) *unstructured.Unstructured {
	return o.byID[r.ID()]
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

func (o *Objects) isUnread(r xp.Ref) bool {
	_, unread := o.unread[r.GroupVersionKind().GroupKind()]

	return unread || o.unreadable[r.ID()]
}

// isComposedBy tells whether an XR lists u and no other object controls it.
func isComposedBy(xr, u *unstructured.Unstructured) bool {
	return xp.Composed(xp.CompositeFrom(xr), u)
}
