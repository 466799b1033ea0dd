package compat

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A Side has the minor versions of Velero, Crossplane and Kubernetes on one side of a restore. An
// empty Kubernetes is the default version.
type Side struct {
	Velero, Crossplane, Kubernetes string
}

// A Pair has the versions that make a backup, and those that restore it.
type Pair struct {
	From, To Side
	// Alone runs Velero without the plugin, as a control.
	Alone bool
}

// Pairs returns the pairs that an upgrade of Crossplane, Velero or Kubernetes can make, and one
// step back between minors of Crossplane v2. The other versions are the newest.
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

// Controls returns one pair for each kind of step, with Velero alone.
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

// OnlyPairs returns the pairs with those names, or all without names. A name has the two minors
// that differ, such as v1.20-v2.3, and for a control a suffix: v1.20-v2.4-alone. It fails if a name
// is unknown.
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

// step returns the minor versions that differ.
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

// name returns the pair's name for OnlyPairs.
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

// judge returns an error for a control without damage.
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

// options returns the options of a side's cluster.
func (p Pair) options(s Side, name string) stack.Options {
	return stack.Options{
		Name: name, Velero: program(veleros(), s.Velero), Crossplane: stack.Version(program(crossplanes(), s.Crossplane)), Plugin: !p.Alone, KubernetesProvider: true,
		Kubernetes: s.Kubernetes,
		VeleroArgs: []string{"--item-operation-sync-frequency=2s"},
	}
}

// old reports whether the backup may use a mode that the target's Crossplane does not have any
// more.
func (p Pair) old() bool { return !isV2(p.From.Crossplane) && isV2(p.To.Crossplane) }
