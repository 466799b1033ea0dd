package printer

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// A Format is how a report is shown.
type Format string

// Formats.
const (
	Table Format = "table"
	Wide  Format = "wide"
	JSON  Format = "json"
	YAML  Format = "yaml"
	DOT   Format = "dot"
	JUnit Format = "junit"
	HTML  Format = "html"
)

// Formats returns the names of all of them.
func Formats() []string {
	return []string{string(Table), string(Wide), string(JSON), string(YAML), string(DOT), string(JUnit), string(HTML)}
}

// Parse returns the Format of a name. It fails with what there is if there is none of that name.
func Parse(name string) (Format, error) {
	if !slices.Contains(Formats(), name) {
		return "", fmt.Errorf("cannot print as %q: there are %s", name, strings.Join(Formats(), ", "))
	}

	return Format(name), nil
}

// Options are how a table and a tree are shown.
type Options struct {
	// Width is that of the terminal in columns; 0 if there is none, so that nothing is cut.
	Width int
	// Colour says whether it may be used.
	Colour bool
}

// Print writes a report in a format.
func Print(w io.Writer, r *report.Report, f Format, _ Options) error {
	var b []byte
	var err error
	switch f {
	case JSON:
		b, err = json.MarshalIndent(r, "", "  ")
		b = append(b, '\n')
	case YAML:
		b, err = yaml.Marshal(r)
	default:
		err = fmt.Errorf("cannot print as %s", f)
	}
	if err != nil {
		return fmt.Errorf("cannot encode the report: %w", err)
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}

	return nil
}
