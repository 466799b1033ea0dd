package adoption

import (
	"fmt"
	"hash/maphash"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An observedObject caches what planning reads of an object often, or computes expensively.
type observedObject struct {
	xp.Ref

	uid types.UID
	// controller is the UID of its controller; "" if it has none.
	controller types.UID
	// version is the resourceVersion, and mark the hash of the mark, when the rest was computed.
	version string
	mark    uint64
	// key signs its mark.
	key Key
	// composite means that it is an XR, marked that it is an MR with a mark, publishes that it is
	// an MR that publishes connection details.
	composite, claim, marked, publishes bool
	// reported means that its controller has reported on its current generation: that it is paused,
	// or that it was reconciled.
	paused, deleting, reported bool
	// selects means that it is an XR or claim that selects its revision by labels.
	selects bool
	// hold and err are the result of HoldOf.
	hold *Hold
	err  error
	// secret is its connection secret, bound the claim of an XR or the XR of a claim, revision the
	// CompositionRevision of an XR; zero for none.
	secret, bound, revision xp.Ref
}

var seed = maphash.MakeSeed() //nolint:gochecknoglobals // All compared hashes need the same seed.

// newObservedObject reads an object. key verifies its mark. A panic becomes err.
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
	f.selects = (f.composite || f.claim) && (xp.Instance{Unstructured: u}).RevisionSelector() != nil
	f.mark = maphash.String(seed, xp.Annotation(u, AnnotationHold))
	f.hold, f.err = key.HoldOf(u)
	if c, ok := xp.Controller(u); ok {
		f.controller = c.UID
	}
	if f.paused {
		f.reported = IsSeenPaused(u)
	} else {
		_, f.reported = reconciled(u)
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
		*r = cloneRef(*r)
	}
	f.uid, f.controller = types.UID(strings.Clone(string(f.uid))), types.UID(strings.Clone(string(f.controller)))
	f.version = strings.Clone(f.version)

	return f
}

func (f *observedObject) identity() *unstructured.Unstructured {
	return xp.IdentityOnly(f.Ref, f.uid, f.version)
}

// isOf reports whether f was read from u in its current version, and with the same mark.
func (f *observedObject) isOf(u *unstructured.Unstructured) bool {
	return f.version == u.GetResourceVersion() && f.mark == maphash.String(seed, xp.Annotation(u, AnnotationHold))
}

// observedOf returns what is known of u as it is. The caller must not change its hold.
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

// addObserved reads u. An object that a hold pauses but that can't be marked counts as held: else
// it would stay paused for ever.
func (s *Snapshot) addObserved(u *unstructured.Unstructured) *observedObject {
	f := newObservedObject(u, s.key)
	if f.hold == nil && f.err == nil && s.investigation != nil && s.investigation.Unmarked(f.uid) && isHoldPause(u) {
		f.hold = s.missingHold(u, s.investigation.Restore)
	}

	return f
}

// observed returns what is known of an object; nil if it is missing or isOnlyRead.
func (s *Snapshot) observed(id xp.ID) *observedObject {
	if s.packer != nil {
		return s.observedObjects[id]
	}
	if u := s.objects[id]; u != nil {
		return s.observedOf(u)
	}

	return nil
}

// each calls do with each observed object that is not only read, in no order.
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

// holdOf is Key.HoldOf for an observed object. It reads each mark once.
func (s *Snapshot) holdOf(u *unstructured.Unstructured) (*Hold, error) {
	if s.packer != nil && isOnlyRead(u) {
		return nil, nil //nolint:nilnil // No hold is no error.
	}
	f := s.observedOf(u)

	return f.hold, f.err
}
