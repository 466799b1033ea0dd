package diagnosis

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// After a hold was taken off and the XR composed new resources, the cluster shows which Restore it
// was, and which resource replaced which.
func TestValidateNamesWhatARestoreLost(t *testing.T) {
	const back, later, earlier = "2026-01-02T11:00:00Z", "2026-01-02T11:05:00Z", "2026-01-01T11:00:00Z"
	x := xptest.XR("x", xptest.Reconciled())
	bucket := func(name, resource, at string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.MR(name, append([]xptest.Option{
			xptest.ControlledBy(x), xptest.Annotated(xp.AnnotationResourceName, resource), xptest.Field(at, "metadata", "creationTimestamp"), ready("True"),
		}, o...)...)
	}
	restored := xptest.Labelled(xp.LabelRestore, "monday")
	free := xptest.Without("metadata", "ownerReferences")
	cases := map[string]struct {
		reason     string
		lost, anew *unstructured.Unstructured
		want       string
	}{
		"Controlled": {
			reason: "The restore brought the resource back before the XR dropped it.", lost: bucket("b", "r", back, restored), anew: bucket("new", "r", later),
			want: "XOrder x controls it and does not list it; the restore monday brought it back, and XOrder x lists Bucket new in its place, which is newer: Crossplane reconciled the XR " +
				"without its hold",
		},
		"Labelled": {
			reason: "The restore brought the resource back after the XR dropped it.", lost: bucket("b", "r", back, restored, free), anew: bucket("new", "r", later),
			want: "its label names the XR x, and no XR lists it; the restore monday brought it back, and XOrder x lists Bucket new in its place, which is newer: " +
				"Crossplane reconciled the XR without its hold",
		},
		"AnotherPlace": {
			reason: "A resource of another template does not replace the lost one.", lost: bucket("b", "r", back, restored), anew: bucket("new", "other", later),
			want: "XOrder x controls it and does not list it; the restore monday brought it back",
		},
		"Older": {
			reason: "A resource that is older than the restore does not replace the lost one.", lost: bucket("b", "r", back, restored), anew: bucket("new", "r", earlier),
			want: "XOrder x controls it and does not list it; the restore monday brought it back",
		},
		"Restored": {
			reason: "A resource of the same restore does not replace the lost one: it was an orphan in the backup.", lost: bucket("b", "r", back, restored), anew: bucket("new", "r", later, restored),
			want: "XOrder x controls it and does not list it; the restore monday brought it back",
		},
		"NotRestored": {reason: "Without a restore the reason must not mention one.", lost: bucket("b", "r", back), anew: bucket("new", "r", later), want: "XOrder x controls it and does not list it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := NewObjects()
			for _, u := range []*unstructured.Unstructured{xptest.With(x, xptest.Refs(tc.anew)), tc.lost, tc.anew} {
				o.Add(u)
			}
			var got []string
			for _, p := range Validate(o, ClusterState{Now: time.Now()}) {
				if p.Code == reason.Orphaned && p.Object == xp.RefTo(tc.lost) && len(p.Others) == 1 && p.Others[0] == xp.RefTo(x) {
					got = append(got, p.Reason)
				}
			}
			if strings.Join(got, "\n") != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
