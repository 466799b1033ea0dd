package bench

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Print prints the figures as a table for a terminal.
func Print(w io.Writer, figures []Figure) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { _, _ = fmt.Fprintln(t, strings.Join(cells, "\t")) } // Flush returns the error.
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

// The generated parts of docs/dev/performance.md, by the names of their generators.
const (
	Figures  = "make bench (figures)"
	Requests = "make bench (requests)"
)
