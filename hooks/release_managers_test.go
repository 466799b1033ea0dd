package hooks

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// managedBy returns an object created an hour ago, with a managedFields entry of manager at that
// time plus after.
func managedBy(u *unstructured.Unstructured, manager string, after time.Duration) *unstructured.Unstructured {
	u = u.DeepCopy()
	created := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	written := metav1.NewTime(created.Add(after))
	u.SetCreationTimestamp(created)
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: u.GetAPIVersion(), Time: &written,
		FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{}}`)},
	}})

	return u
}

func TestReleaseSaysWhichManagersAreLost(t *testing.T) {
	left := newLeftTree("1")
	const xr, claim = "XOrder x1", "OrderClaim team-a/o1"
	type want struct {
		results map[string]report.Result
		lost    []string
	}
	cases := map[string]struct {
		reason           string
		objects          []*unstructured.Unstructured
		of               releaseArgs
		wantReason, next string
		want             want
	}{
		"Released": {
			reason:     "The field managers differ from the backup.",
			objects:    []*unstructured.Unstructured{left.claim, managedBy(left.xr, "velero-server", 0), left.mr, left.revision},
			wantReason: reasonManagersLost, next: nextManagersLost,
			want: want{results: map[string]report.Result{xr: report.Released, claim: report.Released}, lost: []string{xr}},
		},
		"Restored": {
			reason:  "Another manager owns the fields, so the restore wrote the managers back.",
			objects: []*unstructured.Unstructured{managedBy(left.claim, "kubectl", 0), managedBy(left.xr, "argocd-controller", 0), left.mr, left.revision},
			want:    want{results: map[string]report.Result{xr: report.Released, claim: report.Released}},
		},
		"DryRun": {
			reason:  "The managers can still come back before the release.",
			objects: []*unstructured.Unstructured{managedBy(left.claim, "velero-server", time.Second), left.xr, left.mr, left.revision},
			of:      releaseArgs{dryRun: true}, wantReason: reasonManagersMissing, next: nextManagersMissing,
			want: want{results: map[string]report.Result{xr: report.WouldRelease, claim: report.WouldRelease}, lost: []string{claim}},
		},
		"StillHeld": {
			reason:  "A held object has lost nothing yet; a second restore brings its managers back.",
			objects: []*unstructured.Unstructured{managedBy(left.claim, "velero-server", 0), left.xr, left.revision},
			want:    want{results: map[string]report.Result{xr: report.StillHeld, claim: report.StillHeld}},
		},
		"Forced": {
			reason:  "A forced release loses the managers too.",
			objects: []*unstructured.Unstructured{left.claim, managedBy(left.xr, "velero-server", 0), left.revision},
			of:      releaseArgs{force: true, yes: true}, wantReason: reasonManagersLost, next: nextManagersLost,
			want: want{results: map[string]report.Result{xr: report.Forced, claim: report.Released}, lost: []string{xr}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			got.results = map[string]report.Result{}
			for _, r := range newServer(tc.objects...).release(t, tc.of).releases {
				got.results[r.Object.String()] = r.Result
				if tc.wantReason != "" && strings.Contains(r.Reason, tc.wantReason) && strings.Contains(r.Next, tc.next) {
					got.lost = append(got.lost, r.Object.String())
				}
				for _, said := range []string{reasonManagersLost, reasonManagersMissing} {
					if said != tc.wantReason && strings.Contains(r.Reason, said) {
						t.Errorf("%s\n%s: %s", tc.reason, r.Object, r.Reason)
					}
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			of := tc.of
			of.format = printer.Table
			flat := strings.Join(strings.Fields(newServer(tc.objects...).release(t, of).out), " ")
			if tc.wantReason != "" && (!strings.Contains(flat, tc.wantReason) || !strings.Contains(flat, tc.next)) {
				t.Errorf("%s\nthe table lacks the reason or the next step:\n%s", tc.reason, flat)
			}
		})
	}
}
