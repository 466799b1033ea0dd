// Package compat loses and restores a cluster with each supported combination of versions, and
// writes tables of the results.
package compat

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// A Case has the versions that make a backup, and those that restore it. They are the same for a
// cell of the matrix; a pair has others.
type Case struct {
	From, To Side
	// Alone runs Velero without the plugin, as a control.
	Alone bool
}

// A Side has the minor versions on one side of a restore. An empty Kubernetes is the default
// version. Two programs never have the same minor, so a minor alone identifies its program.
type Side struct {
	Velero, Crossplane, Kubernetes string
}

// versions are minor versions of one program, the oldest first, with the stack's programs.
type versions []struct{ minor, program string }

func veleros() versions {
	return versions{{"v1.16", "velero-v1.16"}, {"v1.17", "velero-v1.17"}, {"v1.18", stack.Velero}}
}

func crossplanes() versions {
	return versions{
		{"v1.20", string(stack.V1)},
		{"v2.0", string(stack.V20)},
		{"v2.1", string(stack.V21)},
		{"v2.2", string(stack.V22)},
		{"v2.3", string(stack.V2)},
		{"v2.4", string(stack.V24)},
	}
}

func kubernetes() versions {
	return versions{{"v1.30", stack.APIServer + "-v1.30"}, {"v1.37", stack.APIServer + "-v1.37"}}
}

// program returns the name of the program with a minor version.
func (of versions) program(minor string) string {
	for _, v := range of {
		if v.minor == minor {
			return v.program
		}
	}

	return ""
}

// exact returns the full version of a minor.
func (of versions) exact(minor string) string { return build.Version(of.program(minor)) }

// Cells returns all combinations.
func Cells() []Case {
	var cells []Case
	for _, k := range kubernetes() {
		for _, x := range crossplanes() {
			for _, v := range veleros() {
				cells = append(cells, cell(Side{Velero: v.minor, Crossplane: x.minor, Kubernetes: k.minor}))
			}
		}
	}

	return cells
}

func cell(s Side) Case { return Case{From: s, To: s} }

// Only returns the cells that have all of the minors. It fails if there are none.
func Only(minors []string) ([]Case, error) {
	cells := slices.DeleteFunc(Cells(), func(c Case) bool {
		return slices.ContainsFunc(minors, func(m string) bool { return m != c.To.Velero && m != c.To.Crossplane && m != c.To.Kubernetes })
	})
	if len(cells) == 0 {
		return nil, fmt.Errorf("cannot find a cell of %s: name at most one minor version each of Velero, Crossplane and Kubernetes, such as v1.16,v2.0,v1.37",
			strings.Join(minors, ", "))
	}

	return cells, nil
}

// Pairs returns the pairs that an upgrade of Crossplane, Velero or Kubernetes can make, and one
// step back between minors of Crossplane v2. The other versions are the newest.
func Pairs() []Case {
	var pairs []Case
	vs, xs, ks := veleros(), crossplanes(), kubernetes()
	newest := Side{Velero: vs[len(vs)-1].minor, Crossplane: xs[len(xs)-1].minor}
	for i, from := range xs {
		for j, to := range xs {
			if j > i || j == i-1 && isV2(to.minor) {
				pairs = append(pairs, Case{From: Side{Velero: newest.Velero, Crossplane: from.minor}, To: Side{Velero: newest.Velero, Crossplane: to.minor}})
			}
		}
	}
	for i, from := range vs {
		for _, to := range vs[i+1:] {
			pairs = append(pairs, Case{From: Side{Velero: from.minor, Crossplane: newest.Crossplane}, To: Side{Velero: to.minor, Crossplane: newest.Crossplane}})
		}
	}
	from, to := newest, newest
	from.Kubernetes, to.Kubernetes = ks[0].minor, ks[len(ks)-1].minor

	return append(pairs, Case{From: from, To: to})
}

// Controls returns one pair for each kind of step, with Velero alone.
func Controls() []Case {
	var controls []Case
	for _, p := range Pairs() {
		if slices.Contains([]string{"v1.20-v2.4", "v2.3-v2.4", "v2.4-v2.3", "v1.16-v1.18", "v1.30-v1.37"}, p.name()) {
			p.Alone = true
			controls = append(controls, p)
		}
	}

	return controls
}

// OnlyPairs returns the pairs with those names, or all without names. A name has the two minors
// that differ, such as v1.20-v2.3, and for a control a suffix: v1.20-v2.4-alone. It fails if a name
// is unknown.
func OnlyPairs(names []string) ([]Case, error) {
	all := append(Pairs(), Controls()...)
	if len(names) == 0 {
		return all, nil
	}
	var wanted []Case
	for _, name := range names {
		i := slices.IndexFunc(all, func(p Case) bool { return p.name() == name })
		if i < 0 {
			return nil, fmt.Errorf("cannot find the pair %s: name the two minor versions of Crossplane, Velero or Kubernetes, such as v1.20-v2.3 or v1.30-v1.37", name)
		}
		wanted = append(wanted, all[i])
	}

	return wanted, nil
}

func isV2(minor string) bool { return strings.HasPrefix(minor, "v2.") }

func (c Case) isCell() bool { return c.From == c.To }

// step returns the minor versions that differ in a pair.
func (c Case) step() (from, to string) {
	switch {
	case c.From.Velero != c.To.Velero:
		return c.From.Velero, c.To.Velero
	case c.From.Kubernetes != c.To.Kubernetes:
		return c.From.Kubernetes, c.To.Kubernetes
	default:
		return c.From.Crossplane, c.To.Crossplane
	}
}

// name returns a pair's name for OnlyPairs.
func (c Case) name() string {
	return strings.NewReplacer("from-", "", "_to-", "-", "_alone", "-alone").Replace(c.String())
}

// String names the case, and the file of its result.
func (c Case) String() string {
	if c.isCell() {
		return "velero-" + c.To.Velero + "_crossplane-" + c.To.Crossplane + "_kubernetes-" + c.To.Kubernetes
	}
	from, to := c.step()
	if c.Alone {
		to += "_alone"
	}

	return "from-" + from + "_to-" + to
}

// versions returns the full versions.
func (c Case) versions() string {
	if c.isCell() {
		return c.To.exact()
	}

	return c.From.exact() + ", " + c.To.exact()
}

func (s Side) exact() string {
	all := veleros().exact(s.Velero) + ", " + crossplanes().exact(s.Crossplane)
	if s.Kubernetes != "" {
		all += ", " + kubernetes().exact(s.Kubernetes)
	}

	return all
}

// judge returns what is wrong in a recovery; nil if nothing is. A control without damage is wrong.
func (c Case) judge(r *drill.Recovery) error {
	switch {
	case c.Alone && r.Creates+r.Deletes+r.Duplicates == 0 && r.Adopted == r.Total:
		return errors.New("cannot show what the plugin is for: Velero alone did no damage")
	case c.Alone || r.Sound():
		return nil
	}
	wrong := []string{fmt.Sprintf("the restore is %s; %d creates, %d deletes, %d duplicates, %d orphans, %d of %d adopted, %d held",
		r.Phase, r.Creates, r.Deletes, r.Duplicates, r.Orphans, r.Adopted, r.Total, r.Holds)}

	return errors.New(strings.Join(append(wrong, r.Wrong...), "; "))
}

// options returns the options of a side's cluster.
func (c Case) options(s Side, name string) stack.Options {
	o := stack.Options{
		Name: name, Velero: veleros().program(s.Velero), Crossplane: stack.Version(crossplanes().program(s.Crossplane)), Kubernetes: s.Kubernetes, Plugin: !c.Alone,
	}
	if !c.isCell() {
		o.KubernetesProvider, o.VeleroArgs = true, []string{"--item-operation-sync-frequency=2s"}
	}

	return o
}

// old reports whether the backup may use a mode that the target's Crossplane does not have any
// more.
func (c Case) old() bool { return !isV2(c.From.Crossplane) && isV2(c.To.Crossplane) }
