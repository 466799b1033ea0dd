package printer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A textReport is a report for a terminal: the problems, the trees, the dry run, and what to do.
type textReport struct {
	Options

	report *report.Report
	// all gives each resource a line of its own, with all details.
	all bool
	// grave are the objects with a problem that is no warning.
	grave map[xp.ID]bool
}

func newTextReport(r *report.Report, all bool, o Options) *textReport {
	s := &textReport{Options: o, report: r, all: all, grave: map[xp.ID]bool{}}
	for _, p := range r.Problems {
		if p.Severity == report.Error {
			s.grave[p.Object.ID()] = true
		}
	}

	return s
}

func (s *textReport) render() []byte {
	sections := []string{s.problems(), s.releases(), s.trees(), s.dryRun()}
	if s.all {
		sections = append(sections, s.order(), s.versions())
	}
	var parts []string
	for _, part := range append(sections, s.summary()) {
		if part != "" {
			parts = append(parts, part)
		}
	}

	return []byte(strings.Join(parts, "\n\n") + "\n")
}

func (s *textReport) order() string {
	if len(s.report.Order) == 0 {
		return ""
	}
	lines := []string{s.paint("ORDER OF RESTORE", text.Bold)}
	digits := len(strconv.Itoa(len(s.report.Order)))
	for n, step := range s.report.Order {
		line := fmt.Sprintf("%*d. %s ×%d: %s", digits, n+1, step.Resource, step.Items, step.Why)
		lines = append(lines, s.hanging(line, digits+2))
	}

	return strings.Join(lines, "\n")
}

func (s *textReport) versions() string {
	if len(s.report.Versions) == 0 {
		return ""
	}
	width := 0
	for _, v := range s.report.Versions {
		width = max(width, text.StringWidthWithoutEscSequences(v.Name))
	}
	lines := []string{s.paint("VERSIONS", text.Bold)}
	for _, v := range s.report.Versions {
		name := text.Pad(v.Name, width+gap, ' ')
		lines = append(lines, s.hanging(name+v.Version, len(name)))
	}

	return strings.Join(lines, "\n")
}

// paint colours a text, if colours are allowed.
func (s *textReport) paint(t string, colours ...text.Color) string {
	if !s.Colour || t == "" || len(colours) == 0 {
		return t
	}

	return text.Colors(colours).Sprint(t)
}

// A cell is a text and its colours, which are applied after the text is cut to its column.
type cell struct {
	text    string
	colours []text.Color
}

func plain(t string) cell { return cell{text: t} }

// These are the weights of columns: a larger one is cut earlier. Names matter most. weightRepeated
// is for text that appears elsewhere in full.
const (
	weightName = iota + 1
	weightDetail
	weightAside
	weightRepeated
)

type column struct {
	title string
	// weight decides how early the column is cut on a narrow terminal; 0 is never.
	weight int
	// middle cuts texts in the middle, so that their end stays.
	middle bool
}

// A grid is a table without lines, like kubectl's.
type grid struct {
	*textReport

	columns []column
	rows    [][]cell
}

func (g *grid) add(cells ...cell) {
	g.rows = append(g.rows, append(cells, make([]cell, len(g.columns)-len(cells))...))
}

const (
	gap = 2
	// minColumn is the minimal width of a column that is cut.
	minColumn = 12
)

func (g *grid) render() string {
	widths := g.widths()
	t := table.NewWriter()
	t.SuppressEmptyColumns()
	t.SetStyle(table.Style{Box: table.BoxStyle{PaddingRight: strings.Repeat(" ", gap)}, Options: table.OptionsNoBordersAndSeparators})
	header := table.Row{}
	for _, c := range g.columns {
		header = append(header, g.paint(c.title, text.Bold))
	}
	t.AppendHeader(header)
	for _, cells := range g.rows {
		row := table.Row{}
		for n, c := range cells {
			row = append(row, g.paint(g.columns[n].fit(c.text, widths[n]), c.colours...))
		}
		t.AppendRow(row)
	}

	return trimmed(t.Render())
}

// widths returns the widths of the columns; 0 for an empty one, which is not printed. Their sum fits
// the terminal, if possible.
func (g *grid) widths() []int {
	widths := make([]int, len(g.columns))
	total := -gap
	for n, c := range g.columns {
		for _, row := range g.rows {
			widths[n] = max(widths[n], text.StringWidthWithoutEscSequences(row[n].text))
		}
		if widths[n] > 0 {
			widths[n] = max(widths[n], len(c.title))
			total += widths[n] + gap
		}
	}
	for ; g.Width > 0 && total > g.Width; total-- {
		heaviest := -1
		for n, c := range g.columns {
			if c.weight > 0 && widths[n] > max(minColumn, len(c.title)) && (heaviest < 0 || widths[n]*c.weight > widths[heaviest]*g.columns[heaviest].weight) {
				heaviest = n
			}
		}
		if heaviest < 0 {
			break
		}
		widths[heaviest]--
	}

	return widths
}

func (c column) fit(t string, width int) string {
	switch {
	case text.StringWidthWithoutEscSequences(t) <= width:
		return t
	case !c.middle:
		return text.Snip(t, width, "…")
	}
	runes := []rune(t)
	end := string(runes[max(0, len(runes)-width/3):])

	return text.Trim(t, width-1-text.StringWidthWithoutEscSequences(end)) + "…" + end
}

// trimmed removes trailing spaces, which would wrap on a terminal.
func trimmed(lines string) string {
	var all []string
	for line := range strings.Lines(lines) {
		all = append(all, strings.TrimRight(line, " \n"))
	}

	return strings.Join(all, "\n")
}

// A level is how much attention something needs. It is a CSS class of the page, too.
type level string

// Levels.
const (
	levelHealthy level = "well"
	levelWarning level = "warning"
	levelProblem level = "problem"
	levelPlain   level = "plain"
)

// levels has the level of each severity, action, state and result.
var levels = map[any]level{ //nolint:gochecknoglobals // It is a constant.
	report.Error: levelProblem, report.Warning: levelWarning,

	report.Refuse: levelProblem, report.Clone: levelProblem, report.Keep: levelWarning, report.Skip: levelWarning,
	report.Update: levelWarning, report.Exists: levelPlain, report.Create: levelPlain,

	report.Missing: levelProblem, report.Foreign: levelProblem, report.Held: levelWarning, report.Unread: levelWarning, report.Deleting: levelWarning,
	report.Alone: levelPlain, report.Adopted: levelHealthy,

	report.StillHeld: levelProblem, report.WouldWait: levelProblem, report.Unproven: levelProblem,
	report.LeftAlone: levelWarning, report.WouldForce: levelWarning,
	report.Waiting: levelProblem, report.Quiet: levelHealthy, report.WouldHold: levelHealthy,

	report.Released: levelHealthy, report.Forced: levelHealthy, report.WouldRelease: levelHealthy,
}

func levelOfReport(r *report.Report) level {
	switch {
	case r.Summary.Problems > 0:
		return levelProblem
	case r.Summary.Warnings > 0:
		return levelWarning
	default:
		return levelHealthy
	}
}

func (l level) colour() text.Color {
	return map[level]text.Color{levelProblem: text.FgRed, levelWarning: text.FgYellow, levelHealthy: text.FgGreen}[l]
}

// cell returns a cell with a text, in colour if that needs attention.
func (l level) cell(t string) cell {
	if l == levelProblem || l == levelWarning {
		return cell{text: t, colours: []text.Color{l.colour()}}
	}

	return plain(t)
}
