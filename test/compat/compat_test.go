package compat

import (
	"context"
	"errors"
	"io"
	"os"
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

// Without this test, a program that the build package does not know, or a scene that is not there,
// would show only after hours.
func TestCases(t *testing.T) {
	names := map[string]bool{}
	for _, c := range slices.Concat(Cells(), Pairs(), Controls()) {
		names[c.String()] = true
		for _, name := range stack.Programs(c.options(c.From, "source"), c.options(c.To, "target")) {
			if !slices.Contains(build.Names(), name) {
				t.Errorf("%s needs %s, which has no recipe", c, name)
			}
		}
		for _, s := range []Side{c.From, c.To} {
			of := strings.Split(s.exact(), ", ")
			for i, minor := range []string{s.Velero, s.Crossplane, s.Kubernetes} {
				if minor != "" && !strings.HasPrefix(of[i], minor+".") {
					t.Errorf("%s has %s, which is not of %s", c, of[i], minor)
				}
			}
		}
		if c.isCell() {
			continue
		}
		scenes, err := c.scenes()
		for _, s := range scenes {
			_, missing := os.Stat(s.Dir)
			err = errors.Join(err, missing)
		}
		got, unknown := OnlyPairs([]string{c.name()})
		if err := errors.Join(err, unknown); err != nil || !slices.Equal(got, []Case{c}) {
			t.Errorf("%s is found as %v, or has a scene that is not there: %v", c, got, err)
		}
	}
	for _, wrong := range []string{"from-v1.37_to-v1.30", "from-v2.3_to-v2.0", "from-v2.0_to-v1.20", "from-v1.18_to-v1.17", "from-v2.3_to-v2.3"} {
		if names[wrong] {
			t.Errorf("%s is no upgrade, and no step back of one minor", wrong)
		}
	}
	if len(names) != 36+23+5 {
		t.Errorf("there are %d cases", len(names))
	}
}

func TestOnly(t *testing.T) {
	for only, want := range map[string]int{"": 36, "v1.16": 12, "v1.37,v2.0,v1.16": 1, "v2.0,v2.1": 0, "v3.0": 0} {
		got, err := Only(strings.FieldsFunc(only, func(r rune) bool { return r == ',' }))
		if len(got) != want || (err != nil) != (want == 0) {
			t.Errorf("of %q there are %v, error %v, and not %d", only, got, err, want)
		}
	}
	if got, err := OnlyPairs([]string{"v2.3-v1.20"}); err == nil {
		t.Errorf("an unknown pair is %v", got)
	}
}

// A control without damage is an error.
func TestControls(t *testing.T) {
	for _, p := range Controls() {
		if err := p.judge(sound()); err == nil || !p.Alone {
			t.Errorf("%s is as it should be without any damage", p)
		}
		if err := p.judge(&drill.Recovery{Outcome: drill.Outcome{Creates: 1, Total: 9}}); err != nil {
			t.Errorf("%s shows damage: %v", p, err)
		}
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
	var played []Case
	play := func(recovery *drill.Recovery, err error) func(context.Context, Case, io.Writer) (*drill.Recovery, error) {
		return func(_ context.Context, c Case, _ io.Writer) (*drill.Recovery, error) {
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
		wanted       []Case
		recovery     *drill.Recovery
		err          error
		played       []Case
		failed       map[Case]string
	}{
		{
			name: "First", reason: "All that is wanted is run.", source: "a", wanted: []Case{kept, failing}, recovery: held, played: []Case{kept, failing},
			failed: map[Case]string{kept: "", failing: "the restore is Completed; 0 creates, 0 deletes, 0 duplicates, 0 orphans, 8 of 9 adopted, 1 held"},
		},
		{
			name: "Again", reason: "A failed cell must be run again, and stored results of other cells must show.", source: "a", wanted: []Case{failing}, err: errors.New("no"),
			played: []Case{failing}, failed: map[Case]string{kept: "", failing: "no"},
		},
		{
			name: "Mended", reason: "Until it is as it should be.", source: "a", wanted: []Case{failing, late}, recovery: sound(), played: []Case{failing, late},
			failed: map[Case]string{kept: "", failing: "", late: ""},
		},
		{
			name: "Changed", reason: "With another plugin what is wanted is run again, and all else shows what it came to before.", source: "b", wanted: []Case{kept},
			played: []Case{kept}, failed: map[Case]string{kept: "", failing: "", late: ""},
		},
		{
			name: "Broken", reason: "A failure of this plugin must not show as the result of another one.", source: "b", wanted: []Case{failing}, err: errors.New("no"),
			played: []Case{failing}, failed: map[Case]string{kept: "", failing: "no", late: ""},
		},
		{name: "Forgotten", reason: "Not the next time either.", source: "b", wanted: []Case{kept}, failed: map[Case]string{kept: "", late: ""}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			played = nil
			r := Runner{Ledger: l, All: Cells(), Source: tc.source, Out: t.Output(), Play: play(tc.recovery, tc.err)}
			results, err := r.Run(t.Context(), tc.wanted)
			if err != nil {
				t.Fatal(err)
			}
			failed := map[Case]string{}
			for c, result := range results {
				failed[c] = result.Failed
			}
			if diff := cmp.Diff(tc.played, played, cmpopts.EquateEmpty()) + cmp.Diff(tc.failed, failed); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			missing, err := r.Missing([]Case{kept, failing, late})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []Case{kept, failing, late} {
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
	r := Runner{Ledger: l, All: Cells(), Source: "a", Out: t.Output(), Play: func(context.Context, Case, io.Writer) (*drill.Recovery, error) {
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
	section := Section(map[Case]Result{
		cell(Side{Velero: "v1.16", Crossplane: "v1.20", Kubernetes: "v1.30"}): {At: at, Commit: "abc1234", Recovery: sound()},
		cell(Side{Velero: "v1.16", Crossplane: "v1.20", Kubernetes: "v1.37"}): {At: at, Recovery: broken, Failed: "1 create"},
		cell(Side{Velero: "v1.16", Crossplane: "v2.0", Kubernetes: "v1.30"}):  {At: at, Failed: "it won't\nstart: a|b"},
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

func TestPairSection(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pairs, err := OnlyPairs([]string{"v1.20-v2.3", "v2.0-v2.3", "v1.16-v1.18", "v2.4-v2.3-alone"})
	if err != nil {
		t.Fatal(err)
	}
	section := PairSection(map[Case]Result{
		pairs[0]: {At: at, Recovery: sound()},
		pairs[1]: {At: at, Recovery: &drill.Recovery{}, Failed: "1 create"},
		pairs[2]: {At: at, Recovery: sound()},
		pairs[3]: {At: at, Recovery: &drill.Recovery{Outcome: drill.Outcome{Creates: 3, Deletes: 2, Duplicates: 1, Adopted: 4, Total: 10}}},
	}, "a machine", at)
	lines := strings.Split(section, "\n")
	for _, want := range []string{
		"| Crossplane " + build.Version("crossplane-v2") + " | 9 of 9 adopted in 12 s, 2026-01-02; native Compositions held until they were converted | " +
			"**broken**, 2026-01-02: 1 create | not run | not run | the matrix above | not run |",
		"| Velero " + build.Version(stack.Velero) + " | 9 of 9 adopted in 12 s, 2026-01-02 | not run | the matrix above |",
		"| v2.4 to v2.3 | 3 | 2 | 1 | 4 of 10 | 2026-01-02 |",
		"| v1.30 to v1.37 |  |  |  |  | not run |",
		"Written by `make compat` on 2026-01-02: 2 of 23 pairs are as they should be. The machine: a machine.",
		"| Velero " + build.Version("velero-v1.16") + " | the matrix above | no upgrade | no upgrade |",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("there is no line\n%s\nin\n%s", want, section)
		}
	}
}
