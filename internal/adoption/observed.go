package adoption

import (
	"fmt"
	"hash/maphash"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An observedObject is what planning asks of an object again and again, what takes long to find
// out, and what is asked of thousands without looking at one of them.
type observedObject struct {
	xp.Ref

	uid types.UID
	// controller is the UID of its controller, "" if it has none.
	controller types.UID
	// version is that of the object when it was found out, and mark what its mark was then.
	version string
	mark    uint64
	// key signs its mark.
	key Key
	// composite says that it is an XR, marked that it is an MR with a mark, and publishes that it
	// is one that publishes connection details.
	composite, claim, marked, publishes bool
	// heard says that Crossplane has said something of it as it is now.
	paused, deleting, heard bool
	// hold and err are what HoldOf says.
	hold *Hold
	err  error
	// secret, bound and revision are its connection secret, the claim of an XR or the XR of a
	// claim, and the CompositionRevision of an XR; zero if it names none.
	secret, bound, revision xp.Ref
}

// seed is that of the hashes of marks.
var seed = maphash.MakeSeed() //nolint:gochecknoglobals // All that are compared have the same.

// newObservedObject finds out what there is to know of an object. Its mark counts if it was signed
// with the key.
func newObservedObject(u *unstructured.Unstructured, key Key) (f *observedObject) {
	defer func() {
		if cause := recover(); cause != nil {
			f = &observedObject{Ref: xp.RefTo(u), err: fmt.Errorf("cannot read %s, because of a defect of this plugin (%v)", xp.String(u), cause)}
		}
	}()
	f = &observedObject{
		Ref: xp.RefTo(u), uid: u.GetUID(), version: u.GetResourceVersion(), key: key, composite: xp.IsComposite(u), claim: xp.IsClaim(u), marked: IsMarked(u),
		publishes: xp.Publishes(u), paused: xp.IsPaused(u), deleting: u.GetDeletionTimestamp() != nil,
	}
	f.mark = maphash.String(seed, xp.Annotation(u, AnnotationHold))
	f.hold, f.err = key.HoldOf(u)
	if c, ok := xp.Controller(u); ok {
		f.controller = c.UID
	}
	if f.paused {
		f.heard = isSeenPaused(u)
	} else {
		_, f.heard = reconciled(u)
	}
	f.secret, _ = xp.SecretRef(u)
	if c := xp.CompositeFrom(u); f.composite {
		f.bound, _ = c.ClaimRef()
		if c.Revision() != "" {
			f.revision = revisionRef(c)
		}
	}
	if f.claim {
		f.bound, _ = xp.ClaimFrom(u).CompositeRef()
	}
	for _, r := range []*xp.Ref{&f.Ref, &f.secret, &f.bound, &f.revision} {
		*r = owned(*r)
	}
	f.uid, f.controller = types.UID(strings.Clone(string(f.uid))), types.UID(strings.Clone(string(f.controller)))
	f.version = strings.Clone(f.version)

	return f
}

// identity returns who it is of.
func (f *observedObject) identity() *unstructured.Unstructured {
	return xp.IdentityOnly(f.Ref, f.uid, f.version)
}

// isOf reports whether it is what there is to know of an object.
func (f *observedObject) isOf(u *unstructured.Unstructured) bool {
	return f.version == u.GetResourceVersion() && f.mark == maphash.String(seed, xp.Annotation(u, AnnotationHold))
}

// observedOf returns what is known of an object as it is now. Nobody may change the hold in it.
func (s *Snapshot) observedOf(u *unstructured.Unstructured) *observedObject {
	id := xp.RefTo(u).ID()
	if f := s.observedObjects[id]; f != nil && f.isOf(u) {
		return f
	}
	f := s.addObserved(u)
	if s.packer == nil {
		s.observedObjects[id] = f
	}

	return f
}

// addObserved finds out what there is to know of an object. What is paused by a hold and can't be
// marked is held all the same: it would be paused for ever.
func (s *Snapshot) addObserved(u *unstructured.Unstructured) *observedObject {
	f := newObservedObject(u, s.key)
	if f.hold == nil && f.err == nil && s.investigation != nil && s.investigation.Unmarked(f.uid) && isOurPause(u) {
		f.hold = s.missingHold(u, s.investigation.Restore)
	}

	return f
}

// observedObject returns what is known of an object that is not only looked at; nil if there is
// none.
func (s *Snapshot) observed(id xp.ID) *observedObject {
	if s.packer != nil {
		return s.observedObjects[id]
	}
	if u := s.objects[id]; u != nil {
		return s.observedOf(u)
	}

	return nil
}

// each calls a function with what is known of each object that is not only looked at, in no order.
func (s *Snapshot) each(do func(f *observedObject)) {
	if s.packer != nil {
		for _, f := range s.observedObjects {
			do(f)
		}

		return
	}
	for _, u := range s.objects {
		do(s.observedOf(u))
	}
}

// holdOf is HoldOf for what was observed, without reading the same mark again.
func (s *Snapshot) holdOf(u *unstructured.Unstructured) (*Hold, error) {
	if s.packer != nil && isOnlyLookedAt(u) {
		return nil, nil //nolint:nilnil // No hold is no error.
	}
	f := s.observedOf(u)

	return f.hold, f.err
}
