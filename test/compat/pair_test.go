package compat

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

func TestPairs(t *testing.T) {
	names := map[string]bool{}
	for _, p := range Pairs() {
		from, to := p.step()
		names[from+"-"+to] = true
		for _, name := range stack.Programs(p.options(p.From, "source"), p.options(p.To, "target")) {
			if !slices.Contains(build.Names(), name) {
				t.Errorf("%s needs %s, which has no recipe", p, name)
			}
		}
		if of := p.versions(); strings.HasPrefix(of, ", ") || strings.Contains(of, ", ,") || strings.HasSuffix(of, ", ") {
			t.Errorf("the versions of %s are not known: %s", p, of)
		}
		scenes, err := p.scenes()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range scenes {
			if _, err := os.Stat(s.Dir); err != nil {
				t.Errorf("%s has a scene that is not there: %v", p, err)
			}
		}
	}
	for name, want := range map[string]bool{
		"v1.20-v2.0": true, "v1.20-v2.3": true, "v2.0-v2.3": true, "v2.3-v2.2": true, "v2.4-v2.3": true, "v1.20-v2.4": true, "v1.16-v1.18": true, "v1.17-v1.18": true, "v1.30-v1.37": true,
		"v1.37-v1.30": false, "v2.3-v2.0": false, "v2.0-v1.20": false, "v1.18-v1.17": false, "v2.3-v2.3": false,
	} {
		if names[name] != want {
			t.Errorf("%s is a pair: %t", name, names[name])
		}
	}
}

func TestOnlyPairs(t *testing.T) {
	got, err := OnlyPairs([]string{"v1.20-v2.3", "v1.16-v1.18", "v2.4-v2.3-alone"})
	want := []Pair{
		{From: Side{Velero: "v1.18", Crossplane: "v1.20"}, To: Side{Velero: "v1.18", Crossplane: "v2.3"}},
		{From: Side{Velero: "v1.16", Crossplane: "v2.4"}, To: Side{Velero: "v1.18", Crossplane: "v2.4"}},
		{From: Side{Velero: "v1.18", Crossplane: "v2.4"}, To: Side{Velero: "v1.18", Crossplane: "v2.3"}, Alone: true},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("-want, +got:\n%s%v", diff, err)
	}
	if got, err := OnlyPairs([]string{"v2.3-v1.20"}); err == nil {
		t.Errorf("an unknown pair is %v", got)
	}
}

// A control without damage is an error.
func TestControls(t *testing.T) {
	for _, p := range Controls() {
		if got, err := OnlyPairs([]string{p.name()}); err != nil || !slices.Equal(got, []Pair{p}) || !p.Alone {
			t.Errorf("%s is the name of %v: %v", p.name(), got, err)
		}
		if err := p.judge(sound()); err == nil {
			t.Errorf("%s is as it should be without any damage", p)
		}
		if err := p.judge(&drill.Recovery{Outcome: drill.Outcome{Creates: 1, Total: 9}}); err != nil {
			t.Errorf("%s shows damage: %v", p, err)
		}
	}
	if n := len(Controls()); n != 5 {
		t.Errorf("there are %d controls", n)
	}
}

func TestPairSection(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pairs, err := OnlyPairs([]string{"v1.20-v2.3", "v2.0-v2.3", "v1.16-v1.18", "v2.4-v2.3-alone"})
	if err != nil {
		t.Fatal(err)
	}
	section := PairSection(map[Pair]Result{
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
