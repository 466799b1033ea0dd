package explorer

import "testing"

// A mutationCase is a mutation of the plugin with the damage that the explorer must find.
type mutationCase struct {
	mutation

	reason string
	of     *world
	want   damage
}

// mutationCases are the hazards of the plugin's work, each without its safeguard.
func mutationCases() []mutationCase {
	var all []mutationCase
	for _, r := range []rules{v120, v23, after7627} {
		lost := early
		if r == after7627 {
			lost = orphaned
		}
		all = append(all,
			mutationCase{
				mutation{name: "without the hold", noHold: true},
				"An XR that does not find what it references composes it again, and forgets what comes back later.",
				flat(r).vary(), created | orphaned,
			},
			mutationCase{
				mutation{name: "without the hold, composed first", noHold: true, reversed: true},
				"What a changed Composition no longer has, and nothing controls, is deleted or forgotten.", flat(r).vary(), lost,
			},
			mutationCase{
				mutation{name: "released before it is adopted", forced: true},
				"An XR that is released while something is missing composes it again.",
				flat(r).vary(), created,
			},
			mutationCase{
				mutation{name: "with old UIDs", oldUIDs: true}, "What has the UID of an owner that is gone is garbage-collected.", flat(r).vary(), deleted,
			},
			mutationCase{
				mutation{name: "without status", noStatus: true},
				"A function that finds less on the XR than it has written leaves out what comes after it.",
				flat(r).vary(statusFirst), deleted,
			},
			mutationCase{
				mutation{name: "without waiting for what is composed", noConditions: true},
				"A function that finds it less Ready than it was leaves out what comes after it.",
				flat(r).vary(readyFirst), deleted,
			},
		)
	}

	return all
}

// tenantCases are attacks of a tenant, each without its safeguard.
func tenantCases() []mutationCase {
	var all []mutationCase
	for _, w := range []*world{alone(v23).vary(), alone(v120).vary(claimed)} {
		all = append(all,
			mutationCase{
				mutation{name: "unsigned marks count, and anything can be an XR's own", unverified: true, acceptAny: true, copied: true},
				"A resource whose controller is a tenant's XR counts as part of its tree.", w, trustedForgery | changedOthers,
			},
			mutationCase{mutation{name: "steps are taken again", noOnce: true}, "A tenant can save a genuine mark and write it again.", w, endless},
		)
	}

	return append(all, mutationCase{
		mutation{name: "unsigned marks count", unverified: true}, "A tenant who may write an object can forge a mark on it.", alone(v120).vary(claimed), trustedForgery,
	})
}

func (b mutationCase) mutated() *world {
	w := *b.of
	w.mutation = b.mutation

	return &w
}

// TestExplorerFindsDamage removes a safeguard from the plugin, and expects the explorer to find the
// damage.
func TestExplorerFindsDamage(t *testing.T) {
	t.Parallel()
	for _, b := range append(mutationCases(), tenantCases()...) {
		w := b.mutated()
		t.Run(w.String()+" "+b.name, func(t *testing.T) {
			t.Parallel()
			x, err := explore(w, b.want)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(x)
			for d := range damages {
				if b.want&d == 0 {
					continue
				}
				if at, ok := x.found[d]; ok {
					t.Logf("%s\n%s:\n%s", b.reason, damages[d], x.format(at))
				} else {
					t.Errorf("%s\nThe explorer did not find that %s.", b.reason, damages[d])
				}
			}
			if b.of.tenants == 0 {
				b.compareReplay(t, x)
			}
		})
	}
}

// More than one rule protects objects from a tenant. Each is enough without the others.
func TestExplorerFindsNoneWithOneRule(t *testing.T) {
	t.Parallel()
	for _, b := range []mutationCase{
		{mutation{name: "signatures", acceptAny: true}, "The plugin must ignore a mark that it did not write.", alone(v23).vary(unlabelled), 0},
		{mutation{name: "signatures", acceptAny: true, copied: true}, "A mark of a claim must not count on its XR.", alone(v120).vary(claimed, unlabelled), 0},
		{mutation{name: "what is its own", unverified: true}, "A mark must not make a resource the XR's own.", alone(v23).vary(unlabelled), 0},
		{mutation{name: "what is copied", unverified: true, acceptAny: true}, "A mark of a claim must not reach its XR.", alone(v120).vary(claimed, unlabelled), trustedForgery},
	} {
		w := b.mutated()
		t.Run(w.String()+" "+b.name, func(t *testing.T) {
			t.Parallel()
			x, err := explore(w, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(x)
			for d, at := range x.found {
				if b.want&d == 0 {
					t.Errorf("%s\n%s:\n%s", b.reason, damages[d], x.format(at))
				}
			}
		})
	}
}

// A restore of an old backup can come to an item while Crossplane deletes it, after a user has
// removed it from a Composition. The restored object is not wanted then, and creates nothing.
func TestExplorerFindsNothingMadeForWhatVanishes(t *testing.T) {
	t.Parallel()
	for _, w := range []*world{flat(v23).vary(inTheOpen), flat(v23).vary(inTheOpen, inMoments), flat(v120).vary(inTheOpen)} {
		x, err := explore(w, created)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(x)
		if at, ok := x.found[created]; ok {
			t.Errorf("%s: %s:\n%s", w, damages[created], x.format(at))
		}
	}
}
