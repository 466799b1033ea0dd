package hooks

import (
	"testing"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
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
	xptest.Run(t, map[string]xptest.Row[map[string]report.Restore, want]{
		"Newest": {Reason: "The option selects the Restore that began last.", In: restores(old, young), Want: want{Name: "young"}},
		"Late": {
			Reason: "The check must show first that drills have stopped.",
			In:     restores(old), Want: want{Name: "old", Reasons: []string{"it is the newest one and began 25h0m0s ago, which is longer than 24h0m0s"}},
		},
		"None":     {Reason: "The check must fail when no drill ever ran.", Want: want{Reasons: []string{"no Restore has begun"}}},
		"NotBegun": {Reason: "A queued Restore has no result yet.", In: restores(young, report.Restore{Name: "velero/queued"}), Want: want{Name: "young"}},
		"Elsewhere": {
			Reason: "Restores of another Velero are not drills of this one.",
			In:     restores(young, report.Restore{Name: "velero-2/drill", Started: ago(time.Minute)}), Want: want{Name: "young"},
		},
	}, func(in map[string]report.Restore) want {
		newest, late := newestRestore(in, "velero", now, 24*time.Hour)
		got := want{Name: newest}
		for _, p := range late {
			got.Reasons = append(got.Reasons, p.Reason)
		}

		return got
	})
}

func TestLastAdoption(t *testing.T) {
	now := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	ended := func(name string, ago time.Duration, operations int) report.Restore {
		started, completed := now.Add(-ago-time.Hour), now.Add(-ago)

		return report.Restore{Name: name, Started: &started, Completed: &completed, Operations: operations}
	}
	running := ended("velero/running", 0, 1)
	running.Completed = nil
	xptest.Run(t, map[string]xptest.Row[[]report.Restore, string]{
		"Newest":  {Reason: "The adoption that ended last counts.", In: []report.Restore{ended("velero/a", time.Hour, 1), ended("velero/b", time.Minute, 1)}, Want: "velero/b"},
		"Without": {Reason: "A Restore without operations adopts nothing.", In: []report.Restore{ended("velero/a", time.Hour, 1), ended("velero/b", 0, 0)}, Want: "velero/a"},
		"Running": {Reason: "An adoption that has not ended has no duration.", In: []report.Restore{running}},
		"Other":   {Reason: "Restores of another Velero do not count.", In: []report.Restore{ended("other/a", 0, 1)}},
	}, func(in []report.Restore) string {
		byName := map[string]report.Restore{}
		for _, r := range in {
			byName[r.Name] = r
		}
		if last := lastAdoption(byName, "velero"); last != nil {
			return last.Name
		}

		return ""
	})
}
