package diagnosis

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Source has an object, which it need not have in memory.
type Source interface {
	// Part returns what of the object has a shape, or more; all of it for nil. It is not changed.
	Part(shape *pack.Shape) *unstructured.Unstructured
}

// memorySource is a Source that has its object.
type memorySource struct{ u *unstructured.Unstructured }

func (g memorySource) Part(*pack.Shape) *unstructured.Unstructured { return g.u }

// An object is what a diagnosis asks of each one, and where the rest is, of which it asks little.
type object struct {
	xp.Ref

	uid types.UID
	// controller is the UID of what controls it, "" also if nothing does.
	controller types.UID
	traits     trait
	source     Source
}

// Shapes of what is asked of many objects: shapeKnown of what is asked of all of them, which is not
// what is in some fields; shapeNode of what a tree says of one; shapeOwner of who composes what;
// shapeInput of what a provider reads; shapeList of what an XR composes.
var (
	shapeKnown = &pack.Shape{ //nolint:gochecknoglobals // It is a constant.
		Fields: map[string]*pack.Shape{"spec": {
			Fields: map[string]*pack.Shape{"forProvider": {Only: []string{}}, "pipeline": {Only: []string{}}, "resources": {Only: []string{}}},
		}},
	}
	shapeNode = &pack.Shape{ //nolint:gochecknoglobals // It is a constant.
		Only: []string{"apiVersion", "kind", "metadata", "status"},
		Fields: map[string]*pack.Shape{
			"metadata": {Only: []string{"annotations", "creationTimestamp"}}, "status": {Only: []string{"conditions"}},
		},
	}
	shapeOwner = &pack.Shape{ //nolint:gochecknoglobals // It is a constant.
		Only:   []string{"apiVersion", "kind", "metadata"},
		Fields: map[string]*pack.Shape{"metadata": {Only: []string{"name", "namespace", "uid", "ownerReferences", "labels"}}},
	}
	shapeInput = &pack.Shape{ //nolint:gochecknoglobals // It is a constant.
		Only: []string{"apiVersion", "kind", "metadata", "spec", "status"},
		Fields: map[string]*pack.Shape{
			"metadata": {
				Only:   []string{"name", "namespace", "annotations", xp.FieldInputs},
				Fields: map[string]*pack.Shape{"annotations": {Only: []string{xp.AnnotationExternalName}}},
			},
			"spec":   {Only: []string{"forProvider", "initProvider", "managementPolicies"}},
			"status": {Only: []string{"atProvider"}, Fields: map[string]*pack.Shape{"atProvider": {Only: []string{"revision"}}}},
		},
	}
	shapeList = &pack.Shape{ //nolint:gochecknoglobals // It is a constant.
		Only: []string{"apiVersion", "kind", "metadata", "spec"},
		Fields: map[string]*pack.Shape{
			"metadata": {Only: []string{"name", "namespace", "uid", "ownerReferences", "labels"}},
			"spec":     {Only: []string{"resourceRefs", "crossplane"}},
		},
	}
)

// A trait is something that an object is or has.
type trait uint32

const (
	isClaim trait = 1 << iota
	isComposite
	isUsage
	isDefinition
	isManaged
	// isPlatform is for packages too.
	isPlatform
	isComposed
	isControlled
	isDeleting
	isMarked
	isUnsure
	isPublishing
	isNative
	isModern
	// isCustomizedAccount is the ServiceAccount of one revision of a package that somebody has put
	// something on.
	isCustomizedAccount
	// isOfRights is what Rights are made of.
	isOfRights
	// isNewer was backed up by a newer version of this plugin, in a format that this one can't
	// read.
	isNewer
)

// newObject looks at an object.
func newObject(s Source, u *unstructured.Unstructured) *object {
	o := &object{Ref: xp.RefTo(u), uid: u.GetUID(), source: s}
	c, controlled := xp.Controller(u)
	o.controller = c.UID
	_, publishes := xp.SecretRef(u)
	claim, composite, managed := xp.IsClaim(u), xp.IsComposite(u), xp.IsManaged(u)
	o.note(isClaim, claim)
	o.note(isComposite, composite)
	o.note(isUsage, xp.IsUsage(u))
	o.note(isDefinition, xp.IsDefinition(u))
	o.note(isManaged, managed)
	o.note(isPlatform, xp.IsPlatform(u) || xp.IsPackage(u))
	o.note(isComposed, xp.IsComposed(u))
	o.note(isControlled, controlled)
	o.note(isDeleting, u.GetDeletionTimestamp() != nil)
	o.note(isMarked, isHeld(u))
	o.note(isUnsure, (managed || o.is(isMarked)) && isUnsureOf(u))
	o.note(isPublishing, publishes && (claim || composite || managed))
	o.note(isNative, xp.IsNative(u))
	o.note(isModern, xp.NeedsV2(u))
	o.note(isNewer, xp.CheckFormat(u) != nil)
	o.note(isOfRights, concernsRights(u))
	o.note(isCustomizedAccount, xp.IsNamedAfterRevision(u) && len(xp.AddedSettings(u)) > 0)

	return o
}

func isUnsureOf(mr *unstructured.Unstructured) bool {
	identity := xp.IdentityOf(mr)

	return identity != xp.Known && identity != xp.NeverCreated || xp.IsNeverObserved(mr)
}

func (o *object) note(t trait, has bool) {
	if has {
		o.traits |= t
	}
}

// byID are objects by their IDs, in two parts: many have the same group and kind.
type byID map[schema.GroupKind]map[types.NamespacedName]*object

// add adds an object, unless there is one of its ID, and reports whether it did.
func (b byID) add(o *object) bool {
	gk, name := o.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	if _, again := b[gk][name]; again {
		return false
	}
	if b[gk] == nil {
		b[gk] = map[types.NamespacedName]*object{}
	}
	b[gk][name] = o

	return true
}

// get returns the object that r names; nil if there is none.
func (b byID) get(r xp.Ref) *object {
	return b[r.GroupVersionKind().GroupKind()][types.NamespacedName{Namespace: r.Namespace, Name: r.Name}]
}

// all are the objects, in any order.
func (b byID) all() iter.Seq[*object] {
	return func(yield func(*object) bool) {
		for _, objects := range b {
			for _, o := range objects {
				if !yield(o) {
					return
				}
			}
		}
	}
}

func (o *object) is(t trait) bool { return o.traits&t != 0 }

func (o *object) full() *unstructured.Unstructured { return o.source.Part(nil) }

// fullObjects returns objects with all that they have.
func fullObjects(objects []*object) []*unstructured.Unstructured { return parts(objects, nil) }

// parts returns what of objects has a shape, or more.
func parts(objects []*object, shape *pack.Shape) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, len(objects))
	for n, o := range objects {
		all[n] = o.source.Part(shape)
	}

	return all
}

// sorted returns the objects in the order of their Refs.
func sorted(objects []*object) []*object {
	return slices.SortedFunc(slices.Values(objects), func(a, b *object) int { return a.Compare(b.Ref) })
}

// isHeld reports whether u has the mark of a hold, readable or not, and not just that of another
// object.
func isHeld(u *unstructured.Unstructured) bool {
	h, err := adoption.HoldOf(u)

	return err != nil && !adoption.HoldsNothing(u, err) || h != nil
}

// isForged reports whether it says of itself that it is a claim and an XR, as nothing of
// Crossplane's does.
func (o *object) isForged() bool { return o.is(isClaim) && o.is(isComposite) }

// controls reports whether an XR controls u.
func controls(xr, u *object) bool { return u.controller != "" && u.controller == xr.uid }
