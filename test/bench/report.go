package bench

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/chart"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/marked"
)

// Print prints the figures as a table for a terminal.
func Print(w io.Writer, figures []Figure) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { _, _ = fmt.Fprintln(t, strings.Join(cells, "\t")) } // Flush says if it could not be written.
	row("FIGURE", "TARGET", "MEASURED", "SPREAD", "PAIRS", "")
	for _, f := range figures {
		row(f.Name, f.Target, f.Measured(), f.Spread(), count(f), f.Verdict())
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("cannot print the figures: %w", err)
	}
	for _, f := range figures {
		if f.Detail != "" {
			_, _ = fmt.Fprintf(w, "%s: %s\n", f.Name, f.Detail)
		}
	}

	return nil
}

func count(f Figure) string {
	if len(f.Values) == 0 {
		return "-"
	}

	return strconv.Itoa(len(f.Values))
}

// Markdown returns the figures as a table for docs/performance.md.
func Markdown(figures []Figure) string {
	var b strings.Builder
	b.WriteString("| figure | target | measured | spread | runs | | |\n|---|---|---|---|---|---|---|\n")
	for _, f := range figures {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", f.Name, f.Target, f.Measured(), f.Spread(), count(f), f.Verdict(), f.Detail)
	}

	return b.String()
}

// Complete tells whether everything was measured.
func Complete(figures []Figure) bool {
	return !slices.ContainsFunc(figures, func(f Figure) bool { return len(f.Values) == 0 })
}

// Section is what is written into docs/performance.md.
func Section(s Sizes, results *Results, figures []Figure, machine string, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nMeasured by `make bench XRS=%d MRS=%d PAIRS=%d LARGE=%d HELD=%d OBJECTS=%d`, completed on %s, on %s.\n\n",
		s.XRs, s.MRs, s.Pairs, s.Large, s.Held, s.Objects, now.UTC().Format(time.DateOnly), machine)
	b.WriteString(Markdown(figures))
	b.WriteString("\n![Each figure as part of its target](performance.svg)\n")
	b.WriteString(results.Requests())

	return b.String()
}

// Plot draws the figures that have a target other than zero.
func Plot(figures []Figure) ([]byte, error) {
	var bars []chart.Bar
	for _, f := range figures {
		if len(f.Values) == 0 || f.Limit == 0 {
			continue
		}
		low, high := f.Values[0], f.Values[0]
		for _, v := range f.Values {
			low, high = min(low, v), max(high, v)
		}
		bars = append(bars, chart.Bar{
			Label: f.Name + " (" + f.Measured() + ")", Median: f.Median() / f.Limit, Min: low / f.Limit, Max: high / f.Limit,
		})
	}

	return chart.Draw("What was measured, as part of what it may be", bars)
}

// Replace returns a document with other text between the marks of what is written by make bench. It fails if the marks are missing.
func Replace(document []byte, text string) ([]byte, error) {
	return marked.Replace(document, "make bench", text)
}
