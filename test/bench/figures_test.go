package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/lab"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/meter"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/marked"
)

var sizes = Sizes{XRs: 500, MRs: 10, Pairs: 3, Large: 5000, Held: 1000, Objects: 100000}

// lineOf returns the line of the figure whose name begins with a text, from its target on.
func lineOf(t *testing.T, r *Results, name string) string {
	t.Helper()
	record, figures := &Record{Sizes: sizes}, r.Figures(sizes)
	record.Update(figures, Origin{On: "2026-01-02", Of: "aaaaaaa"})
	_, after, found := strings.Cut(record.Section(figures), "\n| "+name)
	if !found {
		t.Fatalf("there is no figure called %s", name)
	}
	line, _, _ := strings.Cut(after, "\n")
	_, line, _ = strings.Cut(line, " | ")

	return strings.TrimSuffix(line, " | 2026-01-02, aaaaaaa |")
}

func restored(seconds float64) *lab.Restore {
	return &lab.Restore{Items: 5510, Seconds: seconds, Plugin: map[string]int{"get environments": 500, "list configmaps": 1}, Velero: map[string]int{"create buckets": 11020}, Peak: 60 << 20, VeleroPeak: 90 << 20}
}

func grown(by float64) Growth {
	return Growth{
		Held:  &lab.Held{Restore: restored(100 * by), Polls: []lab.Poll{{Seconds: 0.2 * by, Peak: 70 << 20}}},
		Grown: &lab.Grown{Release: &lab.Release{Seconds: 30 * by, PollPeak: 80 << 20}, Backup: &lab.Backup{Seconds: 10 * by, Peak: 50 << 20}},
	}
}

func TestFigures(t *testing.T) {
	pairs := []Restores{{Plugin: restored(110), Alone: restored(100)}, {Plugin: restored(140), Alone: restored(100)}, {Plugin: restored(102), Alone: restored(100)}}
	release := []*lab.Release{{Restore: restored(100), Seconds: 30, Restart: 10, Plugin: map[string]int{"patch environments": 1102}}}
	larger := grown(10)
	larger.Held.Polls[0].Seconds = 5
	larger.Held.Polls[0].Peak = 300 << 20
	cases := map[string]struct {
		reason  string
		results Results
		figure  string
		want    string
	}{
		"Nothing": {reason: "A figure without a measurement must not meet its target.", figure: "Restore, items phase", want: "≤ 1.15 | - | - | - | not measured | | |"},
		"Ratio": {
			reason: "The median is that of the ratios of each pair, so that a slow minute of the machine is in both.", results: Results{Restores: pairs}, figure: "Restore, items phase",
			want: "≤ 1.15 | 1.10x | 1.02 to 1.40x | 3 | met | 5510 items; 110 s / 100 s; Velero's calls per item 2 / 2",
		},
		"Missed": {
			reason: "A target is met only up to its limit.", results: Results{Statuses: pairs}, figure: "The same with all status",
			want: "≤ 1.05 | 1.10x | 1.02 to 1.40x | 3 | missed | 5510 items; 110 s / 100 s; Velero's calls per item 2 / 2",
		},
		"Calls": {
			reason: "The plugin's calls are those while items are restored; the cost of the release must be beside it.", results: Results{Restores: pairs, Releases: release},
			figure: "The plugin's API calls",
			want:   "≤ 0.12 | 0.091 | 0.091 to 0.091 | 3 | met | 501 calls for 5510 items; with all until the last XR is released 0.200",
		},
		"Release": {
			reason: "A release is compared with what Crossplane needs itself.", results: Results{Releases: release}, figure: "End of items",
			want: "≤ 1.5 | 3x | - | 1 | missed | 30 s / 10 s",
		},
		"Worst": {
			reason: "One thing that grows faster is enough to miss the target.", results: Results{Base: grown(1), Large: larger}, figure: "Cost of everything",
			want: "≤ 11x | 25x | - | 1 | missed | restore 10x, calls 1x, poll 25x, release 10x, backup 10x",
		},
		"HeldOnly": {
			reason:  "A measured figure must count when the others are missing, and Velero's own growth is no cost of the plugin.",
			results: Results{Base: Growth{Held: grown(1).Held}, Large: grown(10), Restores: pairs, LargeAlone: restored(3000)}, figure: "Cost of everything",
			want: "≤ 11x | 10x | - | 1 | met | restore 10x, calls 1x, poll 10x, Velero alone 30x",
		},
		"Memory": {
			reason: "The largest process must count, for any work.", results: Results{Large: larger}, figure: "Peak RSS of the plugin, 55000",
			want: "≤ 100 MB | 300 MB | - | 1 | missed | restoring 60, polling 300, releasing 80, backing up 50",
		},
		"Inspect": {
			reason:  "Inspect is compared with decoding the same file.",
			results: Results{Inspections: []Inspections{{Inspect: &meter.Run{Seconds: 3, Peak: 200 << 20}, Decode: &meter.Run{Seconds: 2}}}}, figure: "inspect of a backup of 100000",
			want: "≤ 2 | 1.50x | - | 1 | met | 3 s / 2 s",
		},
		"Peer": {
			reason: "The whole job is compared: backup, restore and release with export, apply and reconcile.",
			results: Results{
				Releases: release, Backups: []*lab.Backups{{Plugin: &lab.Backup{Seconds: 10}, Alone: &lab.Backup{Seconds: 10}}},
				Peer: &lab.Peer{Export: 4, Apply: 200, Settled: 76, Objects: 5500, Created: 1500, Ready: true, Requests: 16500},
			},
			figure: "Backup, restore and adoption",
			want:   "faster: < 1 | 0.500x | - | 1 | met | 10 + 100 + 30 s / 4 + 200 + 76 s, 16500 calls of kubectl",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lineOf(t, &tc.results, tc.figure)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The page has marks around the generated sections.
func TestReplace(t *testing.T) {
	page, err := os.ReadFile("../../docs/dev/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	results := Results{Restores: []Restores{{Plugin: restored(110), Alone: restored(100)}}}
	for part, text := range map[string]string{Figures: (&Record{}).Section(results.Figures(sizes)), Requests: results.Requests()} {
		got, err := marked.Replace(page, part, text)
		if err != nil || !bytes.Contains(got, []byte(text)) {
			t.Errorf("%s is not written: %v", part, err)
		}
	}
	if want := "| list configmaps | 0 | 0 | 1 |\n"; !strings.Contains(results.Requests(), want) {
		t.Errorf("There is no %q in:\n%s", want, results.Requests())
	}
}

// The measurements of one run stay when the next run measures others, each with its origin, unless
// the sizes are others.
func TestRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "performance.json")
	runs := []struct {
		start  Start
		origin Origin
	}{
		{start: Start{Milliseconds: []float64{70}, Bytes: 1e6}, origin: Origin{On: "2026-02-03", Of: "bbbbbbb", Machine: "a machine"}},
		{start: Start{Milliseconds: []float64{70}, Bytes: 2e6}, origin: Origin{On: "2026-03-04", Of: "ccccccc", Machine: "another"}},
	}
	var section string
	for _, run := range runs {
		r, err := ReadRecord(path, sizes)
		if err != nil {
			t.Fatal(err)
		}
		figures := (&Results{Start: &run.start}).Figures(sizes)
		r.Update(figures, run.origin)
		if err := r.Write(path); err != nil {
			t.Fatal(err)
		}
		section = r.Section(figures)
	}
	for _, want := range []string{
		"on a machine, and on another.",
		"| Process start to handshake | ≤ 50 ms | 70 ms | - | 1 | missed |  | 2026-02-03, bbbbbbb |\n",
		"| Binary, stripped | ≤ 60 MB | 2 MB | - | 1 | met |  | 2026-03-04, ccccccc |\n",
	} {
		if !strings.Contains(section, want) {
			t.Errorf("There is no %q in:\n%s", want, section)
		}
	}
	if r, err := ReadRecord(path, Sizes{XRs: 20}); err != nil || len(r.Rows) > 0 {
		t.Errorf("Figures of other sizes are other figures: %+v, %v", r, err)
	}
}
