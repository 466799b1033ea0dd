package adoption

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// changedFollowing returns a warning if another writer has changed the Composition or the revision
// of a held XR or claim since the backup; else zero. Crossplane changes neither while the object is
// paused. The change takes effect when the hold is lifted, as it would without a restore, and can
// then delete composed resources.
func changedFollowing(u *unstructured.Unstructured, h *hold.Hold) reason.Message {
	if !xp.IsPaused(u) || h.Again {
		return reason.Message{}
	}
	i := xp.Instance{Unstructured: u}
	var changes []string
	for _, c := range []struct{ field, before, now string }{
		{"compositionRef", h.Composition, i.Composition()}, {"compositionRevisionRef", h.Revision, i.Revision()},
	} {
		if c.before != "" && c.now != c.before {
			now := cmp.Or(c.now, "none")
			if hold.NameOf(c.now) != c.now {
				now = "a text that can't be its name"
			}
			changes = append(changes, fmt.Sprintf("its %s from %s to %s", c.field, c.before, now))
		}
	}
	if len(changes) == 0 {
		return reason.Message{}
	}

	return reason.CompositionChanged.Messagef("%s: another writer has changed %s while it was held; %s. After its adoption Crossplane deletes what it does "+
		"not compose any more, with the external resources. To avoid that, change it back", xp.String(u), strings.Join(changes, " and "),
		hold.LastWriterOf(u))
}

// following returns the hold with the update policy of the XR's claim, if the claim is not held any
// more. Crossplane copies this policy to the XR each time that it reconciles the claim. v1 can't
// reconcile a claim again if it has copied the claim's revision to an XR with another policy
// (crossplane internal/controller/apiextensions/claim/syncer_ssa.go).
func (t *tree) following(h *hold.Hold) *hold.Hold {
	claim := t.snapshot.claimOf(t.xr)
	if claim == nil || !h.Pinned || xp.IsPaused(claim) || xp.HasAnnotation(claim, hold.Annotation) {
		return h
	}
	if policy, ok := (xp.Instance{Unstructured: claim}).UpdatePolicy(); ok {
		theirs := *h
		theirs.UpdatePolicy = &policy

		return &theirs
	}

	return h
}

// heldClaim returns the XR's claim and its hold; nil if there is no claim, or it is not held.
func (t *tree) heldClaim() (*unstructured.Unstructured, *hold.Hold) {
	claim := t.snapshot.claimOf(t.xr)
	if claim == nil {
		return nil, nil
	}
	if h, _ := t.snapshot.holdOf(claim); h != nil && !h.Freed { // An unreadable hold is judged with the claim.
		return claim, h
	}

	return nil, nil
}
