package restoreitem

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestAdoptNumbersRevisions(t *testing.T) {
	began := metav1.NewTime(time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC))
	composition := xptest.Composition(xptest.CompositionName, xptest.XR("x"), xptest.UID("live"))
	of := func(restore string, created time.Time) *unstructured.Unstructured {
		u := xptest.With(composition, xptest.Labelled("velero.io/backup-name", "nightly"), xptest.Labelled(xp.LabelRestore, restore))
		u.SetCreationTimestamp(metav1.NewTime(created))

		return u
	}
	restored := of("again", began.Time)
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
		"WithItsComposition": {reason: "Crossplane creates another revision 1 of the Composition.", live: live(restored), item: numbered(int64(1)), want: int64(2)},
		"Later":              {reason: "Restored revisions keep their order.", live: live(restored), item: numbered(int64(7)), want: int64(14)},
		"TooHigh":            {reason: "Twice this number overflows.", live: live(restored), item: numbered(int64(math.MaxInt64)), want: int64(math.MaxInt64)},
		"CompositionLive":    {reason: "Live XRs follow the revisions of a live Composition.", live: live(composition), item: numbered(int64(7)), want: int64(-7)},
		"RestoredBefore": {
			reason: "XRs that the first restore of the backup brought are live now, and the Composition has new revisions.",
			live:   live(of("first", began.Time)), item: numbered(int64(7)), want: int64(-7),
		},
		"RestoredBeforeByTheSameName": {
			reason: "The name of a Restore that is deleted can be used again.",
			live:   live(of("again", began.Add(-time.Second))), item: numbered(int64(7)), want: int64(-7),
		},
		"WithoutComposition": {
			reason: "When a user applies the Composition later, Crossplane takes control of the revision, and live XRs would follow it.",
			live:   live(), item: numbered(int64(7)), want: int64(-7),
		},
		"OfNone": {reason: "Its Composition was not live in the backup.", live: live(restored), item: xptest.With(numbered(int64(7)), xptest.Without("metadata", "ownerReferences")), want: int64(-7)},
		"Labelled": {
			reason: "Crossplane finds the Composition by a label.", live: live(restored),
			item: xptest.With(numbered(int64(7)), xptest.Labelled(xp.LabelCompositionName, "other")), want: int64(-7),
		},
		"Zero":       {reason: "If its content comes back, Crossplane takes 0 for the newest, and tries to create it again for ever.", live: live(composition), item: numbered(int64(0)), want: int64(-1)},
		"ZeroOfOwn":  {reason: "No number is between 0 and the first.", live: live(restored), item: numbered(int64(0)), want: int64(-1)},
		"Negative":   {reason: "No XR followed it in the backup.", live: live(restored), item: numbered(int64(-3)), want: int64(-3)},
		"Unreadable": {reason: "With an unreadable number it is unknown which XRs would follow the revision.", live: live(), item: numbered("1"), failed: true},
		"NoNumber": {
			reason: "The API server refuses a revision without a number.", live: live(),
			item: xptest.With(numbered(int64(1)), xptest.Without("spec", "revision")), want: nil,
		},
		"NoAnswer": {reason: "Without an answer it is unknown whether XRs would follow the revision.", live: failingCluster(errAPI), item: numbered(int64(1)), failed: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			restore := restoreOf(nil)
			restore.Name, restore.Spec.BackupName, restore.CreationTimestamp = "again", "nightly", began
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
			if diff := cmp.Diff(tc.item.GetLabels(), out.object.GetLabels(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("XRs select revisions by label. -want, +got:\n%s", diff)
			}
		})
	}
}
