package printer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// releases returns the results of a release in its order. Objects that stay held appear under the
// problems.
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
		restore := restoreOf(r)
		if len(s.report.Restores) == 1 && !s.all {
			restore = "" // The summary names it.
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

func restoreOf(r report.Release) string {
	if r.Phase == "" {
		return r.Restore
	}

	return r.Restore + " (" + r.Phase + ")"
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
		blocks = append(blocks, s.notesOf(result)...)
	}

	return blocks
}

func (s *textReport) notesOf(result report.Result) []string {
	var some []report.Problem
	for _, r := range s.report.Releases {
		if r.Result == result && r.Next != "" {
			some = append(some, report.Problem{Object: r.Object, Reason: r.Reason, Next: r.Next})
		}
	}
	// The same reason and next step are one finding across kinds.
	same := map[string]*finding{}
	var order []*finding
	for _, f := range findings(some) {
		if first := same[f.Reason+f.Next]; first != nil {
			first.objects = append(first.objects, f.objects...)

			continue
		}
		same[f.Reason+f.Next] = f
		order = append(order, f)
	}
	var blocks []string
	for _, f := range order {
		head := strings.ToUpper(string(result))
		line := s.paint(head, levels[result].colour(), text.Bold) + strings.TrimPrefix(s.wrapped(head+" "+s.named(f), ""), head)
		blocks = append(blocks, strings.Join([]string{line, s.wrapped(f.Reason, "  "), s.wrapped("Next: "+f.Next, "  ")}, "\n"))
	}

	return blocks
}

// releaseVerdict returns the result of a release as a whole, and what to do.
func releaseVerdict(r *report.Report) (what, next string) {
	next = unrestored(r.Restores)
	if len(r.Releases) == 0 {
		return "Nothing is held, so there is nothing to release.", next
	}
	counts := map[report.Result]int{}
	var order []report.Result
	for _, release := range r.Releases {
		if counts[release.Result] == 0 {
			order = append(order, release.Result)
		}
		counts[release.Result]++
	}
	var parts []string
	for _, result := range order {
		parts = append(parts, fmt.Sprintf("%d %s", counts[result], result))
	}
	what = Counted(len(r.Releases), "hold") + ": " + strings.Join(parts, ", ") + "."
	if counts[report.WouldRelease]+counts[report.WouldForce] > 0 {
		next = "run the same without --dry-run."
	}
	if r.Summary.Problems > 0 {
		next = "follow the next step of each problem above, from the first on, then release again."
	}

	return what, next
}

// holdVerdict returns the result of hold as a whole, and what to do.
func holdVerdict(r *report.Report) (what, next string) {
	what, _ = releaseVerdict(r)
	what = strings.Replace(what, Counted(len(r.Releases), "hold"), Counted(len(r.Releases), "object"), 1)
	switch {
	case r.Summary.Problems > 0:
		return what, "follow the next step of each problem above, from the first on, then run the same again."
	case slices.ContainsFunc(r.Releases, func(o report.Release) bool { return o.Result == report.WouldHold }):
		return what, "run the same without --dry-run."
	default:
		return what, "back up, and restore that in the other cluster. To go on here instead, make sure that no other cluster has adopted anything, then run: " +
			xp.NewCommand(xp.Program, "release").Word("-n", "NAMESPACE").String()
	}
}

// unrestored returns where to see what a failed Restore did not create: such objects have no hold
// to report.
func unrestored(restores []report.Restore) string {
	for _, r := range restores {
		if strings.HasSuffix(r.Phase, "Failed") { // This matches WaitingForPluginOperationsPartiallyFailed too.
			_, name, _ := strings.Cut(r.Name, "/")

			return `this report lacks what was not restored: see "` + xp.NewCommand("velero", "restore", "describe").On(name).String() +
				`", and restore again if anything is missing.`
		}
	}

	return ""
}
