package explorer

import "testing"

// A bite is a mutation of the plugin with the damage that must be found of it.
type bite struct {
	mutation

	reason string
	of     *world
	want   damage
}

// bites are the hazards of what this plugin does, each with what keeps from it taken out.
func bites() []bite {
	var all []bite
	for _, r := range []rules{v120, v23, after7627} {
		lost := early
		if r == after7627 {
			lost = orphaned
		}
		all = append(all,
			bite{
				mutation{name: "without the hold", noHold: true},
				"An XR that does not find what it references composes it anew, and forgets what comes back later.",
				flat(r).in(), created | orphaned,
			},
			bite{
				mutation{name: "without the hold, composed first", noHold: true, reversed: true},
				"What a changed Composition has no longer, and nobody controls, is deleted or forgotten.", flat(r).in(), lost,
			},
			bite{
				mutation{name: "released before it is adopted", forced: true},
				"An XR that is let go while something is missing composes it anew.",
				flat(r).in(), created,
			},
			bite{
				mutation{name: "with old UIDs", oldUIDs: true}, "What has the UID of an owner that is gone is garbage-collected.", flat(r).in(), deleted,
			},
			bite{
				mutation{name: "without status", noStatus: true},
				"A function that finds less on the XR than it has written leaves out what comes after it.",
				flat(r).in(statusFirst), deleted,
			},
			bite{
				mutation{name: "without waiting for what is composed", noWell: true},
				"A function that finds it less Ready than it was leaves out what comes after it.",
				flat(r).in(readyFirst), deleted,
			},
		)
	}

	return all
}

// tenantBites are what a tenant does where that which keeps from it is taken out.
func tenantBites() []bite {
	var all []bite
	for _, w := range []*world{alone(v23).in(), alone(v120).in(claimed)} {
		all = append(all,
			bite{
				mutation{name: "unsigned marks count, and anything can be an XR's own", unverified: true, gullible: true, copied: true},
				"What has a tenant's XR as its controller goes with it.", w, believed | seized,
			},
			bite{mutation{name: "steps are taken again", noOnce: true}, "A genuine mark can be kept and put back.", w, endless},
		)
	}

	return append(all, bite{
		mutation{name: "unsigned marks count", unverified: true}, "Who may write an object can write a mark.", alone(v120).in(claimed), believed,
	})
}

func (b bite) mutated() *world {
	w := *b.of
	w.mutation = b.mutation

	return &w
}

// What keeps from a hazard is taken out of the plugin, and the explorer finds by itself what comes
// of that.
func TestExplorerFindsDamage(t *testing.T) {
	t.Parallel()
	for _, b := range append(bites(), tenantBites()...) {
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
					t.Logf("%s\n%s:\n%s", b.reason, damages[d], x.tell(at))
				} else {
					t.Errorf("%s\nIt was not found that %s.", b.reason, damages[d])
				}
			}
			if b.of.tenants == 0 {
				b.keep(t, x)
			}
		})
	}
}

// What keeps a tenant from others' objects is more than one rule: each is enough without the
// others.
func TestExplorerFindsNoneWithOneRule(t *testing.T) {
	t.Parallel()
	for _, b := range []bite{
		{mutation{name: "signatures", gullible: true}, "A mark that the plugin did not write says nothing.", alone(v23).in(unlabelled), 0},
		{mutation{name: "signatures", gullible: true, copied: true}, "A claim's mark is none on its XR.", alone(v120).in(claimed, unlabelled), 0},
		{mutation{name: "what is its own", unverified: true}, "What a mark says does not make anything an XR's own.", alone(v23).in(unlabelled), 0},
		{mutation{name: "what is copied", unverified: true, gullible: true}, "No mark gets from a claim to its XR.", alone(v120).in(claimed, unlabelled), believed},
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
					t.Errorf("%s\n%s:\n%s", b.reason, damages[d], x.tell(at))
				}
			}
		})
	}
}

// A restore of an old backup can come to an item in the very moment in which Crossplane deletes it,
// since a person has taken it out of a Composition. What comes back then is not wanted, and makes
// nothing.
func TestExplorerFindsNothingMadeForWhatVanishes(t *testing.T) {
	t.Parallel()
	for _, w := range []*world{flat(v23).in(inTheOpen), flat(v23).in(inTheOpen, inMoments), flat(v120).in(inTheOpen)} {
		x, err := explore(w, created)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(x)
		if at, ok := x.found[created]; ok {
			t.Errorf("%s: %s:\n%s", w, damages[created], x.tell(at))
		}
	}
}
