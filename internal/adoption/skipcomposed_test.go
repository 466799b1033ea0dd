package adoption

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// withReport returns u with a report of what it waits for.
func withReport(u *unstructured.Unstructured, withReport string, o ...xptest.Option) *unstructured.Unstructured {
	p, err := Unverified.Explain(u, waitingPrefix+"a word", withReport)
	if err != nil {
		panic(err) // The test is wrong.
	}

	return xptest.With(xptest.Merge(u, p), o...)
}

func stoppedBy(u *unstructured.Unstructured) map[string]any {
	n, err := Unverified.Stopped(u, "it took too long")
	if err != nil {
		panic(err) // The test is wrong.
	}

	return n.Patch
}

// An XR without a reconcile is planned for without its composed resources only if these can't
// matter.
func TestSkipComposed(t *testing.T) {
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")), xptest.Reconciled())
	xr := held(xptest.XR("x", xptest.Refs(bucket)))
	const stuck = stuckPrefix + "1"
	cases := map[string]struct {
		reason string
		xr     *unstructured.Unstructured
		runs   bool
		want   bool
	}{
		"Silent":      {reason: "The composed resources can't make Crossplane reconcile the XR.", xr: withReport(xr, stuck), want: true},
		"Unpaused":    {reason: "The composed resources can't help after the unpause either.", xr: withReport(xr, stuck, unpaused(), xptest.SeenPaused()), want: true},
		"Runs":        {reason: "The cause is unknown while Crossplane runs.", xr: withReport(xr, stuck), runs: true},
		"Unreported":  {reason: "The other causes have not been reported yet.", xr: xr},
		"Waiting":     {reason: "The plan need not have waited for long.", xr: withReport(xr, "1"), want: true},
		"Stopped":     {reason: "The last report explains why the operation stopped.", xr: xptest.Merge(xr, stoppedBy(xr))},
		"SeenPaused":  {reason: "Crossplane has seen the pause, so the plan can continue.", xr: withReport(xr, stuck, xptest.SeenPaused())},
		"Reconciled":  {reason: "Crossplane has reconciled the XR, so the plan can continue.", xr: withReport(xr, stuck, unpaused(), xptest.Reconciled())},
		"Deleting":    {reason: "The XR is being deleted.", xr: withReport(xr, stuck, xptest.Deleting())},
		"OwnPause":    {reason: "A paused XR of the user needs no condition from Crossplane.", xr: withReport(held(xptest.XR("x", xptest.Refs(bucket), xptest.Annotated(xp.AnnotationPaused, "true"))), stuck)},
		"Copy":        {reason: "Only a user can release a copy.", xr: withReport(heldFor(xptest.XR("x", xptest.Refs(bucket)), Hold{Clone: "XOrder y"}), stuck)},
		"Quarantined": {reason: "Only a user can end a quarantine.", xr: withReport(heldFor(xptest.XR("x", xptest.Refs(bucket)), Hold{Quarantine: true}), stuck)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := snapshot(tc.xr)
			w.SkipComposed(func() bool { return !tc.runs })
			r := xp.RefTo(tc.xr)
			plan := Next(w, r)
			if plan.WithoutComposed != tc.want {
				t.Errorf("%s\ngot %+v", tc.reason, plan)
			}
			if !tc.want {
				return
			}
			if plan.Patch != nil || len(plan.Waiting) != 1 || !strings.HasPrefix(plan.Waiting[0].String(), "a word; XOrder x: Crossplane has not ") || len(plan.Pending) != 1 {
				t.Errorf("%s\nThe plan must keep its causes: got %+v", tc.reason, plan)
			}
			if needs := w.Needs([]xp.Ref{r}); len(needs) != 1 || len(w.PlatformNeeds()) > 0 {
				t.Errorf("%s\nNothing else may be needed: got %v, %v", tc.reason, needs, w.PlatformNeeds())
			}
			if notices := Changes(w, map[xp.ID]Plan{r.ID(): plan}, nil); len(notices) > 0 {
				t.Errorf("%s\nThere must be no notice: got %+v", tc.reason, notices)
			}
		})
	}
}

// The latest report stays when the reason for the missing reconcile is added, once.
func TestSkipComposedIsNamed(t *testing.T) {
	const why = "nothing runs"
	xr := withReport(held(xptest.XR("x", xptest.NeverComposed())), "1")
	for range 2 {
		w := snapshot(xr)
		w.SkipComposed(func() bool { return true })
		plan := Next(w, xp.RefTo(xr))
		plan = plan.Named(plan.Pending[0], reason.CrossplaneNotRunning.Messagef(why))
		if want := "a word; XOrder x: Crossplane has not reported yet that it is paused: " + why + " [CrossplaneNotRunning]"; len(plan.Waiting) != 1 || plan.Waiting[0].String() != want {
			t.Errorf("got %q", plan.Waiting)
		}
		notices := Changes(w, map[xp.ID]Plan{xp.RefTo(xr).ID(): plan}, nil)
		h, err := HoldOf(xr)
		if err != nil || (len(notices) == 1) != (h.LastReported == "1") {
			t.Fatalf("last report %s: got %+v, %v", h.LastReported, notices, err)
		}
		if len(notices) == 1 {
			xr = xptest.Merge(xr, notices[0].Patch)
		}
	}
}

// A user who can't read XRs reads the claim.
func TestSkipComposedReportsOnTheClaim(t *testing.T) {
	xr := xptest.XR("x", xptest.NeverComposed())
	claim := withReport(held(xptest.Claim("o", xptest.OfXR(xr))), "1")
	xr = withReport(held(xptest.With(xr, xptest.ClaimedBy(claim))), "1")
	r := xp.RefTo(xr)
	for _, unsaved := range []bool{true, false} {
		w := snapshot(xr, claim)
		w.SkipComposed(func() bool { return true })
		if needs := w.Needs([]xp.Ref{r}); slices.Contains(needs, xp.RefTo(claim)) != unsaved {
			t.Errorf("report pending: %t; needs %v", unsaved, needs)
		}
		plan := Next(w, r)
		notices := Changes(w, map[xp.ID]Plan{r.ID(): plan.Named(plan.Pending[0], reason.Message{Text: "nothing runs"})}, nil)
		if (len(notices) == 2) != unsaved || (len(notices) == 0) == unsaved {
			t.Fatalf("report pending: %t; got %+v", unsaved, notices)
		}
		for _, n := range notices {
			if n.Event != EventStuck {
				t.Errorf("got %+v", n)
			}
			if n.Target.GetKind() == claim.GetKind() {
				claim = xptest.Merge(claim, n.Patch)
			} else {
				xr = xptest.Merge(xr, n.Patch)
			}
		}
	}
}

// The claim reports that its XR is being deleted, whatever was reported before.
func TestDeletionIsReportedOnTheClaim(t *testing.T) {
	xr := xptest.XR("x")
	claim := withReport(held(xptest.Claim("o", xptest.OfXR(xr))), stuckPrefix+"1")
	xr = withReport(held(xptest.With(xr, xptest.ClaimedBy(claim))), stuckPrefix+"1", xptest.Deleting())
	r := xp.RefTo(xr)
	w := snapshot(xr)
	w.SkipComposed(func() bool { return true })
	if needs := w.Needs([]xp.Ref{r}); !slices.Contains(needs, xp.RefTo(claim)) {
		t.Fatalf("needs %v", needs)
	}
	w.Add(claim)
	var got []string
	for _, n := range Changes(w, map[xp.ID]Plan{r.ID(): Next(w, r)}, nil) {
		got = append(got, n.Event+" "+xp.String(n.Target))
	}
	if diff := cmp.Diff([]string{EventStopped + " OrderClaim team-a/o", EventStopped + " XOrder x"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// A stuck object is reported with all that it waits for, and its mark shows that it was.
func TestStuckIsMarked(t *testing.T) {
	xr := held(xptest.XR("x", xptest.NeverComposed()))
	w := snapshot(xr)
	plan := Next(w, xp.RefTo(xr))
	plan.Stuck = true
	notices := Changes(w, map[xp.ID]Plan{xp.RefTo(xr).ID(): plan}, nil)
	if len(notices) != 1 {
		t.Fatalf("got %+v", notices)
	}
	after := xptest.Merge(xr, notices[0].Patch)
	w = snapshot(after)
	w.SkipComposed(func() bool { return true })
	if brief := Next(w, xp.RefTo(after)); !brief.WithoutComposed {
		t.Errorf("got %+v", brief)
	}
	if notices := Changes(snapshot(after), map[xp.ID]Plan{xp.RefTo(xr).ID(): plan}, nil); len(notices) > 0 {
		t.Errorf("the report must come once; got %+v", notices)
	}
}
