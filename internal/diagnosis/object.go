package diagnosis

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Source provides an object, which need not be in memory.
type Source interface {
	// Part returns at least the part of the object that a shape describes; the whole object for
	// nil. Callers must not change it.
	Part(shape *pack.Shape) *unstructured.Unstructured
}

// memorySource is the Source of an object in memory.
type memorySource struct{ u *unstructured.Unstructured }

func (g memorySource) Part(*pack.Shape) *unstructured.Unstructured { return g.u }

// An object is the part of each object that stays in memory. The rest comes from its Source.
type object struct {
	xp.Ref

	uid types.UID
	// controller is the UID of its controller; "" also if it has none.
	controller types.UID
	traits     trait
	// refs are what an XR lists, each once.
	refs   []xp.Ref
	source Source
}

// These shapes limit what is read of many objects: shapeKnown for newObject, shapeNode for a tree,
// shapeOwner for ownership, shapeInput for the Secrets that a provider reads, shapeList for the
// resources that an XR lists.
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

// A trait is a property of an object.
type trait uint32

const (
	isClaim trait = 1 << iota
	isComposite
	// isForged has the marks of both a claim and an XR, as no object of Crossplane has. It is neither.
	isForged
	// isWitness is an XR of which only the references count.
	isWitness
	// isUnlisted is an XR whose resourceRefs cannot be read.
	isUnlisted
	isUsage
	isManaged
	// isNew waits for a user's consent. At backup time no controller had reconciled it, so it lacks the
	// signs of an MR.
	isNew
	// isPlatform includes packages.
	isPlatform
	isComposed
	isControlled
	isDeleting
	isMarked
	isUnsure
	isPublishing
	isNative
	isModern
	// isCustomizedAccount is a ServiceAccount of a package revision with added settings.
	isCustomizedAccount
	// isNewer was backed up by a newer version of this plugin, in a format that this one can't read.
	isNewer
)

func newObject(s Source, u *unstructured.Unstructured) *object {
	o := &object{Ref: xp.RefTo(u), uid: u.GetUID(), source: s}
	c, controlled := xp.Controller(u)
	o.controller = c.UID
	_, publishes := xp.SecretRef(u)
	claim, composite := xp.IsClaim(u), xp.IsComposite(u)
	o.set(isClaim, claim && !composite)
	o.set(isComposite, composite && !claim)
	o.set(isForged, claim && composite)
	o.set(isUsage, xp.IsUsage(u))
	o.set(isManaged, xp.IsManaged(u))
	o.set(isNew, roleOf(o) == report.RoleOther && awaitsConsent(u))
	o.set(isPlatform, xp.IsPlatform(u) || xp.IsPackage(u))
	o.set(isComposed, xp.IsComposed(u))
	o.set(isControlled, controlled)
	o.set(isDeleting, u.GetDeletionTimestamp() != nil)
	o.set(isMarked, isHeld(u))
	o.set(isUnsure, o.is(isManaged|isNew) && isUnsureOf(u))
	o.set(isPublishing, publishes && o.is(isClaim|isComposite|isForged|isManaged))
	o.set(isNative, xp.IsNative(u))
	o.set(isModern, xp.NeedsV2(u))
	o.set(isNewer, xp.CheckFormat(u) != nil)
	o.set(isCustomizedAccount, xp.IsNamedAfterRevision(u) && len(xp.AddedSettings(u)) > 0)

	return o
}

func awaitsConsent(u *unstructured.Unstructured) bool {
	h, err := hold.Of(u)
	if err != nil || h == nil || xp.IsSchedule(u) {
		return false
	}
	_, waits := h.AwaitsConsent()

	return waits
}

func isUnsureOf(mr *unstructured.Unstructured) bool {
	identity := xp.IdentityOf(mr)

	return identity != xp.Known && identity != xp.NeverCreated || xp.IsNeverObserved(mr)
}

func (o *object) set(t trait, has bool) {
	if has {
		o.traits |= t
	}
}

// is reports whether the object has one of the traits.
func (o *object) is(t trait) bool { return o.traits&t != 0 }

func (o *object) full() *unstructured.Unstructured { return o.source.Part(nil) }

func fullObjects(objects []*object) []*unstructured.Unstructured { return parts(objects, nil) }

// parts returns at least the parts of objects that a shape describes.
func parts(objects []*object, shape *pack.Shape) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, len(objects))
	for n, o := range objects {
		all[n] = o.source.Part(shape)
	}

	return all
}

// isHeld reports whether u has a mark, readable or not. A mark copied from another object does not
// count.
func isHeld(u *unstructured.Unstructured) bool {
	h, err := hold.Of(u)

	return err != nil && !hold.HoldsNothing(u, err) || h != nil
}

func controls(xr, u *object) bool { return u.controller != "" && u.controller == xr.uid }
