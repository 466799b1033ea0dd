package adoption

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An observedObject caches what planning reads of an object often, or computes expensively.
type observedObject struct {
	xp.Ref

	uid types.UID
	// controller is the UID of its controller; "" if it has none.
	controller types.UID
	version    string
	// composite means that it is an XR, marked that it is an MR with a mark, publishes that it is
	// an MR that publishes connection details.
	composite, claim, marked, publishes, paused bool
	// selects means that it is an XR or claim that selects its revision by labels.
	selects bool
	// hold and err are the result of Key.HoldOf.
	hold *hold.Hold
	err  error
	// secret is its connection secret, bound the claim of an XR or the XR of a claim, revision the
	// CompositionRevision of an XR; zero for none.
	secret, bound, revision xp.Ref
}

// observe reads an object. A panic becomes err. An object that a hold pauses but that can't be
// marked counts as held: else it would stay paused for ever.
func (s *Snapshot) observe(u *unstructured.Unstructured) (f *observedObject) {
	defer func() {
		if cause := recover(); cause != nil {
			f = &observedObject{Ref: xp.RefTo(u), err: fmt.Errorf("cannot read %s, because of a defect of this plugin (%v)", xp.String(u), cause)}
		}
	}()
	f = &observedObject{
		Ref: xp.RefTo(u), uid: u.GetUID(), version: u.GetResourceVersion(), composite: xp.IsComposite(u), claim: xp.IsClaim(u), marked: hold.IsMarked(u),
		publishes: xp.Publishes(u), paused: xp.IsPaused(u),
	}
	f.selects = (f.composite || f.claim) && (xp.Instance{Unstructured: u}).RevisionSelector() != nil
	f.hold, f.err = s.key.HoldOf(u)
	if c, ok := xp.Controller(u); ok {
		f.controller = c.UID
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
	if f.hold == nil && f.err == nil && s.investigation != nil && s.investigation.Unmarked(f.uid) && hold.HasPaused(u) {
		f.hold = s.missingHold(u, s.investigation.Restore)
	}

	return f
}

func (f *observedObject) identity() *unstructured.Unstructured {
	return xp.IdentityOnly(f.Ref, f.uid, f.version)
}

// holdOf is Key.HoldOf for an object of the Snapshot, which has read each mark once. The caller must
// not change the hold.
func (s *Snapshot) holdOf(u *unstructured.Unstructured) (*hold.Hold, error) {
	if f := s.observed[xp.RefTo(u).ID()]; f != nil {
		return f.hold, f.err
	}

	return nil, nil //nolint:nilnil // No hold is no error.
}
