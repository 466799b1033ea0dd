package hooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

func TestRestoresOfHolds(t *testing.T) {
	failed, other := report.Restore{Name: "velero/failed", Phase: "Failed"}, report.Restore{Name: "velero/other", Phase: "Completed"}
	survey := &live.Survey{Restores: map[string]report.Restore{failed.Name: failed, other.Name: other}}
	hold := func(restore, phase string) *held {
		return &held{Release: report.Release{Restore: restore, Phase: phase}}
	}
	cases := map[string]struct {
		reason string
		holds  []*held
		asked  string
		want   []report.Restore
	}{
		"Holding": {reason: "The report must name the Restore of a hold.", holds: []*held{hold(failed.Name, failed.Phase)}, want: []report.Restore{failed}},
		"Gone":    {reason: "The report must name the Restore of a hold after its deletion.", holds: []*held{hold("velero/gone", "Gone")}, want: []report.Restore{{Name: "velero/gone", Phase: "Gone"}}},
		"Asked":   {reason: "A requested Restore without holds can have failed.", asked: failed.Name, want: []report.Restore{failed}},
		"Unknown": {reason: "A missing Restore has no known phase.", asked: "velero/unknown", want: []report.Restore{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := (&holds{all: tc.holds}).restores(survey, tc.asked)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
