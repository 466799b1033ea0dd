// Package printer prints a report: as tables and trees, as an HTML page, and for programs as JSON,
// YAML or OpenMetrics. Only hooks imports it. Start reading at Print; a new format needs a Format
// there.
package printer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/metrics"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Format is an output format.
type Format string

// These are all formats.
const (
	Table Format = "table"
	Wide  Format = "wide"
	JSON  Format = "json"
	YAML  Format = "yaml"
	HTML  Format = "html"
	// OpenMetrics is for Prometheus.
	OpenMetrics Format = "openmetrics"
	// Name prints the names of objects, as kubectl takes them.
	Name Format = "name"
)

// Formats returns the names of all formats.
func Formats() []string {
	return []string{string(Table), string(Wide), string(JSON), string(YAML), string(HTML), string(OpenMetrics), string(Name)}
}

// Options describe the terminal.
type Options struct {
	// Width is the terminal's width in columns; 0 without a terminal, so that nothing is cut.
	Width int
	// Colour allows colours.
	Colour bool
}

// Print writes a report in a format. For users it cleans the report of control characters.
func Print(w io.Writer, r *report.Report, f Format, o Options) error {
	b, err := encode(r, f, o)
	if err != nil {
		return fmt.Errorf("cannot print the report as %s: %w", f, err)
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}

	return nil
}

func encode(r *report.Report, f Format, o Options) ([]byte, error) {
	if f == JSON || f == YAML {
		return Encode(r, f)
	}
	clean(reflect.ValueOf(r))
	switch f { //nolint:exhaustive // Encode handles the others.
	case Table, Wide:
		return newTextReport(r, f == Wide, o).render(), nil
	case HTML:
		return html(r)
	case OpenMetrics:
		return metrics.Report(r)
	case Name:
		return objectNames(r), nil
	default:
		return nil, fmt.Errorf("there are %s", strings.Join(Formats(), ", "))
	}
}

// Encode returns complete data as JSON or YAML, with unprintable characters escaped.
func Encode(data any, f Format) ([]byte, error) {
	if f != YAML {
		b, err := json.MarshalIndent(data, "", "  ")

		return append(escaped(b, true), '\n'), err
	}
	b, err := json.Marshal(data)
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller adds the context.
	}

	return inParts(b)
}

// inParts converts JSON to YAML, each entry of a top-level list on its own: a conversion of the
// whole needs many times the memory of its output. An entry with unprintable characters stays JSON,
// which is valid YAML: the YAML encoder escapes only some of them.
func inParts(document []byte) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(document, &fields); err != nil {
		return nil, err //nolint:wrapcheck // Print adds the context.
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var entries []json.RawMessage
		flow, before, after := "- ", "[", "]"
		if err := json.Unmarshal(fields[name], &entries); err != nil || len(entries) == 0 {
			entries = []json.RawMessage{fields[name]}
			flow, before, after = name+": ", fmt.Sprintf("{%q:", name), "}"
		} else {
			out.WriteString(name + ":\n")
		}
		for _, entry := range entries {
			if e := escaped(entry, false); !bytes.Equal(e, entry) {
				out.WriteString(flow + string(e) + "\n")

				continue
			}
			b, err := yaml.JSONToYAML(slices.Concat([]byte(before), entry, []byte(after)))
			if err != nil {
				return nil, err //nolint:wrapcheck // Print adds the context.
			}
			out.Write(b)
		}
	}

	return out.Bytes(), nil
}

// objectNames returns a line for each object in the trees or results, as kubectl takes it.
func objectNames(r *report.Report) []byte {
	var b bytes.Buffer
	seen := map[string]bool{}
	add := func(o xp.Ref) {
		gk := o.GroupVersionKind().GroupKind()
		line := strings.ToLower(strings.TrimSuffix(gk.Kind+"."+gk.Group, ".")) + "/" + o.Name
		if key := o.Namespace + "/" + line; !seen[key] {
			seen[key] = true
			b.WriteString(line + "\n")
		}
	}
	for n := range report.All(r.Trees...) {
		add(n.Ref)
	}
	for _, release := range r.Releases {
		add(release.Object)
	}

	return b.Bytes()
}
