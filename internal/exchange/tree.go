package exchange

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Tree is an XR or claim with all that is below it, in a cluster or in a backup.
type Tree struct {
	Root *unstructured.Unstructured
	// Below are XRs and composed resources, each XR before what it composes.
	Below []*unstructured.Unstructured
	// Missing are listed and don't exist. Foreign are listed and don't belong to the tree.
	Missing, Foreign []xp.Ref

	ids map[xp.ID]bool
}

// A Finder returns the existing objects of refs.
type Finder func(refs []xp.Ref) (map[xp.ID]*unstructured.Unstructured, error)

// Walk reads a tree.
func Walk(root *unstructured.Unstructured, find Finder) (Tree, error) {
	t := Tree{Root: root, ids: map[xp.ID]bool{}}
	err := t.visit(root, find, map[xp.ID]bool{xp.RefTo(root).ID(): true})

	return t, err
}

func (t *Tree) visit(u *unstructured.Unstructured, find Finder, seen map[xp.ID]bool) error {
	refs, err := Listed(u)
	if err != nil {
		return err
	}
	refs = slices.DeleteFunc(refs, func(r xp.Ref) bool {
		again := seen[r.ID()]
		seen[r.ID()] = true

		return again
	})
	found, err := find(refs)
	if err != nil {
		return fmt.Errorf("cannot read what %s composes: %w", xp.String(u), err)
	}
	for _, r := range refs {
		child := found[r.ID()]
		switch {
		case child == nil:
			t.Missing = append(t.Missing, r)
		case !belongs(u, child):
			t.Foreign = append(t.Foreign, r)
		default:
			t.Below = append(t.Below, child)
			t.ids[xp.RefTo(child).ID()] = true
			if !xp.IsComposite(child) {
				continue
			}
			if err := t.visit(child, find, seen); err != nil {
				return err
			}
		}
	}

	return nil
}

// Listed returns the composed resources that an XR lists, or the XR of a claim.
func Listed(u *unstructured.Unstructured) ([]xp.Ref, error) {
	if !xp.IsClaim(u) {
		refs, err := xp.CompositeFrom(u).ResourceRefs()
		if err != nil {
			return nil, fmt.Errorf("cannot read what is composed: %w", err)
		}

		return refs, nil
	}
	if r, ok := xp.ClaimFrom(u).CompositeRef(); ok {
		return []xp.Ref{r}, nil
	}

	return nil, nil
}

func belongs(to, u *unstructured.Unstructured) bool {
	if xp.IsClaim(to) {
		return xp.Bound(xp.ClaimFrom(to), xp.CompositeFrom(u))
	}

	return xp.Composed(xp.CompositeFrom(to), u)
}

// has reports whether an object is below the root of the tree.
func (t *Tree) has(u *unstructured.Unstructured) bool {
	return t.ids[xp.RefTo(u).ID()]
}

// XRs returns the root and the XRs below it.
func (t *Tree) XRs() []*unstructured.Unstructured {
	xrs := []*unstructured.Unstructured{t.Root}
	for _, u := range t.Below {
		if xp.IsComposite(u) {
			xrs = append(xrs, u)
		}
	}

	return xrs
}

// IsMarked reports whether an exchange has paused u.
func IsMarked(u *unstructured.Unstructured) bool {
	return xp.HasAnnotation(u, xp.AnnotationExchange) && xp.IsPaused(u)
}

// isManaged reports whether u is an MR, even if its provider has not reconciled it yet.
func isManaged(u *unstructured.Unstructured) bool {
	_, spec, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "forProvider")

	return xp.IsManaged(u) || spec && xp.IsCustomGroup(u.GroupVersionKind().Group)
}

// ManagedOf returns the MRs of a tree.
func ManagedOf(t Tree) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(t.Below), func(u *unstructured.Unstructured) bool { return xp.IsComposite(u) || !isManaged(u) })
}

// IsOfKinds reports whether r may be an MR with the same external resource as an MR of the tree.
func IsOfKinds(t Tree, r xp.Ref) bool {
	return slices.ContainsFunc(ManagedOf(t), func(mr *unstructured.Unstructured) bool {
		return mr.GetKind() == r.Kind && xp.GroupFamily(mr.GroupVersionKind().Group) == xp.GroupFamily(r.GroupVersionKind().Group)
	})
}
