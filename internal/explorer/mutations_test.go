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

func (b bite) mutated() *world {
	w := *b.of
	w.mutation = b.mutation

	return &w
}

// What keeps from a hazard is taken out of the plugin, and the explorer finds by itself what comes of that.
func TestExplorerFindsDamage(t *testing.T) {
	t.Parallel()
	for _, b := range bites() {
		w := b.mutated()
		t.Run(w.String()+" "+b.name, func(t *testing.T) {
			t.Parallel()
			x, err := explore(w, most, b.want)
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
			b.keep(t, x)
		})
	}
}

// What nothing helps against is found too: otherwise it could be left out of the worlds by mistake.
func TestExplorerFindsOpenRaces(t *testing.T) {
	t.Parallel()
	for _, w := range []*world{flat(v23).in(inTheOpen), flat(v23).in(inTheOpen, inMoments)} {
		x, err := explore(w, most, created)
		if err != nil {
			t.Fatal(err)
		}
		at, ok := x.found[created]
		if !ok {
			t.Fatalf("%s: it was not found that %s", w, damages[created])
		}
		t.Logf("%s, which is open:\n%s", w, x.tell(at))
	}
}
