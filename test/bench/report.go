package bench

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
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

// The parts of docs/performance.md that are written by make bench.
const (
	Figures  = "figures"
	Requests = "requests"
)

// Replace returns a document with another text in one of its parts, between the two comments that mark it. It fails if these are missing.
func Replace(document []byte, part, text string) ([]byte, error) {
	begins := fmt.Sprintf("<!-- Written by make bench: %s. -->\n", part)
	ends := fmt.Sprintf("<!-- End of the %s. -->\n", part)
	before, rest, found := bytes.Cut(document, []byte(begins))
	_, after, foundEnd := bytes.Cut(rest, []byte(ends))
	if !found || !foundEnd {
		return nil, fmt.Errorf("cannot find where the %s go: there must be the lines %q and %q", part, begins, ends)
	}

	return bytes.Join([][]byte{before, []byte(begins), []byte(text), []byte(ends), after}, nil), nil
}
