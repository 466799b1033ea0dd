package compat

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A Side is the minor versions of Velero, Crossplane and Kubernetes on one side of a restore.
// Without a Kubernetes it has that of all other tests.
type Side struct {
	Velero, Crossplane, Kubernetes string
}

// A Pair is what a backup is made with, and what it is restored with.
type Pair struct {
	From, To Side
	// Alone says that Velero is without the plugin, to see what that is for.
	Alone bool
}

// Pairs are those that an upgrade of Crossplane, Velero or Kubernetes can make, and one step back
// between minors of Crossplane v2. All else is the newest.
func Pairs() []Pair {
	var pairs []Pair
	vs, xs := minors(veleros()), minors(crossplanes())
	newest := Side{Velero: vs[len(vs)-1], Crossplane: xs[len(xs)-1]}
	for i, from := range xs {
		for j, to := range xs {
			back := j == i-1 && isV2(to)
			if j > i || back {
				pairs = append(pairs, Pair{From: Side{Velero: newest.Velero, Crossplane: from}, To: Side{Velero: newest.Velero, Crossplane: to}})
			}
		}
	}
	for i, from := range vs {
		for _, to := range vs[i+1:] {
			pairs = append(pairs, Pair{From: Side{Velero: from, Crossplane: newest.Crossplane}, To: Side{Velero: to, Crossplane: newest.Crossplane}})
		}
	}
	ks := minors(kubernetes())
	from, to := newest, newest
	from.Kubernetes, to.Kubernetes = ks[0], ks[len(ks)-1]

	return append(pairs, Pair{From: from, To: to})
}

// Controls are a pair of each kind of step with Velero alone.
func Controls() []Pair {
	var controls []Pair
	for _, p := range Pairs() {
		switch from, to := p.step(); from + "-" + to {
		case "v1.20-v2.4", "v2.3-v2.4", "v2.4-v2.3", "v1.16-v1.18", "v1.30-v1.37":
			p.Alone = true
			controls = append(controls, p)
		}
	}

	return controls
}

// OnlyPairs are those that are named by the two minors that differ, such as v1.20-v2.3, or
// v1.20-v2.4-alone for a control; all if none is named. It fails if one is no pair.
func OnlyPairs(names []string) ([]Pair, error) {
	all := append(Pairs(), Controls()...)
	if len(names) == 0 {
		return all, nil
	}
	var wanted []Pair
	for _, name := range names {
		i := slices.IndexFunc(all, func(p Pair) bool { return p.name() == name })
		if i < 0 {
			return nil, fmt.Errorf("cannot find the pair %s: name the two minor versions of Crossplane, Velero or Kubernetes, such as v1.20-v2.3 or v1.30-v1.37", name)
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
	switch {
	case p.From.Velero != p.To.Velero:
		return p.From.Velero, p.To.Velero
	case p.From.Kubernetes != p.To.Kubernetes:
		return p.From.Kubernetes, p.To.Kubernetes
	default:
		return p.From.Crossplane, p.To.Crossplane
	}
}

// name is what OnlyPairs knows the pair by.
func (p Pair) name() string {
	from, to := p.step()
	if p.Alone {
		to += "-alone"
	}

	return from + "-" + to
}

// String names the pair.
func (p Pair) String() string {
	from, to := p.step()
	if p.Alone {
		to += "_alone"
	}

	return "from-" + from + "_to-" + to
}

func (p Pair) versions() string { return p.From.exact() + ", " + p.To.exact() }

// judge wants of a control that it shows damage.
func (p Pair) judge(r *drill.Recovery) error {
	if !p.Alone {
		return judge(r)
	}
	if r.Creates+r.Deletes+r.Duplicates == 0 && r.Adopted == r.Total {
		return errors.New("cannot show what the plugin is for: Velero alone did no damage")
	}

	return nil
}

func (s Side) exact() string {
	all := exact(veleros(), s.Velero) + ", " + exact(crossplanes(), s.Crossplane)
	if s.Kubernetes != "" {
		all += ", " + exact(kubernetes(), s.Kubernetes)
	}

	return all
}

// options are those of the cluster of a side.
func (p Pair) options(s Side, name string) stack.Options {
	return stack.Options{
		Name: name, Velero: program(veleros(), s.Velero), Crossplane: stack.Version(program(crossplanes(), s.Crossplane)), Plugin: !p.Alone, KubernetesProvider: true,
		Kubernetes: s.Kubernetes,
		VeleroArgs: []string{"--item-operation-sync-frequency=2s"},
	}
}

// old reports whether what the backup has may be in a mode that Crossplane does not have any more.
func (p Pair) old() bool { return !isV2(p.From.Crossplane) && isV2(p.To.Crossplane) }
