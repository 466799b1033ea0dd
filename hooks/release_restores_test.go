package hooks

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

func TestReleaseReportsRestores(t *testing.T) {
	failed := report.Restore{Name: "velero/gone", Phase: "Failed"}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		asked   string
		want    []report.Restore
	}{
		"Holding": {reason: "The report must name the Restore of a hold.", objects: append(newLeftTree("1").all(), gone("Failed")), want: []report.Restore{failed}},
		"Gone":    {reason: "The report must name the Restore of a hold after its deletion.", objects: newLeftTree("1").all(), want: []report.Restore{{Name: "velero/gone", Phase: "Gone"}}},
		"Asked":   {reason: "A requested Restore without holds can have failed.", objects: []*unstructured.Unstructured{gone("Failed")}, asked: "gone", want: []report.Restore{failed}},
		"None":    {reason: "A Restore without holds is of no interest.", objects: []*unstructured.Unstructured{gone("Failed")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got report.Report
			if err := json.Unmarshal([]byte(newServer(tc.objects...).release(t, releaseArgs{restore: tc.asked}).out), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Restores, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
