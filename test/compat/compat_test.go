package compat

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/ledger"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// Without this test, a program that the build package does not know would show only after hours.
func TestCells(t *testing.T) {
	cells := Cells()
	if len(cells) != 3*6*2 {
		t.Errorf("there are %d cells", len(cells))
	}
	for _, c := range cells {
		for _, name := range stack.Programs(c.Options()) {
			if !slices.Contains(build.Names(), name) {
				t.Errorf("%s needs %s, which has no recipe", c, name)
			}
		}
		if of := c.versions(); strings.HasPrefix(of, ", ") || strings.Contains(of, ", ,") || strings.HasSuffix(of, ", ") {
			t.Errorf("the versions of %s are not known: %s", c, of)
		}
		for _, minor := range []string{exact(veleros(), c.Velero), exact(crossplanes(), c.Crossplane), exact(kubernetes(), c.Kubernetes)} {
			if !strings.HasPrefix(minor, c.Velero+".") && !strings.HasPrefix(minor, c.Crossplane+".") && !strings.HasPrefix(minor, c.Kubernetes+".") {
				t.Errorf("%s has %s", c, minor)
			}
		}
	}
}

func TestOnly(t *testing.T) {
	cases := map[string]struct {
		reason string
		minors []string
		want   int
	}{
		"All":     {reason: "By default.", want: 36},
		"Velero":  {reason: "All with one Velero.", minors: []string{"v1.16"}, want: 12},
		"One":     {reason: "A minor of each.", minors: []string{"v1.37", "v2.0", "v1.16"}, want: 1},
		"Two":     {reason: "No cell has two of a kind.", minors: []string{"v2.0", "v2.1"}},
		"Unknown": {reason: "A minor that is not in the matrix must be an error.", minors: []string{"v3.0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Only(tc.minors)
			if len(got) != tc.want || (err != nil) != (tc.want == 0) {
				t.Errorf("%s\ngot %v, error %v", tc.reason, got, err)
			}
		})
	}
}

func sound() *drill.Recovery {
	return &drill.Recovery{Outcome: drill.Outcome{Adopted: 9, Total: 9}, Phase: "Completed", Seconds: 12.3}
}

// A good result is stored and reused. A bad one is repeated until it is good.
func TestRun(t *testing.T) {
	kept, failing, late := Cells()[0], Cells()[1], Cells()[2]
	l, err := ledger.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var played []Cell
	play := func(recovery *drill.Recovery, err error) func(context.Context, Cell, io.Writer) (*drill.Recovery, error) {
		return func(_ context.Context, c Cell, _ io.Writer) (*drill.Recovery, error) {
			played = append(played, c)
			if c == failing {
				return recovery, err
			}

			return sound(), nil
		}
	}
	held := sound()
	held.Adopted, held.Holds = 8, 1
	cases := []struct {
		name, reason string
		source       string
		wanted       []Cell
		recovery     *drill.Recovery
		err          error
		played       []Cell
		failed       map[Cell]string
	}{
		{
			name: "First", reason: "All that is wanted is run.", source: "a", wanted: []Cell{kept, failing}, recovery: held, played: []Cell{kept, failing},
			failed: map[Cell]string{kept: "", failing: "the restore is Completed; 0 creates, 0 deletes, 0 duplicates, 0 orphans, 8 of 9 adopted, 1 held"},
		},
		{
			name: "Again", reason: "A failed cell must be run again, and stored results of other cells must show.", source: "a", wanted: []Cell{failing}, err: errors.New("no"),
			played: []Cell{failing}, failed: map[Cell]string{kept: "", failing: "no"},
		},
		{
			name: "Mended", reason: "Until it is as it should be.", source: "a", wanted: []Cell{failing, late}, recovery: sound(), played: []Cell{failing, late},
			failed: map[Cell]string{kept: "", failing: "", late: ""},
		},
		{name: "Nothing", reason: "Then nothing is left.", source: "a", wanted: []Cell{kept, failing}, failed: map[Cell]string{kept: "", failing: "", late: ""}},
		{
			name: "Changed", reason: "With another plugin what is wanted is run again, and all else shows what it came to before.", source: "b", wanted: []Cell{kept},
			played: []Cell{kept}, failed: map[Cell]string{kept: "", failing: "", late: ""},
		},
		{
			name: "Broken", reason: "A failure of this plugin must not show as the result of another one.", source: "b", wanted: []Cell{failing}, err: errors.New("no"),
			played: []Cell{failing}, failed: map[Cell]string{kept: "", failing: "no", late: ""},
		},
		{name: "Forgotten", reason: "Not the next time either.", source: "b", wanted: []Cell{kept}, failed: map[Cell]string{kept: "", late: ""}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			played = nil
			r := Runner[Cell]{Ledger: l, All: Cells(), Source: tc.source, Out: t.Output(), Play: play(tc.recovery, tc.err)}
			results, err := r.Run(t.Context(), tc.wanted)
			if err != nil {
				t.Fatal(err)
			}
			failed := map[Cell]string{}
			for c, result := range results {
				failed[c] = result.Failed
			}
			if diff := cmp.Diff(tc.played, played, cmpopts.EquateEmpty()) + cmp.Diff(tc.failed, failed); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			missing, err := r.Missing([]Cell{kept, failing, late})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []Cell{kept, failing, late} {
				if failed, ok := failed[c]; slices.Contains(missing, c) == (ok && failed == "") {
					t.Errorf("%s\nmissing are %v", tc.reason, missing)
				}
			}
		})
	}
}

func TestRunEndsWhenItIsStopped(t *testing.T) {
	l, err := ledger.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := Runner[Cell]{Ledger: l, All: Cells(), Source: "a", Out: t.Output(), Play: func(context.Context, Cell, io.Writer) (*drill.Recovery, error) {
		stop()

		return nil, ctx.Err()
	}}
	if results, err := r.Run(ctx, Cells()); err == nil {
		t.Errorf("a stopped run must have no result: %v", results)
	}
}

func TestSection(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	broken := sound()
	broken.Creates = 1
	section := Section(map[Cell]Result{
		{Velero: "v1.16", Crossplane: "v1.20", Kubernetes: "v1.30"}: {At: at, Commit: "abc1234", Recovery: sound()},
		{Velero: "v1.16", Crossplane: "v1.20", Kubernetes: "v1.37"}: {At: at, Recovery: broken, Failed: "1 create"},
		{Velero: "v1.16", Crossplane: "v2.0", Kubernetes: "v1.30"}:  {At: at, Failed: "it won't\nstart: a|b"},
	}, "a machine", at)
	lines := strings.Split(section, "\n")
	for _, want := range []string{
		"Written by `make compat` on 2026-01-02: 1 of 36 cells are as they should be. The machine: a machine.",
		"| " + build.Version("velero-v1.16") + " | " + build.CrossplaneV1 + " | 9 of 9 adopted in 12 s, 2026-01-02 (abc1234) | **broken**, 2026-01-02: 1 create |",
		"| " + build.Version("velero-v1.16") + " | " + build.Version("crossplane-v2.0") + ` | could not be run, 2026-01-02: it won't start: a\|b | not run |`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("there is no line\n%s\nin\n%s", want, section)
		}
	}
	if rows := strings.Count(section, "\n| v"); rows != 18 {
		t.Errorf("there are %d rows", rows)
	}
}
