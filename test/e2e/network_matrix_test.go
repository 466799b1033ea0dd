//go:build matrix

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestMatrixNetworkV2(t *testing.T) { testNetworkMatrix(t, stack.V2) }

func TestMatrixNetworkV1(t *testing.T) { testNetworkMatrix(t, stack.V1) }

// faultyRestores returns one for each kind of fault and some with all kinds, for all programs and for the
// plugin alone; or those that NETWORK_ONLY names.
func faultyRestores(t *testing.T) []faultyRestore {
	t.Helper()
	const (
		few   = 0.03
		some  = 0.05
		many  = 0.1
		seeds = 2
		// patience is the plugin's patience and a margin.
		patience = 32 * time.Second
	)
	first := seed(t)
	var all []faultyRestore
	for _, kind := range stack.AllFaults() {
		o := faultyRestore{name: string(kind), kinds: []stack.Fault{kind}, rate: many, seed: first, onwards: true}
		if kind == stack.Hang {
			o.rate, o.hang = few, patience
		}
		all = append(all, o)
	}
	for i := range uint64(seeds) {
		all = append(all, faultyRestore{name: fmt.Sprintf("Mixed%d", i+1), kinds: quick(), rate: some, seed: first + i, onwards: true},
			faultyRestore{name: fmt.Sprintf("Plugin%d", i+1), kinds: ofAnswers(), rate: many + some*float64(i), programs: []string{plugin}, seed: first + i, onwards: true})
	}
	only := os.Getenv("NETWORK_ONLY")

	return slices.DeleteFunc(all, func(o faultyRestore) bool { return only != "" && !slices.Contains(strings.Split(only, ","), o.name) })
}

func testNetworkMatrix(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	all := faultyRestores(t)
	tenants := make([]*tenant, len(all))
	for i, o := range all {
		p := drill.Platform{Namespace: strings.ToLower(o.name)}
		if hasSettings(o) {
			p.Without = []string{"database"}
		}
		tenants[i] = s.tenant(t, s.source, p)
	}
	for i, n := range tenants {
		if hasSettings(all[i]) {
			s.settings(t, n)
		}
		s.backUp(t, s.source, n)
	}
	t.Run("Backup", func(t *testing.T) { s.testNetworkBackup(t, tenants[0], all[0].seed) })
	s.loseSource(t, tenants...)
	p := s.divert(t)
	for i, o := range all {
		t.Run(o.name, func(t *testing.T) { s.testNetwork(t, p, tenants[i], o) })
	}
	t.Run("InTheEnd", func(t *testing.T) {
		for _, n := range tenants {
			s.wantSound(t, n)
		}
	})
}

// hasSettings reports whether the tenant has a user's own settings. They take time, so only restores
// that lose writes, or have all faults, have them.
func hasSettings(o faultyRestore) bool {
	return len(o.kinds) > 1 || o.kinds[0] == stack.Unanswered || o.kinds[0] == stack.Conflict
}
