package printer

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

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
	// grave has the objects with problems; true if one of these is no warning. severity fills it.
	grave map[xp.ID]bool
}

func newTextReport(r *report.Report, all bool, o Options) *textReport {
	return &textReport{Options: o, report: r, all: all}
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
	digits := len(number(len(s.report.Order)))
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

func (g *grid) add(cells ...cell) { g.rows = append(g.rows, cells) }

const (
	gap = 2
	// minColumn is the minimal width of a column that is cut.
	minColumn = 12
)

func (g *grid) render() string {
	g.dropEmpty()
	widths := g.widths()
	t := table.NewWriter()
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

func (g *grid) dropEmpty() {
	for n := range slices.Backward(slices.Clone(g.columns)) {
		used := false
		for _, row := range g.rows {
			used = used || row[n].text != ""
		}
		if used {
			continue
		}
		g.columns = append(g.columns[:n], g.columns[n+1:]...)
		for k, row := range g.rows {
			g.rows[k] = append(row[:n], row[n+1:]...)
		}
	}
}

// widths returns the widths of the columns. Their sum fits the terminal, if possible.
func (g *grid) widths() []int {
	widths := make([]int, len(g.columns))
	total := -gap
	for n, c := range g.columns {
		widths[n] = len(c.title)
		for _, row := range g.rows {
			widths[n] = max(widths[n], text.StringWidthWithoutEscSequences(row[n].text))
		}
		total += widths[n] + gap
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
	from, tail := len(t), 0
	for from > 0 {
		r, size := utf8.DecodeLastRuneInString(t[:from])
		if tail += text.RuneWidth(r); tail > width/3 {
			tail -= text.RuneWidth(r)

			break
		}
		from -= size
	}

	return text.Trim(t, width-1-tail) + "…" + t[from:]
}

// trimmed removes trailing spaces, which would wrap on a terminal.
func trimmed(lines string) string {
	var all []string
	for line := range strings.Lines(lines) {
		all = append(all, strings.TrimRight(line, " \n"))
	}

	return strings.Join(all, "\n")
}
