package adoption

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A restoredResource is a composed resource that a restore has created.
type restoredResource struct {
	xp.Ref
	place

	// controller is the owner reference of its controller; nil if it has none.
	controller *metav1.OwnerReference
}

// A composedIndex finds the composed resources that restores have created, by the XR that they name
// as their owner.
type composedIndex struct {
	// at is the Snapshot's clock when the index was built.
	at int
	// controlled are by the UID of the observed XR that controls them. labelled are all others with
	// a composite label, by its value.
	controlled map[types.UID][]restoredResource
	labelled   map[string][]restoredResource
	// listed are the resourceRefs of all observed XRs; nil until they are needed.
	listed map[xp.ID]bool
}

// shapeComposed is the part of an object that the index reads.
var shapeComposed = &pack.Shape{ //nolint:gochecknoglobals // It is a constant.
	Only: []string{"apiVersion", "kind", "metadata"},
	Fields: map[string]*pack.Shape{
		"metadata": {Only: []string{"name", "namespace", "uid", "ownerReferences", "labels", "annotations", "deletionTimestamp"}},
	},
}

// composedNow returns the index of the current objects. It is kept until an object changes, since a
// cluster can have a hundred thousand objects.
func (s *Snapshot) composedNow() *composedIndex {
	if s.index != nil && s.index.at == s.clock {
		return s.index
	}
	x := &composedIndex{at: s.clock, controlled: map[types.UID][]restoredResource{}, labelled: map[string][]restoredResource{}}
	xrs := map[types.UID]bool{}
	for _, f := range s.observed {
		if f.composite {
			xrs[f.uid] = true
		}
	}
	for _, u := range s.objects {
		s.addTo(x, xrs, u)
	}
	for _, o := range s.packed {
		s.addTo(x, xrs, &unstructured.Unstructured{Object: o.Unpack(shapeComposed)})
	}
	s.index = x

	return x
}

// addTo adds an object to the index, if a restore created it and an XR may have composed it. xrs
// are the UIDs of the observed XRs.
func (s *Snapshot) addTo(x *composedIndex, xrs map[types.UID]bool, u *unstructured.Unstructured) {
	if !s.restored[u.GetUID()] || u.GetDeletionTimestamp() != nil {
		return
	}
	c, controlled := xp.Controller(u)
	root := xp.Label(u, xp.LabelComposite)
	b := restoredResource{Ref: cloneRef(xp.RefTo(u)), place: placeOf(u)}
	switch {
	case controlled && xrs[c.UID]:
		x.controlled[c.UID] = append(x.controlled[c.UID], b)
	case controlled && root != "":
		b.controller = &c
		x.labelled[root] = append(x.labelled[root], b)
	case root != "":
		x.labelled[root] = append(x.labelled[root], b)
	}
}

// unlisted returns the restored objects that name the XR as their owner but are not in listed, its
// resourceRefs, in a stable order. The XR controls such an object; or no XR lists it, it has the
// label of the XR's tree, and no controller or an earlier XR of that name.
func (s *Snapshot) unlisted(xr xp.Composite, listed map[xp.ID]bool) []restoredResource {
	x := s.composedNow()
	var found []restoredResource
	for _, b := range x.controlled[xr.GetUID()] {
		if !listed[b.ID()] {
			found = append(found, b)
		}
	}
	root := xp.Label(xr.Unstructured, xp.LabelComposite)
	if root == "" {
		root = xr.GetName()
	}
	for _, b := range x.labelled[root] {
		switch {
		case listed[b.ID()], xr.GetNamespace() != "" && b.Namespace != xr.GetNamespace():
		case b.controller != nil && !isEarlier(b.controller, xr):
		case s.listedBySomeXR(x)[b.ID()]:
		default:
			found = append(found, b)
		}
	}
	slices.SortFunc(found, func(a, b restoredResource) int { return a.Compare(b.Ref) })

	return found
}

// isEarlier reports whether the controller is an earlier XR of the same kind and name.
func isEarlier(c *metav1.OwnerReference, xr xp.Composite) bool {
	r := xp.Ref{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: xr.GetNamespace(), Name: c.Name}

	return r.ID() == xp.RefTo(xr.Unstructured).ID() && c.UID != xr.GetUID()
}

func (s *Snapshot) listedBySomeXR(x *composedIndex) map[xp.ID]bool {
	if x.listed != nil {
		return x.listed
	}
	x.listed = map[xp.ID]bool{}
	for _, f := range s.observed {
		if !f.composite {
			continue
		}
		refs, _ := xp.CompositeFrom(s.get(f.ID())).ResourceRefs() // An XR whose resourceRefs can't be read lists nothing.
		for _, r := range refs {
			x.listed[r.ID()] = true
		}
	}

	return x.listed
}
