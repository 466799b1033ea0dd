package adoption

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A World is what was observed of a cluster.
type World struct {
	objects  map[xp.ID]*unstructured.Unstructured
	unserved map[schema.GroupKind]bool
}

// NewWorld returns a World in which nothing exists.
func NewWorld() *World {
	return &World{objects: map[xp.ID]*unstructured.Unstructured{}, unserved: map[schema.GroupKind]bool{}}
}

// Add says that an object exists.
func (w *World) Add(u *unstructured.Unstructured) {
	w.objects[xp.RefTo(u).ID()] = u
}

// AddUnserved says that the API server does not serve a kind.
func (w *World) AddUnserved(gk schema.GroupKind) {
	w.unserved[gk] = true
}

// Get returns the object that r names; nil if it does not exist.
func (w *World) Get(r xp.Ref) *unstructured.Unstructured {
	return w.objects[r.ID()]
}

// Composites returns the XRs, held or not, in a stable order.
func (w *World) Composites() []xp.Ref {
	var refs []xp.Ref
	for _, u := range w.objects {
		if xp.IsComposite(u) {
			refs = append(refs, xp.RefTo(u))
		}
	}
	slices.SortFunc(refs, xp.Ref.Compare)

	return refs
}

// Needs returns what else must be observed to plan for the objects in refs, as far as w already has them: what they compose, their claims and
// their CompositionRevisions, and so on down the trees.
func (w *World) Needs(refs []xp.Ref) []xp.Ref {
	var needs []xp.Ref
	seen := map[xp.ID]bool{}
	var visit func(r xp.Ref)
	visit = func(r xp.Ref) {
		if seen[r.ID()] {
			return
		}
		seen[r.ID()] = true
		needs = append(needs, r)
		u := w.Get(r)
		if u == nil {
			return
		}
		if xr, ok := xp.ClaimFrom(u).CompositeRef(); ok && xp.IsClaim(u) {
			visit(xr)

			return
		}
		if !xp.IsComposite(u) {
			return
		}
		c := xp.CompositeFrom(u)
		if h, err := HoldOf(u); err == nil && h != nil {
			for _, saved := range h.Refs {
				visit(saved)
			}
			if c.Revision() != "" {
				visit(revisionRef(c))
			}
		}
		if claim, ok := c.ClaimRef(); ok {
			visit(claim)
		}
	}
	for _, r := range refs {
		visit(r)
	}

	return needs
}

func revisionRef(c xp.Composite) xp.Ref {
	return xp.Ref{APIVersion: xp.GroupAPIExtensions + "/v1", Kind: "CompositionRevision", Name: c.Revision()}
}
