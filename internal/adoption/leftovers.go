package adoption

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Leftover is a Usage that an XR composed once and that no XR lists any more.
type Leftover struct {
	Usage *unstructured.Unstructured
	// XR is the one that it concerns: its own, if that is still there, else the one that composes
	// what it protects.
	XR *unstructured.Unstructured
	// Why it is one.
	Why string
}

// String says what it is and what to do about it.
func (l Leftover) String() string {
	return fmt.Sprintf("%s is left behind: %s. It protects %s; %s", xp.String(l.Usage), l.Why, xp.Protected(l.Usage), l.Next())
}

// Next says what to do about it.
func (l Leftover) Next() string {
	return "if that is not in use any more, clear it with: " + xp.ClearUsage(l.Usage)
}

// Leftovers finds the Usages that XRs left behind, as Crossplane before v1.18.2 did when a
// Composition dropped them (crossplane #5880). Usages are all of those with the label of a
// composite, and xrs all XRs of the kinds that matter.
func Leftovers(usages, xrs []*unstructured.Unstructured) []Leftover {
	f := xrIndex{
		kinds: map[schema.GroupKind]bool{}, byUID: map[types.UID]*unstructured.Unstructured{}, lists: map[xp.ID]*unstructured.Unstructured{},
		roots: map[string]*unstructured.Unstructured{},
	}
	for _, xr := range xrs {
		f.add(xr)
	}
	var left []Leftover
	for _, u := range usages {
		if xr, why := f.leftoverOf(u); xr != nil {
			left = append(left, Leftover{Usage: u, XR: xr, Why: why})
		}
	}

	return left
}

// A xrIndex is the XRs of some kinds.
type xrIndex struct {
	kinds map[schema.GroupKind]bool
	byUID map[types.UID]*unstructured.Unstructured
	// lists says which XR lists an object, and roots which is at the top of a tree, by namespace
	// and name.
	lists map[xp.ID]*unstructured.Unstructured
	roots map[string]*unstructured.Unstructured
}

func (f xrIndex) add(xr *unstructured.Unstructured) {
	f.kinds[xr.GroupVersionKind().GroupKind()] = true
	f.byUID[xr.GetUID()] = xr
	refs, _ := xp.CompositeFrom(xr).ResourceRefs() // What can't be read lists nothing.
	for _, r := range refs {
		f.lists[r.ID()] = xr
	}
	if _, composed := xp.Controller(xr); !composed {
		f.roots[xr.GetNamespace()+"/"+xr.GetName()] = xr
	}
}

// leftoverOf returns the XR that a Usage is a leftover of, and why it is one; nil if it is none, or
// nobody here can tell.
func (f xrIndex) leftoverOf(usage *unstructured.Unstructured) (*unstructured.Unstructured, string) {
	lists := f.lists[xp.RefTo(usage).ID()]
	c, controlled := xp.Controller(usage)
	if lists != nil && (!controlled || c.UID == lists.GetUID()) {
		return nil, ""
	}
	if xr := f.byUID[c.UID]; controlled && xr != nil {
		return xr, xp.String(xr) + " composed it and does not list it in its resourceRefs"
	}
	if controlled && !f.kinds[schema.FromAPIVersionAndKind(c.APIVersion, c.Kind).GroupKind()] {
		return nil, "" // Of XRs that were not looked at nothing is known.
	}
	why := "no XR lists it in its resourceRefs"
	if controlled {
		why = c.Kind + " " + c.Name + ", which composed it, is gone"
	}
	root := usage.GetLabels()[xp.LabelComposite]
	for _, namespace := range []string{usage.GetNamespace(), ""} {
		if xr := f.roots[namespace+"/"+root]; xr != nil {
			return xr, why
		}
	}
	if used, ok := xp.Used(usage); ok {
		for _, namespace := range []string{used.Namespace, ""} {
			used.Namespace = namespace
			if xr := f.lists[used.ID()]; xr != nil {
				return xr, why
			}
		}
	}

	return nil, ""
}
