package restoreitem

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestAdoptRaisesRevisions(t *testing.T) {
	c := live()
	c.rankErr = errAPI
	out := adopt(t, c, xptest.Revision("r", xptest.XR("x")), restoreOf(nil))
	if diff := cmp.Diff(errAPI, out.err, cmpopts.EquateErrors()); diff != "" || c.asked[len(c.asked)-1] != "outrank CompositionRevision r" {
		t.Errorf("without an answer the revision must not come back: asked %v, error %v", c.asked, out.err)
	}
	if out := adopt(t, c, xptest.XR("x"), restoreOf(nil)); out.err != nil {
		t.Errorf("only revisions have a rank: %v", out.err)
	}
}

func TestAdoptNumbersRevisions(t *testing.T) {
	composition := xptest.Composition(xptest.CompositionName, xptest.XR("x"), xptest.UID("live"))
	numbered := func(n any) *unstructured.Unstructured {
		return xptest.Revision("r", xptest.XR("x"), xptest.ControlledBy(composition), xptest.Field(n, "spec", "revision"))
	}
	cases := map[string]struct {
		reason string
		live   *cluster
		item   *unstructured.Unstructured
		want   any
		failed bool
	}{
		"WithItsComposition": {reason: "Crossplane creates another revision 1 of the Composition.", live: live(), item: numbered(int64(1)), want: int64(2)},
		"Later":              {reason: "Restored revisions keep their order.", live: live(), item: numbered(int64(7)), want: int64(14)},
		"CompositionRestored": {
			reason: "Velero restored the Composition before the revision.",
			live:   live(xptest.With(composition, xptest.Labelled("velero.io/backup-name", "nightly"))), item: numbered(int64(2)), want: int64(4),
		},
		"CompositionRestoredBefore": {
			reason: "Crossplane has numbered new revisions since then.",
			live:   live(xptest.With(composition, xptest.Labelled("velero.io/backup-name", "weekly"))), item: numbered(int64(2)), want: int64(2),
		},
		"TooHigh":         {reason: "Twice this number overflows.", live: live(), item: numbered(int64(math.MaxInt64)), want: int64(math.MaxInt64)},
		"CompositionLive": {reason: "Crossplane has numbered the revisions of a live Composition.", live: live(composition), item: numbered(int64(1)), want: int64(1)},
		"Unreadable":      {reason: "With an unreadable number the newest revision is unknown.", live: live(), item: numbered("1"), failed: true},
		"NoNumber": {
			reason: "A revision without a number must not get one.", live: live(),
			item: xptest.With(numbered(int64(1)), xptest.Without("spec", "revision")), want: nil,
		},
		"Negative": {reason: "Twice a negative number is lower.", live: live(), item: numbered(int64(-1)), want: int64(-1)},
		"None":     {reason: "A revision without a number has no rank.", live: live(), item: xptest.Revision("r", xptest.XR("x")), want: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			restore := restoreOf(nil)
			restore.Spec.BackupName = "nightly"
			out := adopt(t, tc.live, tc.item, restore)
			if failed := out.err != nil; failed || tc.failed {
				if failed != tc.failed {
					t.Errorf("%s got %v", tc.reason, out.err)
				}

				return
			}
			got, _, _ := unstructured.NestedFieldNoCopy(out.object.Object, "spec", "revision")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
