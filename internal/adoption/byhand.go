package adoption

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// With manual release an object gets as far as it can without being released: it waits for what it
// needs, MRs with observe-first are observed, and Secrets get their controllers. Then a user
// releases it, and not the restore.
const (
	waitReady      = "%s: it waits for nothing but a user who releases it; run: %s"
	waitComposedXR = "%s: this composed XR stays held until a user releases it; run: %s"
)

// isReadyForRelease reports whether an XR waits for nothing any more, not even for a user. It plans
// the changes to the XR's connection secret that must come first.
func (t *tree) isReadyForRelease(u *unstructured.Unstructured) bool {
	return len(t.plan.Waiting) == 0 && t.plan.Failed.IsZero() && !t.takeSecret(u) && !t.awaitUser(xp.RefTo(u), t.hold)
}

// awaitUser waits for a user and returns true, if a user is to release what r names.
func (t *tree) awaitUser(r xp.Ref, h *hold.Hold) bool {
	if h.ByHand {
		t.waitForUser(waitReady, r, h)
	}

	return h.ByHand
}

func (t *tree) waitForUser(format string, r xp.Ref, h *hold.Hold) {
	t.waitFor(r, false, reason.AwaitingUser.Messagef(format, r, xp.ReleaseOf(h.Restore)))
	t.userWaits++
}

// waitsForUserOnly returns the Plan with Ready set to whether it waits only for a user.
func (t *tree) waitsForUserOnly(p Plan) Plan {
	p.Ready = t.userWaits > 0 && t.userWaits == len(p.Waiting) && p.Patch == nil && len(p.Also) == 0 && p.Failed.IsZero()

	return p
}

// planManual returns the Plan for an object that waits for nothing, or only for a user; p is the
// Plan if it waits for nothing.
func (s *Snapshot) planManual(u *unstructured.Unstructured, h *hold.Hold, p Plan) Plan {
	t := tree{snapshot: s}
	if t.awaitUser(xp.RefTo(u), h) {
		return t.waitsForUserOnly(t.plan)
	}

	return p
}

// Consent changes the observed mark of what r names as if a user had agreed to its adoption. It
// does nothing if the hold awaits no consent.
func (s *Snapshot) Consent(r xp.Ref) {
	u := s.Get(r)
	if u == nil {
		return
	}
	mark, ok := s.key.Consented(u)
	if !ok {
		return
	}
	u = u.DeepCopy()
	xp.Annotate(u, hold.Annotation, mark)
	s.keep(r.ID(), u, true)
}
