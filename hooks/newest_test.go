package hooks

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

func TestNewest(t *testing.T) {
	now := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time {
		began := now.Add(-d)

		return &began
	}
	restores := func(all ...report.Restore) map[string]report.Restore {
		byName := map[string]report.Restore{}
		for _, r := range all {
			byName[r.Name] = r
		}

		return byName
	}
	old, young := report.Restore{Name: "velero/old", Started: ago(25 * time.Hour)}, report.Restore{Name: "velero/young", Started: ago(time.Hour)}
	type want struct {
		Name    string
		Reasons []string
	}
	cases := map[string]struct {
		reason   string
		restores map[string]report.Restore
		want     want
	}{
		"Newest": {reason: "The option selects the Restore that began last.", restores: restores(old, young), want: want{Name: "young"}},
		"Late": {
			reason:   "The check must show first that drills have stopped.",
			restores: restores(old), want: want{Name: "old", Reasons: []string{"it is the newest one and began 25h0m0s ago, which is longer than 24h0m0s"}},
		},
		"None": {reason: "The check must fail when no drill ever ran.", want: want{Reasons: []string{"no Restore has begun"}}},
		"NotBegun": {
			reason:   "A queued Restore has no result yet.",
			restores: restores(young, report.Restore{Name: "velero/queued"}), want: want{Name: "young"},
		},
		"Elsewhere": {
			reason:   "Restores of another Velero are not drills of this one.",
			restores: restores(young, report.Restore{Name: "velero-2/drill", Started: ago(time.Minute)}), want: want{Name: "young"},
		},
		"Same": {
			reason:   "The order of two Restores of the same second must be stable.",
			restores: restores(young, report.Restore{Name: "velero/alike", Started: young.Started}), want: want{Name: "alike"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, late := newestRestore(tc.restores, "velero", now, 24*time.Hour)
			is := want{Name: got}
			for _, p := range late {
				is.Reasons = append(is.Reasons, p.Reason)
			}
			if diff := cmp.Diff(tc.want, is); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLastAdoption(t *testing.T) {
	now := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	ended := func(name string, ago time.Duration, operations int) report.Restore {
		started, completed := now.Add(-ago-time.Hour), now.Add(-ago)

		return report.Restore{Name: name, Started: &started, Completed: &completed, Operations: operations}
	}
	running := ended("velero/running", 0, 1)
	running.Completed = nil
	cases := map[string]struct {
		reason   string
		restores []report.Restore
		want     string
	}{
		"Newest":  {reason: "The adoption that ended last counts.", restores: []report.Restore{ended("velero/a", time.Hour, 1), ended("velero/b", time.Minute, 1)}, want: "velero/b"},
		"Without": {reason: "A Restore without operations adopts nothing.", restores: []report.Restore{ended("velero/a", time.Hour, 1), ended("velero/b", 0, 0)}, want: "velero/a"},
		"Running": {reason: "An adoption that has not ended has no duration.", restores: []report.Restore{running}},
		"Other":   {reason: "Restores of another Velero do not count.", restores: []report.Restore{ended("other/a", 0, 1)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			byName := map[string]report.Restore{}
			for _, r := range tc.restores {
				byName[r.Name] = r
			}
			got := ""
			if last := lastAdoption(byName, "velero"); last != nil {
				got = last.Name
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
