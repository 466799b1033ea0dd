package bench

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/lab"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/meter"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/marked"
)

var sizes = Sizes{XRs: 500, MRs: 10, Pairs: 3, Large: 5000, Held: 1000, Objects: 100000}

// row has the fields of a figure that a case compares.
type row struct {
	Measured, Spread, Verdict, Detail string
}

// figureOf returns the figure whose name begins with a text.
func figureOf(t *testing.T, r *Results, name string) row {
	t.Helper()
	for _, f := range r.Figures(sizes) {
		if strings.HasPrefix(f.Name, name) {
			return row{Measured: f.Measured(), Spread: f.Spread(), Verdict: f.Verdict(), Detail: f.Detail}
		}
	}
	t.Fatalf("there is no figure called %s", name)

	return row{}
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
	release := []lab.Release{{Restore: restored(100), Seconds: 30, Restart: 10, Plugin: map[string]int{"patch environments": 1102}}}
	larger := grown(10)
	larger.Held.Polls[0].Seconds = 5
	larger.Held.Polls[0].Peak = 300 << 20
	cases := map[string]struct {
		reason  string
		results Results
		figure  string
		want    row
	}{
		"Nothing": {reason: "A figure without a measurement must not meet its target.", figure: "Restore, items phase", want: row{Measured: "-", Spread: "-", Verdict: "not measured"}},
		"Ratio": {
			reason: "The median is that of the ratios of each pair, so that a slow minute of the machine is in both.", results: Results{Restores: pairs}, figure: "Restore, items phase",
			want: row{Measured: "1.10x", Spread: "1.02 to 1.40x", Verdict: "met", Detail: "5510 items; 110 s / 100 s; Velero's calls per item 2 / 2"},
		},
		"Missed": {
			reason: "A target is met only up to its limit.", results: Results{Statuses: pairs}, figure: "The same with all status",
			want: row{Measured: "1.10x", Spread: "1.02 to 1.40x", Verdict: "missed", Detail: "5510 items; 110 s / 100 s; Velero's calls per item 2 / 2"},
		},
		"Calls": {
			reason: "The plugin's calls are those while items are restored; the cost of the release must be beside it.", results: Results{Restores: pairs, Releases: release},
			figure: "The plugin's API calls",
			want:   row{Measured: "0.091", Spread: "0.091 to 0.091", Verdict: "met", Detail: "501 calls for 5510 items; with all until the last XR is released 0.200"},
		},
		"Release": {
			reason: "A release is compared with what Crossplane needs itself.", results: Results{Releases: release}, figure: "End of items",
			want: row{Measured: "3x", Spread: "-", Verdict: "missed", Detail: "30 s / 10 s"},
		},
		"Backup": {
			reason: "Objects that only one backup has must be named.", figure: "Backup of the same",
			results: Results{Backups: []lab.Backups{{Plugin: &lab.Backup{Items: 12, Seconds: 5}, Alone: &lab.Backup{Items: 11, Seconds: 5}, More: []string{"compositions/c"}}}},
			want:    row{Measured: "1x", Spread: "-", Verdict: "met", Detail: "5 s / 5 s; 12 / 11 objects; only with the plugin: compositions/c"},
		},
		"Proportional": {
			reason: "A cost that grows in proportion to the objects must be within the limit.", results: Results{Base: grown(1), Large: grown(10)}, figure: "Cost of everything",
			want: row{Measured: "10x", Spread: "-", Verdict: "met", Detail: "restore 10x, calls 1x, poll 10x, release 10x, backup 10x"},
		},
		"Worst": {
			reason: "One thing that grows faster is enough to miss the target.", results: Results{Base: grown(1), Large: larger}, figure: "Cost of everything",
			want: row{Measured: "25x", Spread: "-", Verdict: "missed", Detail: "restore 10x, calls 1x, poll 25x, release 10x, backup 10x"},
		},
		"HeldOnly": {
			reason:  "A measured figure must count when the others are missing, and Velero's own growth is no cost of the plugin.",
			results: Results{Base: Growth{Held: grown(1).Held}, Large: grown(10), Restores: pairs, LargeAlone: restored(3000)}, figure: "Cost of everything",
			want: row{Measured: "10x", Spread: "-", Verdict: "met", Detail: "restore 10x, calls 1x, poll 10x, Velero alone 30x"},
		},
		"Memory": {
			reason: "The largest process must count, for any work.", results: Results{Large: larger}, figure: "Peak RSS of the plugin, 55000",
			want: row{Measured: "300 MB", Spread: "-", Verdict: "missed", Detail: "restoring 60, polling 300, releasing 80, backing up 50"},
		},
		"Velero": {
			reason:  "Velero's own memory must be shown, without a target.",
			results: Results{Restores: pairs, LargeAlone: &lab.Restore{VeleroPeak: 300 << 20}}, figure: "Peak RSS of Velero alone while it restores 55000",
			want: row{Measured: "300 MB", Spread: "-", Detail: "90 MB at 5500 items"},
		},
		"Inspect": {
			reason:  "Inspect is compared with decoding the same file.",
			results: Results{Inspections: []Inspections{{Inspect: &meter.Run{Seconds: 3, Peak: 200 << 20}, Decode: &meter.Run{Seconds: 2}}}}, figure: "inspect of a backup of 100000",
			want: row{Measured: "1.50x", Spread: "-", Verdict: "met", Detail: "3 s / 2 s"},
		},
		"Peer": {
			reason: "The whole job is compared: backup, restore and release with export, apply and reconcile.",
			results: Results{
				Releases: release, Backups: []lab.Backups{{Plugin: &lab.Backup{Seconds: 10}, Alone: &lab.Backup{Seconds: 10}}},
				Peer: &lab.Peer{Export: 4, Apply: 200, Settled: 76, Objects: 5500, Created: 1500, Ready: true, Requests: 16500},
			},
			figure: "Backup, restore and adoption",
			want:   row{Measured: "0.500x", Spread: "-", Verdict: "met", Detail: "10 + 100 + 30 s / 4 + 200 + 76 s, 16500 calls of kubectl"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, figureOf(t, &tc.results, tc.figure)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 2: "2", 0.1234: "0.123", 1.005: "1.00", 1.149: "1.15", 12.34: "12.3", 123.4: "123", 5510: "5510"} {
		if got := number(v); got != want {
			t.Errorf("%v is %q, not %q", v, got, want)
		}
	}
}

// The page has marks around the generated section.
func TestReplace(t *testing.T) {
	page, err := os.ReadFile("../../docs/dev/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	results := Results{Restores: []Restores{{Plugin: restored(110), Alone: restored(100)}}}
	for part, text := range map[string]string{Figures: (&Record{Sizes: sizes}).Section(results.Figures(sizes)), Requests: results.Requests()} {
		got, err := marked.Replace(page, part, text)
		if err != nil || !bytes.Contains(got, []byte(text)) {
			t.Errorf("%s is not written: %v", part, err)
		}
	}
	if want := "| list configmaps | 0 | 0 | 1 |\n"; !strings.Contains(results.Requests(), want) {
		t.Errorf("There is no %q in:\n%s", want, results.Requests())
	}
	var table bytes.Buffer
	if err := Print(&table, results.Figures(sizes)); err != nil || !strings.Contains(table.String(), "not measured") {
		t.Errorf("The table must have each figure, also what was not measured: %v\n%s", err, &table)
	}
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(s *Sizes)
		fails  bool
	}{
		"Full":      {reason: "The sizes of the targets are fine.", change: func(*Sizes) {}},
		"NoMRs":     {reason: "An XR that composes nothing shows nothing.", change: func(s *Sizes) { s.MRs = 0 }, fails: true},
		"NotLarger": {reason: "The larger size must be larger.", change: func(s *Sizes) { s.Large = s.XRs }, fails: true},
		"Few":       {reason: "A tenth of what is inspected must be something.", change: func(s *Sizes) { s.Objects = 50 }, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := Full()
			tc.change(&s)
			if err := s.Check(); (err != nil) != tc.fails {
				t.Errorf("%s\nerror: %v", tc.reason, err)
			}
		})
	}
}
