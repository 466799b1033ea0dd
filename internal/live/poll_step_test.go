package live

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// The result of a step decides whether a refusal is reported.
func TestStep(t *testing.T) {
	xr := xptest.XR("x")
	gr := xorders.GroupResource()
	cases := map[string]struct {
		reason         string
		err            error
		taken, refused bool
	}{
		"Taken":    {reason: "The API server accepts the step.", taken: true},
		"Conflict": {reason: "A conflict makes the poll observe the object again.", err: apierrors.NewConflict(gr, "x", errDown)},
		"Gone":     {reason: "A deletion is no refusal, so the poll observes the object again.", err: apierrors.NewNotFound(gr, "x")},
		"Refused":  {reason: "An admission policy can refuse the step each time.", err: apierrors.NewForbidden(gr, "x", errors.New("no team label")), refused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(xr)
			if tc.err != nil {
				s.failOn("patch", "*", 1, tc.err)
			}
			step := &task{ref: xp.RefTo(xr)}
			target := s.get(t, xorders, "", "x")
			step.plan(adoption.Change{Target: target, Patch: adoption.RequestReconcile(target, time.Now()), Step: "ask"})
			newFastAdopter(s).step(t.Context(), newObserver(s.cluster(), adoption.Unverified, selector, nil), step)
			if step.taken != tc.taken || (step.refusal != nil) != tc.refused {
				t.Errorf("%s\ntaken: %t, refused: %v", tc.reason, step.taken, step.refusal)
			}
		})
	}
}

// Temporary states get no notice. A failed operation is not polled again, so its failure is
// reported at once.
func TestTemporary(t *testing.T) {
	r := xp.RefTo(xptest.XR("x"))
	begun := []adoption.PendingReconcile{{Waiting: reason.Message{Text: "a word"}, Since: time.Now(), Begun: true}}
	waitsFor := func(code reason.Code) adoption.Plan {
		return adoption.Plan{Waiting: []reason.Message{code.Messagef("a word")}}
	}
	cases := map[string]struct {
		reason      string
		first, last adoption.Plan
		want        bool
	}{
		"Same":         {reason: "The XR has waited for the same cause from the start.", first: waitsFor("A"), last: waitsFor("A")},
		"Another":      {reason: "The new cause may pass in a moment.", first: waitsFor("A"), last: waitsFor("B"), want: true},
		"UnderWay":     {reason: "Crossplane has just begun to reconcile the XR.", last: adoption.Plan{Waiting: []reason.Message{{Text: "a word"}}, Pending: begun}, want: true},
		"Failed":       {reason: "A failure does not pass.", first: waitsFor("A"), last: adoption.Plan{Failed: reason.Message{Text: "it is being deleted"}}},
		"FailedAtOnce": {reason: "An early failure does not pass either.", first: adoption.Plan{Failed: reason.Message{Text: "it is being deleted"}}, last: adoption.Plan{Failed: reason.Message{Text: "it is being deleted"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			first := tc.first
			if tc.last.Pending != nil {
				first = tc.last
			}
			p := &poll{Adopter: &Adopter{cluster: NewCluster(nil, nil), stuckAfter: time.Hour}, plans: map[xp.ID]adoption.Plan{r.ID(): tc.last}, initial: map[xp.ID]string{r.ID(): first.Fingerprint()}}
			if got := p.temporary()[r.ID()]; got != tc.want {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
}
