package printer

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// releases returns the results of a release. What stays held is among the problems.
func (s *textReport) releases() string {
	if len(s.report.Releases) == 0 {
		return ""
	}
	g := &grid{textReport: s, columns: []column{
		{title: "RESULT"},
		{title: "OBJECT", weight: weightName, middle: true},
		{title: "RESTORE", weight: weightDetail, middle: true},
		{title: "WHAT", weight: weightAside},
	}}
	for _, r := range s.report.Releases {
		restore := r.Restore
		if len(s.report.Restores) == 1 && !s.all {
			restore = "" // The summary names it.
		} else if r.Phase != "" {
			restore += " (" + r.Phase + ")"
		}
		g.add(cell{text: string(r.Result), colours: []text.Color{levels[r.Result].colour()}}, plain(r.Object.String()), plain(restore), plain(resultText(r)))
	}
	parts := []string{g.render()}
	for _, r := range s.report.Releases {
		if len(r.Risks) > 0 {
			parts = append(parts, s.risks(r))
		}
	}

	return strings.Join(append(parts, s.notes()...), "\n\n")
}

// resultText returns in one line what was done, or would be, or why nothing was.
func resultText(r report.Release) string {
	switch r.Result {
	case report.StillHeld, report.Unproven, report.WouldWait, report.Waiting:
		return "see above"
	case report.LeftAlone:
		if r.Next != "" {
			return "see below"
		}

		return r.Reason
	case report.Released, report.Forced:
		switch {
		case len(r.Settings) > 0:
			return "its own settings are back: " + strings.Join(r.Settings, ", ")
		case r.Next != "":
			return "it is released; see below"
		default:
			return "it is as it was"
		}
	case report.WouldRelease, report.WouldForce, report.WouldHold, report.Quiet:
		return strings.Join(r.Steps, "; ")
	default:
		return ""
	}
}

func (s *textReport) risks(r report.Release) string {
	lines := []string{s.paint(strings.ToUpper(string(r.Result)), levels[r.Result].colour(), text.Bold) + " " + r.Object.String()}
	for _, risk := range r.Risks {
		lines = append(lines, s.hanging("  - "+risk, len("  - ")))
	}

	return strings.Join(lines, "\n")
}

// notes returns the reasons and next steps of results that are no problems, each once.
func (s *textReport) notes() []string {
	var blocks []string
	for _, result := range []report.Result{report.Released, report.Forced, report.WouldRelease, report.WouldForce, report.LeftAlone} {
		var some []report.Problem
		for _, r := range s.report.Releases {
			if r.Result == result && r.Next != "" {
				some = append(some, report.Problem{Object: r.Object, Reason: r.Reason, Next: r.Next})
			}
		}
		for _, f := range findings(some) {
			blocks = append(blocks, s.block(f, strings.ToUpper(string(result)), " ", levels[result]))
		}
	}

	return blocks
}

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
	const width = len(report.Update) // The longest.
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
			counts = append(counts, fmt.Sprintf("%d %s", n, action))
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
