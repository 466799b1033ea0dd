package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testCompositionChanges changes Compositions at each step of a restore in three ways, and without
// the plugin in each order of events. All tenants are in one pair of clusters, and are restored
// from one backup at the same time.
func testCompositionChanges(t *testing.T, version stack.Version) {
	t.Helper()
	s := newSuite(t, version)
	d := s.fillDrifts(t)
	for _, n := range d.all() {
		s.recall(t, n)
	}
	s.measure(t, d.live)
	backupWith(t, s.source, "steps", "--include-namespaces", namespacesOf(append(driftsOf(d.kept), d.steps...)))
	must(t, s.source.UsePlugin(t.Context(), false))
	backupWith(t, s.source, "alone", "--include-namespaces", namespacesOf(driftsOf(d.alone)), clusterResources+"=true")
	var tenants []*tenant
	for _, n := range slices.Concat(driftsOf(d.alone), driftsOf(d.kept), d.steps) {
		if n.step.name != before { // At that step the target never has the old Composition.
			tenants = append(tenants, n.tenant)
		}
	}
	s.loseSource(t, tenants...)
	s.restoreDrifts(t, "steps", d.steps, d.kept)
	for _, n := range d.live {
		t.Run(modeOf(n)+"NotRestored/"+n.change.name, func(t *testing.T) { testNotRestored(t, n) })
	}
	for _, n := range d.steps {
		t.Run(modeOf(n)+n.change.name+"/"+n.step.name, func(t *testing.T) {
			if err := n.AwaitReady(t.Context(), s.target, 1); err != nil {
				t.Error(err)
			}
			s.testDrift(t, n)
		})
	}
	for _, n := range d.kept {
		t.Run(modeOf(n.changedTenant)+"Orders/"+n.order.name, func(t *testing.T) { s.testDrift(t, n.changedTenant) })
	}
	s.restoreAlone(t, "alone", d.alone)
	for _, n := range d.alone {
		t.Run(modeOf(n.changedTenant)+"VeleroAlone/"+n.order.name, func(t *testing.T) { s.testAlone(t, n) })
	}
}

// changedTenants are the tenants of one test.
type changedTenants struct {
	live, steps []*changedTenant
	kept, alone []*orderedRestore
}

func (s *suite) fillDrifts(t *testing.T) *changedTenants {
	t.Helper()
	d := &changedTenants{}
	modes, path := []bool{false}, steps()
	if s.version.IsV1() {
		modes, path = []bool{false, true}, append([]step{claimReleased()}, steps()...)
	}
	for _, native := range modes {
		for _, o := range orders() {
			d.kept = append(d.kept, s.newOrderedRestore(t, o, native, false))
			d.alone = append(d.alone, s.newOrderedRestore(t, o, native, true))
		}
		for _, change := range changes() {
			d.live = append(d.live, s.newChangedTenant(t, change, step{name: "live"}, native))
			for _, p := range path {
				d.steps = append(d.steps, s.newChangedTenant(t, change, p, native))
			}
		}
	}

	return d
}

func (d *changedTenants) all() []*changedTenant {
	return slices.Concat(driftsOf(d.alone), driftsOf(d.kept), d.live, d.steps)
}

func driftsOf(disorders []*orderedRestore) []*changedTenant {
	all := make([]*changedTenant, len(disorders))
	for i, d := range disorders {
		all[i] = d.changedTenant
	}

	return all
}

func namespacesOf(all []*changedTenant) string {
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = d.Namespace
	}

	return strings.Join(names, ",")
}

// modeOf returns how a changedTenant's Composition composes, for the name of a test.
func modeOf(d *changedTenant) string {
	if d.Native {
		return "Native"
	}

	return ""
}
