package adoption

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Leftover is a Usage that an XR composed and that no XR lists any more.
type Leftover struct {
	Usage *unstructured.Unstructured
	// XR is the XR that composed the Usage or, if it is gone, the XR that composes the protected
	// resource.
	XR *unstructured.Unstructured
	// Why is the reason that it is a leftover.
	Why string
}

// Message returns what the Leftover is, and the next step.
func (l Leftover) Message() reason.Message {
	return reason.UsageLeftBehind.Messagef("%s: %s. It protects %s; %s", xp.String(l.Usage), l.Why, xp.Protected(l.Usage), l.Next())
}

// Next returns the next step.
func (l Leftover) Next() string {
	return "if that is not in use any more, delete the Usage with: " + xp.ClearUsage(l.Usage)
}

// Leftovers returns the Usages that XRs left behind. Crossplane before v1.18.2 does that when a
// Composition drops a Usage (crossplane #5880). usages are all with the composite label, xrs all
// XRs of the relevant kinds.
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

type xrIndex struct {
	kinds map[schema.GroupKind]bool
	byUID map[types.UID]*unstructured.Unstructured
	// lists is the XR that lists an object. roots are the XRs at the top of a tree, by
	// namespace/name.
	lists map[xp.ID]*unstructured.Unstructured
	roots map[string]*unstructured.Unstructured
}

func (f xrIndex) add(xr *unstructured.Unstructured) {
	f.kinds[xr.GroupVersionKind().GroupKind()] = true
	f.byUID[xr.GetUID()] = xr
	refs, _ := xp.CompositeFrom(xr).ResourceRefs() // An XR whose resourceRefs can't be read lists nothing.
	for _, r := range refs {
		f.lists[r.ID()] = xr
	}
	if _, composed := xp.Controller(xr); !composed {
		f.roots[xr.GetNamespace()+"/"+xr.GetName()] = xr
	}
}

// leftoverOf returns the XR that a Usage is a leftover of, and the reason; nil if it is no
// leftover, or that can't be known.
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
		return nil, "" // It belongs to an XR of a kind that was not listed.
	}
	why := "no XR lists it in its resourceRefs"
	if controlled {
		why = c.Kind + " " + c.Name + ", which composed it, is gone"
	}
	used, _ := xp.Used(usage)
	wide := used
	wide.Namespace = ""
	root := xp.Label(usage, xp.LabelComposite)

	return cmp.Or(f.roots[usage.GetNamespace()+"/"+root], f.roots["/"+root], f.lists[used.ID()], f.lists[wide.ID()]), why
}
