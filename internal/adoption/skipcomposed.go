package adoption

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// waitingPrefix begins the report of what a held object waits for. stuckPrefix begins
// Hold.LastReported if the report says that no reconcile is to be expected.
const (
	waitingPrefix = "not adopted yet, waiting for "
	stuckPrefix   = "stuck:"
)

// SkipComposed makes the Snapshot plan for some XRs without their composed resources: those whose
// waiting has been reported after a full Plan, and on which Crossplane has not reported since.
// Composed resources, of which there may be tens of thousands, can't help them. isDown is called if
// there is such an XR; it reports whether no Crossplane is known to run.
func (s *Snapshot) SkipComposed(isDown func() bool) {
	s.invalidateAll()
	s.crossplaneDown = isDown
}

// skipsComposed reports whether the XR f is planned for without its composed resources.
func (s *Snapshot) skipsComposed(f *observedObject) bool {
	if s.crossplaneDown == nil || !f.composite || f.hold == nil || !strings.HasPrefix(f.hold.Reason, waitingPrefix) {
		return false
	}
	if f.hold.Clone != "" || f.hold.Quarantine || f.hold.ownPause() || f.deleting {
		return false
	}

	return !f.reported && s.crossplaneDown()
}

// unreportedClaim returns the claim of an XR that is planned for without its composed resources,
// until the reason for the missing reconcile is reported. The claim has the report too, for users
// who can't read XRs.
func (f *observedObject) unreportedClaim() []xp.Ref {
	if f.bound == (xp.Ref{}) || strings.HasPrefix(f.hold.LastReported, stuckPrefix) {
		return nil
	}

	return []xp.Ref{f.bound}
}

// planWithoutComposed plans for an XR without its composed resources, by the latest report.
func (t *tree) planWithoutComposed(u *unstructured.Unstructured) Plan {
	if xp.IsPaused(u) {
		t.checkSeen(u)
	} else {
		t.checkReconciled(u)
	}
	t.plan.WithoutComposed = true
	report, pending := strings.TrimPrefix(t.hold.Reason, waitingPrefix), t.plan.Waiting[0]
	if !strings.Contains(report, pending.Text) {
		report += "; " + pending.String()
	}
	t.plan.Waiting[0] = reason.Message{Text: report}

	return t.plan
}

// Named returns the Plan with the reason why s is not reconciled.
func (p Plan) Named(s PendingReconcile, why reason.Message) Plan {
	p.Waiting, p.Stuck = slices.Clone(p.Waiting), true
	named := why.About(s.Waiting.Text)
	switch n := slices.Index(p.Waiting, s.Waiting); {
	case n >= 0:
		p.Waiting[n] = named
	case p.WithoutComposed && !strings.Contains(p.Waiting[0].Text, s.Waiting.Text+": "):
		p.Waiting[0].Text = strings.Replace(p.Waiting[0].Text, s.Waiting.String(), named.String(), 1)
	}

	return p
}
