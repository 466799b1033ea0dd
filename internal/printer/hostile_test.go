package printer

import (
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// hostileTexts are texts in objects that try to be interpreted as code or markup.
func hostileTexts() []string {
	return []string{
		"\x1b]0;pwned\x07", "a\nb", "$(touch pwned)", "-rf", "--all", "'; rm -rf ~'", "a\u202eb", `"];pwned[label="`, `\"`, `\`, "<b>pwned</b>", "]]><pwned/>", "<!--", "&lt;",
		"</script><script>pwned()</script>", `" onmouseover="pwned()`, "javascript:pwned()", "{{.Policy}}", "\u2028", "\xff", "\x00",
	}
}

// reportWithText returns a report with a text in each field that can have one.
func reportWithText(s string) *report.Report {
	r := xp.Ref{APIVersion: s, Kind: s, Namespace: s, Name: s}
	condition := &report.Condition{Status: s, Reason: s, Message: s}
	n := &report.Node{
		Ref: r, Role: report.Role(s), State: report.State(s), ExternalName: s, Composition: s, Revision: s, Synced: condition, Ready: condition,
		Hold: &report.Hold{Restore: s, Waiting: []string{s}, Since: before(1)}, Restore: &report.Outcome{Action: report.Action(s), Reason: s}, Problems: []reason.Code{reason.Code(s)},
	}
	root := *n
	root.Children = []*report.Node{n}
	v := validation([]*report.Node{&root}, report.Problem{Code: reason.Code(s), Severity: report.Severity(s), Object: r, Others: []xp.Ref{r}, Reason: s, Next: s},
		problem(reason.Stuck, xp.Ref{Kind: "K", Name: s + "x"}, s, s))
	v.Source, v.Kind = s, report.KindInspection
	v.Restores = []report.Restore{{Name: s, Phase: s, Backup: s, Started: before(1)}}
	v.Order = []report.Step{{Resource: s, Why: s}}
	v.Versions = []report.Version{{Name: s, Version: s}}
	v.DryRun = &report.DryRunResult{Cluster: s, Counts: map[report.Action]int{report.Action(s): 1}, Items: []report.ItemResult{{Item: r, Resource: s, Namespace: s, Outcome: *n.Restore, For: &r}}}
	v.Releases = []report.Release{{Object: r, Restore: s, Phase: s, Result: report.Result(s), Steps: []string{s}, Settings: []string{s}, Risks: []string{s}, Reason: s, Next: s}}

	return v
}

// TestFormatsAreWellFormed checks that hostile texts stay text in formats for programs.
func TestFormatsAreWellFormed(t *testing.T) {
	for _, s := range hostileTexts() {
		r := reportWithText(s)
		page := printed(t, r, HTML, Options{})
		for _, element := range []string{"<b>", "<pwned", "<script>pwned", "<!--", `" onmouseover="`, `="javascript`} {
			if strings.Contains(page, element) {
				t.Errorf("%q: the page contains %q", s, element)
			}
		}
		for _, f := range []Format{Table, Wide} {
			for _, width := range []int{0, 80, 200} {
				got := printed(t, r, f, Options{Width: width})
				if !xp.IsPrintable(strings.ReplaceAll(got, "\n", "")) {
					t.Errorf("%q: %s has unprintable characters: %q", s, f, got)
				}
			}
		}
	}
}
