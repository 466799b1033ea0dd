package diagnosis

import (
	"strings"
	"testing"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func TestGuard(t *testing.T) {
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) *time.Time { t := made.Add(d); return &t }
	over := report.Restore{Phase: "Completed", Started: at(time.Minute), Completed: at(time.Hour)}
	cases := map[string]struct {
		reason   string
		guard    Guard
		restores []report.Restore
		unread   bool
		held     bool
		want     report.Severity
		says     []string
	}{
		"Before": {
			reason: "No Restore has begun since the guard is up.", restores: []report.Restore{{Phase: "Completed", Started: at(-time.Hour), Completed: at(-time.Minute)}},
			want: report.Warning, says: []string{"everywhere", "2026-01-02T03:04:05Z", "no Restore has started since", "guard off"},
		},
		"Busy":   {reason: "A Restore is under way.", restores: []report.Restore{over, {Phase: "InProgress", Started: at(time.Hour)}}, want: report.Warning, says: []string{"has not ended"}},
		"New":    {reason: "A Restore is about to begin.", restores: []report.Restore{over, {}}, want: report.Warning, says: []string{"has not ended"}},
		"Held":   {reason: "A held object waits for its adoption.", restores: []report.Restore{over}, held: true, want: report.Warning, says: []string{"has not ended"}},
		"Unread": {reason: "Without the Restores the state is unknown.", unread: true, want: report.Warning},
		"Left": {
			reason: "The Restore is over, and no object is held.", guard: Guard{By: "alice", Namespaces: []string{"a", "b"}}, restores: []report.Restore{over}, want: report.Error,
			says: []string{"in a, b", "put up by alice", "nothing is held", "guard off"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			restores := map[string]report.Restore{}
			for i, r := range tc.restores {
				restores["velero/"+string(rune('a'+i))] = r
			}
			if tc.unread {
				restores = nil
			}
			tc.guard.Policy, tc.guard.Made = xp.Ref{Kind: "ValidatingAdmissionPolicy", Name: "g"}, made
			got := tc.guard.Check(restores, tc.held)
			if got.Severity != tc.want || got.Code != reason.GuardUp || got.Object != tc.guard.Policy {
				t.Errorf("%s got %+v", tc.reason, got)
			}
			for _, must := range tc.says {
				if !strings.Contains(got.Reason+" "+got.Next, must) {
					t.Errorf("%s %q is not in %q, %q", tc.reason, must, got.Reason, got.Next)
				}
			}
		})
	}
}
