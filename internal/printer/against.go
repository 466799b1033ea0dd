package printer

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// actions is the order in which outcomes are counted: those that need attention come first.
var actions = []report.Action{ //nolint:gochecknoglobals // It is a constant.
	report.Refuse, report.Clone, report.Keep, report.Update, report.Skip, report.Exists, report.Create,
}

// dryRun returns what a restore would do: the counts, and a line for each unexpected outcome.
func (s *textReport) dryRun() string {
	a := s.report.DryRun
	if a == nil {
		return ""
	}
	lines := []string{s.paint("A RESTORE INTO "+a.Cluster, text.Bold), s.wrapped(outcomes(a), "")}
	width := 0
	for _, action := range actions {
		width = max(width, len(action))
	}
	for _, f := range a.Items {
		if !s.all && isExpected(&f.Outcome) {
			continue
		}
		action := fmt.Sprintf("%-*s", width, f.Outcome.Action)
		line := s.hanging(action+"  "+itemResult(f), width+gap)
		lines = append(lines, s.paint(action, levels[f.Outcome.Action].cell("").colours...)+strings.TrimPrefix(line, action))
	}

	return strings.Join(lines, "\n")
}

func outcomes(a *report.DryRunResult) string {
	var counts []string
	for _, action := range actions {
		if n := a.Counts[action]; n > 0 {
			counts = append(counts, number(n)+" "+string(action))
		}
	}

	return cmp.Or(strings.Join(counts, ", "), "It has nothing to restore.")
}

// itemResult describes an item, its target namespace and the reason.
func itemResult(f report.ItemResult) string {
	what := f.Item.String()
	if f.Namespace != "" && f.Namespace != f.Item.Namespace {
		what += " into " + f.Namespace
	}
	if f.For != nil {
		what += ", for " + f.For.String()
	}
	if f.Outcome.Reason != "" {
		what += ": " + withoutName(f.Item, f.Outcome.Reason)
	}

	return what
}

// withoutName removes the object's name from the start of a message.
func withoutName(r xp.Ref, message string) string {
	return strings.TrimPrefix(message, r.String()+": ")
}

// isExpected reports whether an outcome needs no explanation. A hold needs none: XRs and claims are
// always held at first, and a held MR has a problem that explains it.
func isExpected(o *report.Outcome) bool {
	return o == nil || o.Action == report.Keep || o.Reason == "" && o.Action != report.Refuse && o.Action != report.Clone
}
