package compat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A Side is the minor versions of Velero and Crossplane on one side of a restore.
type Side struct {
	Velero, Crossplane string
}

// A Pair is what a backup is made with, and what it is restored with.
type Pair struct {
	From, To Side
}

// Pairs are those that an upgrade of Crossplane or Velero can make, and one step back between minors of Crossplane v2. All else is the newest.
func Pairs() []Pair {
	var pairs []Pair
	vs, xs := minors(veleros()), minors(crossplanes())
	newest := Side{Velero: vs[len(vs)-1], Crossplane: xs[len(xs)-1]}
	for i, from := range xs {
		for j, to := range xs {
			back := j == i-1 && isV2(to)
			if j > i || back {
				pairs = append(pairs, Pair{From: Side{newest.Velero, from}, To: Side{newest.Velero, to}})
			}
		}
	}
	for i, from := range vs {
		for _, to := range vs[i+1:] {
			pairs = append(pairs, Pair{From: Side{from, newest.Crossplane}, To: Side{to, newest.Crossplane}})
		}
	}

	return pairs
}

// OnlyPairs are those that are named by the two minors that differ, such as v1.20-v2.3; all if none is named. It fails if one is no pair.
func OnlyPairs(names []string) ([]Pair, error) {
	all := Pairs()
	if len(names) == 0 {
		return all, nil
	}
	var wanted []Pair
	for _, name := range names {
		i := slices.IndexFunc(all, func(p Pair) bool { from, to := p.step(); return from+"-"+to == name })
		if i < 0 {
			return nil, fmt.Errorf("cannot find the pair %s: name the two minor versions of Crossplane or Velero, such as v1.20-v2.3 or v1.16-v1.18", name)
		}
		wanted = append(wanted, all[i])
	}

	return wanted, nil
}

func minors(of []version) []string {
	var all []string
	for _, v := range of {
		all = append(all, v.minor)
	}

	return all
}

func isV2(minor string) bool { return strings.HasPrefix(minor, "v2.") }

// step are the minor versions that differ.
func (p Pair) step() (from, to string) {
	if p.From.Velero != p.To.Velero {
		return p.From.Velero, p.To.Velero
	}

	return p.From.Crossplane, p.To.Crossplane
}

// String names the pair.
func (p Pair) String() string {
	from, to := p.step()

	return "from-" + from + "_to-" + to
}

// of is what a result of the pair is a result of.
func (p Pair) of(source string) string {
	return strings.Join([]string{source, p.From.exact(), p.To.exact()}, ", ")
}

func (s Side) exact() string {
	return exact(veleros(), s.Velero) + ", " + exact(crossplanes(), s.Crossplane)
}

// options are those of a cluster of the side.
func (s Side) options(name string) stack.Options {
	return stack.Options{
		Name: name, Velero: program(veleros(), s.Velero), Crossplane: stack.Version(program(crossplanes(), s.Crossplane)), Plugin: true, KubernetesProvider: true,
		VeleroArgs: []string{"--item-operation-sync-frequency=2s"},
	}
}

// old tells whether what the backup has may be in a mode that Crossplane does not have any more.
func (p Pair) old() bool { return !isV2(p.From.Crossplane) && isV2(p.To.Crossplane) }
