package printer

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// releases says what became of holds, in the order in which they are lifted. What stays held is a problem and told as one.
func (s *sheet) releases() string {
	if len(s.report.Releases) == 0 {
		return ""
	}
	g := &grid{sheet: s, columns: []column{
		{title: "RESULT"}, {title: "OBJECT", weight: 2, middle: true}, {title: "RESTORE", weight: 2, middle: true}, {title: "WHAT", weight: 1},
	}}
	for _, r := range s.report.Releases {
		g.add(cell{text: string(r.Result), colours: []text.Color{resultColour(r.Result)}}, plain(r.Object.String()), plain(restoreOf(r)), plain(whatOf(r)))
	}
	parts := []string{g.render()}
	for _, r := range s.report.Releases {
		if block := s.released(r); block != "" {
			parts = append(parts, block)
		}
	}

	return strings.Join(parts, "\n\n")
}

func resultColour(r report.Result) text.Color {
	switch r {
	case report.Released, report.Forced, report.WouldRelease:
		return text.FgGreen
	case report.StillHeld, report.WouldWait, report.Unproven:
		return text.FgRed
	case report.LeftAlone, report.WouldForce:
		return text.FgYellow
	default:
		return text.Reset
	}
}

func restoreOf(r report.Release) string {
	if r.Phase == "" {
		return r.Restore
	}

	return r.Restore + " (" + r.Phase + ")"
}

// whatOf says in one line what was done, or would be, or why nothing was.
func whatOf(r report.Release) string {
	switch r.Result {
	case report.LeftAlone, report.StillHeld, report.Unproven, report.WouldWait:
		return r.Reason
	case report.Released, report.Forced:
		if len(r.Settings) > 0 {
			return "its own settings are back: " + strings.Join(r.Settings, ", ")
		}

		return "it is as it was"
	case report.WouldRelease, report.WouldForce:
		return strings.Join(r.Steps, "; ")
	default:
		return ""
	}
}

// released is what else is to be said of one: what can come of it, and what to do about one that was left alone.
func (s *sheet) released(r report.Release) string {
	var lines []string
	for _, risk := range r.Risks {
		lines = append(lines, s.hanging("  - "+risk, len("  - ")))
	}
	if r.Result == report.LeftAlone && r.Next != "" {
		lines = append(lines, s.wrapped(r.Reason, "  "), s.wrapped("Next: "+r.Next, "  "))
	}
	if len(lines) == 0 {
		return ""
	}
	head := s.paint(strings.ToUpper(string(r.Result)), resultColour(r.Result), text.Bold) + " " + r.Object.String()

	return strings.Join(append([]string{head}, lines...), "\n")
}

// releaseVerdict says what became of all holds together.
func releaseVerdict(r *report.Report) (what, next string) {
	if len(r.Releases) == 0 {
		return "Nothing is held, so there is nothing to lift.", ""
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
	what = some(len(r.Releases), "hold") + ": " + strings.Join(parts, ", ") + "."
	if counts[report.WouldRelease]+counts[report.WouldForce] > 0 {
		next = "run the same without --dry-run."
	}
	if r.Summary.Problems > 0 {
		next = "each problem says above what to do; begin with the first, and release again."
	}

	return what, next
}
