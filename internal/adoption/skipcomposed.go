package adoption

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// waitingPrefix is what comes before what a held object waits for in what is told of it, and
// stuckPrefix what the mark of one begins with of which somebody was told that no word of it comes.
const (
	waitingPrefix = "not adopted yet, waiting for "
	stuckPrefix   = CauseStuck + ":"
)

// SkipComposed has those XRs be planned for by themselves of which somebody was told, after all
// that belongs to them was looked at, what they wait for, and of which Crossplane has still said
// nothing. Nothing of what they compose can help them, and of that there may be tens of thousands.
// The function, which is called if there is such an XR, says whether that is so: no Crossplane is
// known to run.
func (s *Snapshot) SkipComposed(silent func() bool) {
	s.invalidateAll()
	s.silent = silent
}

// skipsComposed reports whether an XR is one that can be planned for by itself.
func (s *Snapshot) skipsComposed(f *observedObject) bool {
	if s.silent == nil || !f.composite || f.hold == nil || !strings.HasPrefix(f.hold.Reason, waitingPrefix) {
		return false
	}
	if f.hold.Clone != "" || f.hold.Quarantine || f.hold.ownPause() || f.deleting {
		return false
	}

	return !f.heard && s.silent()
}

// unreportedClaim returns the claim of an XR that is planned for by itself, until somebody was told
// why no word of the XR comes: that is told of the claim too, where those look who may not see XRs.
func (f *observedObject) unreportedClaim() []xp.Ref {
	if f.bound == (xp.Ref{}) || strings.HasPrefix(f.hold.LastReported, stuckPrefix) {
		return nil
	}

	return []xp.Ref{f.bound}
}

// planWithoutComposed plans for an XR by itself: it waits for what it did when somebody was told.
func (t *tree) planWithoutComposed(u *unstructured.Unstructured) Plan {
	if xp.IsPaused(u) {
		t.checkSeen(u)
	} else {
		t.checkReconciled(u)
	}
	t.plan.WithoutComposed = true
	told, word := strings.TrimPrefix(t.hold.Reason, waitingPrefix), t.plan.Waiting[0]
	if !strings.Contains(told, word) {
		told += "; " + word
	}
	t.plan.Waiting[0] = told

	return t.plan
}

// Named is the Plan if it says why no word comes of an object that waits for one.
func (p Plan) Named(s PendingReconcile, why string) Plan {
	p.Waiting, p.Causes = slices.Clone(p.Waiting), append(slices.Clone(p.Causes), CauseStuck)
	switch n := slices.Index(p.Waiting, s.Waiting); {
	case n >= 0:
		p.Waiting[n] += ": " + why
	case p.WithoutComposed && !strings.Contains(p.Waiting[0], s.Waiting+": "):
		p.Waiting[0] = strings.Replace(p.Waiting[0], s.Waiting, s.Waiting+": "+why, 1)
	}

	return p
}
