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
		for _, name := range stack.Programs(p.From.options("source"), p.To.options("target")) {
			if !slices.Contains(build.Names(), name) {
				t.Errorf("%s needs %s, which nobody can build", p, name)
			}
		}
		if of := p.of("plugin"); strings.Contains(of, ", ,") || strings.HasSuffix(of, ", ") {
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
		"v1.20-v2.0": true, "v1.20-v2.3": true, "v2.0-v2.3": true, "v2.3-v2.2": true, "v1.16-v1.18": true, "v1.17-v1.18": true,
		"v2.3-v2.0": false, "v2.0-v1.20": false, "v1.18-v1.17": false, "v2.3-v2.3": false,
	} {
		if names[name] != want {
			t.Errorf("%s is a pair: %t", name, names[name])
		}
	}
}

func TestOnlyPairs(t *testing.T) {
	got, err := OnlyPairs([]string{"v1.20-v2.3", "v1.16-v1.18"})
	want := []Pair{
		{From: Side{Velero: "v1.18", Crossplane: "v1.20"}, To: Side{Velero: "v1.18", Crossplane: "v2.3"}},
		{From: Side{Velero: "v1.16", Crossplane: "v2.3"}, To: Side{Velero: "v1.18", Crossplane: "v2.3"}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("-want, +got:\n%s%v", diff, err)
	}
	if got, err := OnlyPairs([]string{"v2.3-v1.20"}); err == nil {
		t.Errorf("what is no pair is %v", got)
	}
}

func TestPairSection(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pairs, err := OnlyPairs([]string{"v1.20-v2.3", "v2.0-v2.3", "v1.16-v1.18"})
	if err != nil {
		t.Fatal(err)
	}
	section := PairSection(map[Pair]Result{
		pairs[0]: {At: at, Recovery: sound()},
		pairs[1]: {At: at, Recovery: &drill.Recovery{}, Failed: "1 create"},
		pairs[2]: {At: at, Recovery: sound()},
	}, "a machine", at)
	lines := strings.Split(section, "\n")
	for _, want := range []string{
		"| Crossplane " + build.Version("crossplane-v2") + " | 9 of 9 adopted in 12 s, 2026-01-02; native Compositions held until they were converted | " +
			"**broken**, 2026-01-02: 1 create | not run | not run | the matrix above |",
		"| Velero " + build.Version(stack.Velero) + " | 9 of 9 adopted in 12 s, 2026-01-02 | not run | the matrix above |",
		"| Velero " + build.Version("velero-v1.16") + " | the matrix above | no upgrade | no upgrade |",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("there is no line\n%s\nin\n%s", want, section)
		}
	}
}
