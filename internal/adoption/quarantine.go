package adoption

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// quarantined returns the Plan for an object in quarantine: no change.
func quarantined(h *hold.Hold) Plan {
	return Plan{Total: len(h.Refs), Quarantine: reason.Message{Text: h.Reason}}
}

// awaitQuarantineEnd waits until a user ends the quarantine of an object that belongs to an XR.
func (t *tree) awaitQuarantineEnd(r xp.Ref, h *hold.Hold) {
	t.waitFor(r, false, reason.Quarantined.Messagef("%s: it is in quarantine; %s", r, hold.QuarantineNext(h)))
	t.plan.Quarantine = t.plan.Waiting[len(t.plan.Waiting)-1]
}

// quarantinePlan returns the Plan for an object in quarantine. Its only changes put the hold on
// again on what belongs to it and was created without its hold.
func (s *Snapshot) quarantinePlan(u *unstructured.Unstructured, h *hold.Hold) Plan {
	if !xp.IsComposite(u) {
		return quarantined(h)
	}
	t := tree{snapshot: s, xr: xp.CompositeFrom(u), hold: h, plan: quarantined(h)}
	for _, r := range h.Refs {
		t.holdBelow(r, s.Get(r))
	}
	if claim := s.claimOf(t.xr); claim != nil {
		t.holdBelow(xp.RefTo(claim), claim)
	}

	return t.plan
}
