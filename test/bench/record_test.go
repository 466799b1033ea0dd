package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The measurements of one run stay when the next run measures others, each with its origin.
func TestRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "performance.json")
	runs := []struct {
		results Results
		origin  Origin
	}{
		{
			results: Results{Restores: []Restores{{Plugin: restored(110), Alone: restored(100)}, {Plugin: restored(130), Alone: restored(100)}}},
			origin:  Origin{On: "2026-01-02", Of: "aaaaaaa", Machine: "a machine"},
		},
		{results: Results{Start: &Start{Milliseconds: []float64{70}, Bytes: 1e6}}, origin: Origin{On: "2026-02-03", Of: "bbbbbbb", Machine: "another"}},
		{ // The same again, out of what is kept.
			results: Results{Start: &Start{Milliseconds: []float64{70}, Bytes: 2e6}}, origin: Origin{On: "2026-03-04", Of: "ccccccc", Machine: "another"},
		},
	}
	var section string
	for _, run := range runs {
		r, err := ReadRecord(path, sizes)
		if err != nil {
			t.Fatal(err)
		}
		figures := run.results.Figures(sizes)
		r.Update(figures, run.origin)
		if err := r.Write(path); err != nil {
			t.Fatal(err)
		}
		section = r.Section(figures)
		if _, err := r.Plot(figures); err != nil {
			t.Errorf("The measured figures must be drawn without the others: %v", err)
		}
	}
	for _, want := range []string{
		"`make bench XRS=500 MRS=10 PAIRS=3 LARGE=5000 HELD=1000 OBJECTS=100000` on a machine, and on another.",
		"| Restore, items phase, 500 XRs x 10 MRs: plugin / Velero alone | ≤ 1.15 | 1.20x | 1.10 to 1.30x | 2 | missed | 5510 items; 120 s / 100 s; Velero's calls per item 2 / 2 | 2026-01-02, aaaaaaa |\n",
		"| Process start to handshake | ≤ 50 ms | 70 ms | - | 1 | missed |  | 2026-02-03, bbbbbbb |\n",
		"| Binary, stripped | ≤ 60 MB | 2 MB | - | 1 | met |  | 2026-03-04, ccccccc |\n",
		"| LISTs per kind in such a poll | ≤ 2 | - | - | - | not measured | | |\n",
	} {
		if !strings.Contains(section, want) {
			t.Errorf("There is no %q in:\n%s", want, section)
		}
	}
}

// Figures of other sizes are other figures, even with the same names.
func TestReadRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "performance.json")
	if err := (&Record{Sizes: sizes, Rows: []Row{{Name: "Binary, stripped", Runs: 1}}}).Write(path); err != nil {
		t.Fatal(err)
	}
	for s, want := range map[Sizes]int{sizes: 1, {XRs: 20}: 0} {
		if r, err := ReadRecord(path, s); err != nil || len(r.Rows) != want || r.Sizes != s {
			t.Errorf("of %+v got %+v, %v, want %d rows", s, r, err, want)
		}
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRecord(path, sizes); err == nil {
		t.Error("A record that can't be read must be an error.")
	}
}
