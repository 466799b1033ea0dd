package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// An order is the order in which kinds come back: each phase is a Restore of some kinds.
type order struct {
	name, reason string
	phases       [][]string
	// changed is the step at which the Composition loses its database; "" if it does not.
	changed string
	// want is the outcome without the plugin where Crossplane deletes resources without a
	// controller, and spared the outcome where it does not.
	want, spared drill.Outcome
	sound        bool
}

const xr = "XR"

// orders returns the orders of Velero alone, which restores kinds in the order of their names.
func orders() []order {
	return []order{
		{
			name: "XRFirst", reason: "An XR that does not find what it references composes all of it again, and forgets the old resources.",
			phases: [][]string{{xr}, {"Bucket", "Network", "Database"}},
			want:   drill.Outcome{Creates: 3, Duplicates: 3, Orphans: 3, Total: 3}, spared: drill.Outcome{Creates: 3, Duplicates: 3, Orphans: 3, Total: 3},
		},
		{
			name: "ComposedFirst", reason: "A resource that a changed Composition dropped is deleted without a controller, or forgotten.",
			phases: [][]string{{"Bucket", "Network", "Database"}, {xr}}, changed: before,
			want: drill.Outcome{Deletes: 1, Adopted: 2, Total: 3}, spared: drill.Outcome{Orphans: 1, Adopted: 2, Total: 3},
		},
		{
			name: "Meanwhile", reason: "Half of the tree is restored when the Composition changes.",
			phases: [][]string{{"Bucket", "Database"}, {xr}, {"Network"}}, changed: "XRCreated",
			want:   drill.Outcome{Creates: 1, Deletes: 1, Duplicates: 1, Orphans: 1, Adopted: 1, Total: 3},
			spared: drill.Outcome{Creates: 1, Duplicates: 1, Orphans: 2, Adopted: 1, Total: 3},
		},
		{
			name: "ComposedFirstUnchanged", reason: "An XR that finds all of it, under an unchanged Composition, takes control of it.",
			phases: [][]string{{"Bucket", "Network", "Database"}, {xr}},
			want:   drill.Outcome{Adopted: 3, Total: 3}, spared: drill.Outcome{Adopted: 3, Total: 3}, sound: true,
		},
	}
}

// unchanged returns the change that leaves the Composition as it is.
func unchanged() change {
	return change{name: "Unchanged", reason: "All comes back unchanged.", want: drill.Outcome{Adopted: 3, Total: 3}}
}

// An orderedRestore is a tenant that is restored in some order, with the plugin or by Velero alone.
type orderedRestore struct {
	*changedTenant
	order order
	alone bool
}

func (s *suite) newOrderedRestore(t *testing.T, o order, native, alone bool) *orderedRestore {
	t.Helper()
	name := strings.ToLower(o.name)
	if alone {
		name = "alone-" + name
	}
	if native {
		name = "native-" + name
	}
	d := &changedTenant{tenant: s.few(t, s.source, drill.Platform{Namespace: name, Native: native}, 1), change: unchanged(), controlled: map[string]bool{}}
	for _, p := range steps() {
		if p.name == o.changed {
			d.change, d.step = removed(), p
		}
	}

	return &orderedRestore{changedTenant: d, order: o, alone: alone}
}

// wanted returns the outcome of an order by Velero alone.
func (s *suite) wanted(o order) drill.Outcome {
	if s.version == stack.V24 {
		return o.spared
	}

	return o.want
}

// restoreAlone restores them without the plugin.
func (s *suite) restoreAlone(t *testing.T, backup string, disorders []*orderedRestore) {
	t.Helper()
	must(t, s.target.UsePlugin(t.Context(), false))
	drifts, wants := driftsOf(disorders), map[*changedTenant]drill.Outcome{}
	for _, d := range disorders {
		wants[d.changedTenant] = s.wanted(d.order)
	}
	defer s.check(t, drifts)()
	for _, name := range s.startOrders(t, backup, disorders) {
		s.awaitCompleted(t, name)
	}
	s.settleDrifts(t, drifts, func(d *changedTenant) drill.Outcome { return wants[d] })
}

// startOrders restores them phase by phase, and returns the names of the Restores. The plugin's
// operations may still be going on.
func (s *suite) startOrders(t *testing.T, backup string, disorders []*orderedRestore) []string {
	t.Helper()
	for _, d := range disorders {
		if d.step.name == before {
			d.compose(t.Context(), s.target)
		}
	}
	var restores []string
	for phase := range 3 {
		restores = append(restores, s.restorePhase(t, backup, phase, disorders)...)
	}

	return restores
}

// restorePhase restores the kinds of a phase, with one Restore for all tenants that have the same
// kinds. It waits until they exist and, without the plugin, until Crossplane has reconciled the
// XRs: their status does not come back. It returns the names of the Restores.
func (s *suite) restorePhase(t *testing.T, backup string, phase int, disorders []*orderedRestore) []string {
	t.Helper()
	ctx := t.Context()
	together := map[string][]*orderedRestore{}
	for _, d := range disorders {
		if phase < len(d.order.phases) {
			name := strings.ToLower(fmt.Sprintf("%s-%d-%s", backup, phase, strings.Join(d.order.phases[phase], "-")))
			together[name] = append(together[name], d)
		}
	}
	for name, some := range together {
		must(t, some[0].StartRestore(ctx, s.target, name, backup, filters(some[0].order.phases[phase], some)...))
	}
	for name, some := range together {
		must(t, drill.AwaitItems(ctx, s.target, name))
		for _, d := range some {
			s.eventually(t, "the XR of "+d.Namespace+" to be reconciled", func(ctx context.Context) error {
				xrs, err := d.Composites(ctx, s.target)
				if err != nil || len(xrs) == 0 || !d.alone {
					return err
				}

				return stack.HasCondition(&xrs[0], "Synced", "True")
			})
		}
	}

	return slices.Collect(maps.Keys(together))
}

// filters returns arguments that limit a Restore to some kinds of some tenants, and to the plugin's
// additional items. On v1 claims are left out: their XRs compose.
func filters(kinds []string, disorders []*orderedRestore) []string {
	var resources []string
	if !disorders[0].alone {
		resources = append(resources, "secrets")
		if slices.Contains(kinds, xr) {
			resources = append(resources, "compositionrevisions.apiextensions.crossplane.io")
		}
	}
	for _, kind := range kinds {
		switch p := disorders[0]; {
		case kind != xr && p.Crossplane.IsV1():
			resources = append(resources, strings.ToLower(kind)+"s.cloud.example.org")
		case kind != xr:
			resources = append(resources, strings.ToLower(kind)+"s.cloud.m.example.org")
		default:
			resources = append(resources, strings.ToLower(p.CompositeKind())+"s.platform.example.org")
		}
	}
	var namespaces []string
	for _, d := range disorders {
		namespaces = append(namespaces, d.Namespace)
	}
	all := []string{"--include-resources", strings.Join(resources, ",")}
	if disorders[0].Crossplane.IsV1() {
		return append(all, "--selector", "crossplane.io/claim-namespace in ("+strings.Join(namespaces, ",")+")", clusterResources+"=true")
	}

	return append(all, "--include-namespaces", strings.Join(namespaces, ","))
}

// testAlone is the control: Velero alone must do this Crossplane version's known damage.
func (s *suite) testAlone(t *testing.T, d *orderedRestore) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := errors.Join(d.errs...); err != nil {
		t.Errorf("%s %v", d.order.reason, err)
	}
	got, err := d.Compare(t.Context(), s.target, s.cloud, d.before)
	must(t, err)
	t.Logf("%s %+v", d.order.reason, got)
	if diff := cmp.Diff(s.wanted(d.order), got); diff != "" {
		t.Errorf("%s -want, +got:\n%s", d.order.reason, diff)
	}
	if got.Sound() != d.order.sound {
		t.Errorf("Velero alone did no damage, so the other tests prove nothing: %+v", got)
	}
	if d.changed != (d.order.changed != "") {
		t.Errorf("the Composition was changed: %v", d.changed)
	}
	if d.order.changed != "" && d.controlled["Database"] {
		t.Error("the XR had control of the Database before it was lost, so this happens without a restore too")
	}
}
