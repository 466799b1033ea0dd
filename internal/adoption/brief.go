package adoption

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// waitingFor is what comes before what a held object waits for in what is told of it, and toldStuck what the mark of one begins with of which somebody was told
// that no word of it comes.
const (
	waitingFor = "not adopted yet, waiting for "
	toldStuck  = CauseStuck + ":"
)

// Brief has those XRs be planned for by themselves of which somebody was told, after all that belongs to them was looked at, what they wait for, and of which
// Crossplane has still said nothing. Nothing of what they compose can help them, and of that there may be tens of thousands. The function, which is called
// if there is such an XR, says whether that is so: no Crossplane is known to run.
func (w *World) Brief(silent func() bool) {
	w.noteAll()
	w.silent = silent
}

// isBrief tells whether an XR is one that can be planned for by itself.
func (w *World) isBrief(f *fact) bool {
	if w.silent == nil || !f.composite || f.hold == nil || !strings.HasPrefix(f.hold.Reason, waitingFor) {
		return false
	}
	if f.hold.Clone != "" || f.hold.Quarantine || f.hold.ownPause() || f.deleting {
		return false
	}

	return !f.heard && w.silent()
}

// untold returns the claim of an XR that is planned for by itself, until somebody was told why no word of the XR comes: that is told of the claim too, where
// those look who may not see XRs.
func (f *fact) untold() []xp.Ref {
	if f.bound == (xp.Ref{}) || strings.HasPrefix(f.hold.Told, toldStuck) {
		return nil
	}

	return []xp.Ref{f.bound}
}

// brief plans for an XR by itself: it waits for what it did when somebody was told.
func (t *tree) brief(u *unstructured.Unstructured) Plan {
	if xp.IsPaused(u) {
		t.checkSeen(u)
	} else {
		t.checkReconciled(u)
	}
	t.plan.Brief = true
	told, word := strings.TrimPrefix(t.hold.Reason, waitingFor), t.plan.Waiting[0]
	if !strings.Contains(told, word) {
		told += "; " + word
	}
	t.plan.Waiting[0] = told

	return t.plan
}

// Named is the Plan if it says why no word comes of an object that waits for one.
func (p Plan) Named(s Silence, why string) Plan {
	p.Waiting, p.Causes = slices.Clone(p.Waiting), append(slices.Clone(p.Causes), CauseStuck)
	switch n := slices.Index(p.Waiting, s.Waiting); {
	case n >= 0:
		p.Waiting[n] += ": " + why
	case p.Brief && !strings.Contains(p.Waiting[0], s.Waiting+": "):
		p.Waiting[0] = strings.Replace(p.Waiting[0], s.Waiting, s.Waiting+": "+why, 1)
	}

	return p
}
