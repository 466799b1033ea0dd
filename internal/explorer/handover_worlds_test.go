package explorer

import "testing"

// In a handed world a source cluster runs an XR with an MR, hands it over to the target, or goes on.
func handed(r rules) *world {
	return &world{name: "handed over", rules: r, parent: []node{-1, 0}, xrs: 1, handover: &handover{}}
}

// composing makes the source compose its last MR during the handover.
var (
	composing = variant{"while composed", func(w *world) { w.handover = &handover{later: with(len(w.parent) - 1), again: w.handover.again} }}
	andAgain  = variant{"and again", func(w *world) { w.handover = &handover{later: w.handover.later, again: true} }}
)

func TestExploreHandovers(t *testing.T) {
	t.Parallel()
	for _, w := range []*world{handed(v23).vary(), handed(v23).vary(composing), handed(v120).vary(composing), handed(v23).vary(andAgain)} {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			x, err := explore(w, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(x)
			for d, at := range x.found {
				t.Errorf("%s:\n%s", damages[d], x.format(at))
			}
			if at, ok := x.deadEnd(); ok {
				t.Errorf("no path from this state leads to a sound end:\n%s", x.format(at))
			}
		})
	}
}
