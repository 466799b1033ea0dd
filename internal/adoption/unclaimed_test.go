package adoption

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// An adopted XR whose claim has another XR is reported.
func TestNextUnclaimed(t *testing.T) {
	claim := xptest.Claim("o")
	mr := xptest.MR("b")
	x := xptest.XR("x", xptest.ClaimedBy(claim), xptest.Refs(mr), xptest.Reconciled(), xptest.Labelled(xp.LabelRestore, "monday"))
	mr = xptest.With(mr, xptest.ControlledBy(x), xptest.Reconciled())
	cases := map[string]struct {
		reason string
		claim  *unstructured.Unstructured
		want   bool
	}{
		"Another": {reason: "The claim bound another XR first.", claim: xptest.With(claim, xptest.OfXR(xptest.XR("other"))), want: true},
		"Own":     {reason: "The claim has this XR.", claim: xptest.With(claim, xptest.OfXR(x))},
		"None":    {reason: "The claim does not exist."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := NewSnapshot(Unverified)
			w.AddRestored(x)
			w.AddRestored(mr)
			if tc.claim != nil {
				w.Add(tc.claim)
			}
			yes := func(xp.Ref) bool { return true }
			w.Investigate(Investigation{
				Requester: Requester{Restore: "velero/monday"}, Label: "monday", Requested: func(xp.ID) bool { return true }, Listed: yes, Whole: yes,
				Released: func(types.UID) bool { return true },
				Unmarked: func(types.UID) bool { return false },
			})
			p := Next(w, xp.RefTo(x))
			if got := strings.Contains(p.Failed.String(), "other"); got != tc.want || p.Done == tc.want {
				t.Errorf("%s\n%+v", tc.reason, p)
			}
		})
	}
}
