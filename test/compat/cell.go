// Package compat loses and restores a cluster with each supported combination of versions, and
// writes tables of the results.
package compat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// A Cell is a combination of minor versions. Two programs never have the same minor, so a minor
// alone identifies its program.
type Cell struct {
	Velero, Crossplane, Kubernetes string
}

// The minor versions, and the stack's programs with them.

func veleros() []version {
	return []version{{"v1.16", "velero-v1.16"}, {"v1.17", "velero-v1.17"}, {"v1.18", stack.Velero}}
}

func crossplanes() []version {
	return []version{
		{"v1.20", string(stack.V1)},
		{"v2.0", string(stack.V20)},
		{"v2.1", string(stack.V21)},
		{"v2.2", string(stack.V22)},
		{"v2.3", string(stack.V2)},
		{"v2.4", string(stack.V24)},
	}
}

func kubernetes() []version {
	return []version{{"v1.30", stack.APIServer + "-v1.30"}, {"v1.37", stack.APIServer + "-v1.37"}}
}

type version struct{ minor, program string }

// program returns the name of the program with a minor version.
func program(of []version, minor string) string {
	for _, v := range of {
		if v.minor == minor {
			return v.program
		}
	}

	return ""
}

// exact returns the full version of a minor.
func exact(of []version, minor string) string { return build.Version(program(of, minor)) }

// Cells returns all combinations.
func Cells() []Cell {
	var cells []Cell
	for _, k := range kubernetes() {
		for _, x := range crossplanes() {
			for _, v := range veleros() {
				cells = append(cells, Cell{Velero: v.minor, Crossplane: x.minor, Kubernetes: k.minor})
			}
		}
	}

	return cells
}

// Only returns the cells that have all of the minors. It fails if there are none.
func Only(minors []string) ([]Cell, error) {
	cells := slices.DeleteFunc(Cells(), func(c Cell) bool {
		return slices.ContainsFunc(minors, func(m string) bool { return m != c.Velero && m != c.Crossplane && m != c.Kubernetes })
	})
	if len(cells) == 0 {
		return nil, fmt.Errorf("cannot find a cell of %s: name at most one minor version each of Velero, Crossplane and Kubernetes, such as v1.16,v2.0,v1.37",
			strings.Join(minors, ", "))
	}

	return cells, nil
}

// String names the cell.
func (c Cell) String() string {
	return "velero-" + c.Velero + "_crossplane-" + c.Crossplane + "_kubernetes-" + c.Kubernetes
}

func (c Cell) versions() string {
	return strings.Join([]string{exact(veleros(), c.Velero), exact(crossplanes(), c.Crossplane), exact(kubernetes(), c.Kubernetes)}, ", ")
}

func (c Cell) judge(r *drill.Recovery) error { return judge(r) }

// Options returns the options of both clusters.
func (c Cell) Options() stack.Options {
	return stack.Options{
		Velero: program(veleros(), c.Velero), Crossplane: stack.Version(program(crossplanes(), c.Crossplane)), Kubernetes: c.Kubernetes, Plugin: true,
	}
}
