package adoption

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// leftExternal returns that the provider of an MR, which is being deleted or gone, leaves its
// external resource behind only because the hold makes it observe; the zero Message if it does not.
// Without Delete in managementPolicies a provider takes its finalizer off at once (crossplane-runtime
// pkg/reconciler/managed/reconciler.go, policies.go), so its own policies would come too late.
func (h *Hold) leftExternal(u *unstructured.Unstructured) reason.Message {
	if !h.Observes || h.ownPause() || xp.IsPaused(u) || !xp.OnlyObserves(u) {
		return reason.Message{}
	}
	own := u.DeepCopy()
	h.returnPolicies(own)
	if !xp.MayDelete(own) {
		return reason.Message{}
	}

	return reason.DeletedWhileObserved.Messagef("%s was deleted while it only observed, so its provider leaves its external resource %q behind, and nothing "+
		"manages that. Restore it again when it is gone, and it manages it as before; to delete both, delete it once it is released",
		xp.String(u), xp.Annotation(u, xp.AnnotationExternalName))
}

// leftBehind is what a deleted MR left behind.
type leftBehind struct {
	target *unstructured.Unstructured
	why    reason.Message
}

// keepDeleted records what an MR left behind that does not exist any more. u is its last state. One
// that is not being deleted has only left the listing that was watched.
func (s *Snapshot) keepDeleted(u *unstructured.Unstructured) {
	if u.GetDeletionTimestamp() == nil || !IsMarked(u) {
		return
	}
	h, err := s.key.HoldOf(u)
	if err != nil || h == nil {
		return
	}
	if why := h.leftExternal(u); !why.IsZero() {
		r := cloneRef(xp.RefTo(u))
		s.leftBehind[r.ID()] = leftBehind{target: xp.IdentityOnly(r, u.GetUID(), ""), why: why}
	}
}

// leftBy returns what r left behind, which is not in the cluster any more, if that was seen.
func (s *Snapshot) leftBy(r xp.Ref) reason.Message { return s.leftBehind[r.ID()].why }

// LeftBehind returns the notices about MRs that were deleted while they only observed, in a stable
// order.
func (s *Snapshot) LeftBehind() []Notice {
	var notices []Notice
	for _, l := range s.leftBehind {
		notices = append(notices, Notice{Target: l.target, Event: EventStopped, Message: l.why.String(), Warning: true})
	}
	slices.SortFunc(notices, func(a, b Notice) int { return xp.RefTo(a.Target).Compare(xp.RefTo(b.Target)) })

	return notices
}

// awaitDeleted waits for a composed resource that is being deleted.
func (t *tree) awaitDeleted(r xp.Ref, u *unstructured.Unstructured) {
	if why := t.snapshot.leftExternalOf(u); !why.IsZero() {
		t.waitFor(r, false, why)

		return
	}
	t.waitFor(r, false, reason.BeingDeleted.Messagef("%s: it is being deleted. See what its finalizers wait for, then restore it again", r))
}

// leftExternalOf is leftExternal of the hold of u; the zero Message if there is none.
func (s *Snapshot) leftExternalOf(u *unstructured.Unstructured) reason.Message {
	h, err := s.holdOf(u)
	if err != nil || h == nil || !IsMarked(u) {
		return reason.Message{}
	}

	return h.leftExternal(u)
}
