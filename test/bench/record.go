package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// A Record has the last measurement of each figure, so that a run which measures some of them
// leaves the others as they are.
type Record struct {
	Sizes Sizes `json:"sizes"`
	Rows  []Row `json:"figures"`
}

// A Row is the measurement of one figure.
type Row struct {
	Name   string  `json:"name"`
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
	Runs   int     `json:"runs"`
	Detail string  `json:"detail,omitempty"`
	Origin
}

// An Origin identifies the time and the commit of a measurement.
type Origin struct {
	// On is the day, as 2006-01-02, and Of the plugin's commit.
	On      string `json:"on"`
	Of      string `json:"of"`
	Machine string `json:"machine"`
}

// ReadRecord reads the Record of these sizes. It is empty if the file is missing or has other
// sizes.
func ReadRecord(path string, s Sizes) (*Record, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Record{Sizes: s}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what was measured before: %w", err)
	}
	r := &Record{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("cannot read what was measured before, in %s: %w", path, err)
	}
	if r.Sizes != s {
		return &Record{Sizes: s}, nil
	}

	return r, nil
}

// Write writes the Record to a file.
func (r *Record) Write(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode what was measured: %w", err)
	}
	if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write what was measured: %w", err)
	}

	return nil
}

// Update takes over the measured figures. A figure with the same values keeps its origin.
func (r *Record) Update(figures []Figure, origin Origin) {
	for _, f := range figures {
		if len(f.Values) == 0 {
			continue
		}
		row := Row{
			Name: f.Name, Median: median(f.Values), Least: slices.Min(f.Values), Most: slices.Max(f.Values), Runs: len(f.Values), Detail: f.Detail, Origin: origin,
		}
		if at := r.index(f); at < 0 {
			r.Rows = append(r.Rows, row)
		} else if before := r.Rows[at]; !before.isLike(row) {
			r.Rows[at] = row
		}
	}
}

func (r Row) isLike(other Row) bool {
	r.Origin = other.Origin

	return r == other
}

// index returns where the last measurement of a figure is, or -1.
func (r *Record) index(f Figure) int {
	return slices.IndexFunc(r.Rows, func(row Row) bool { return row.Name == f.Name })
}

// The generated parts of docs/dev/performance.md, by the names of their generators.
const (
	Figures  = "make bench (figures)"
	Requests = "make bench (requests)"
)

// Section returns the table of the figures for docs/dev/performance.md.
func (r *Record) Section(figures []Figure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nMeasured by `make bench XRS=%d MRS=%d PAIRS=%d LARGE=%d HELD=%d OBJECTS=%d` on %s. "+
		"The last column says when, and of which commit of the plugin.\n\n",
		r.Sizes.XRs, r.Sizes.MRs, r.Sizes.Pairs, r.Sizes.Large, r.Sizes.Held, r.Sizes.Objects, strings.Join(r.machines(), ", and on "))
	b.WriteString("| figure | target | measured | spread | runs | | | of |\n|---|---|---|---|---|---|---|---|\n")
	for _, f := range figures {
		at := r.index(f)
		if at < 0 {
			fmt.Fprintf(&b, "| %s | %s | - | - | - | not measured | | |\n", f.Name, f.Target)

			continue
		}
		row, spread, verdict := r.Rows[at], "-", "met"
		if row.Runs > 1 {
			spread = number(row.Least) + " to " + number(row.Most) + f.Unit
		}
		switch {
		case f.Target == "":
			verdict = ""
		case row.Median > f.Limit:
			verdict = "missed"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %d | %s | %s | %s, %s |\n",
			f.Name, f.Target, number(row.Median)+f.Unit, spread, row.Runs, verdict, row.Detail, row.On, row.Of)
	}

	return b.String()
}

func (r *Record) machines() []string {
	var machines []string
	for _, row := range r.Rows {
		if !slices.Contains(machines, row.Machine) {
			machines = append(machines, row.Machine)
		}
	}

	return machines
}

// OriginAt returns the Origin of a measurement at a time, of a commit.
func OriginAt(now time.Time, commit string) Origin {
	return Origin{On: now.UTC().Format(time.DateOnly), Of: commit, Machine: Machine()}
}
