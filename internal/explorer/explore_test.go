package explorer

import (
	"flag"
	"sync/atomic"
	"testing"
)

// most is the limit of states of one world.
const most = 10_000_000

var isLarge = flag.Bool("large", false, "explore larger worlds too, which takes longer")

// TestExplore checks that the plugin loses nothing in any order of steps, and that every state has
// a trace to an end in which all is as before.
func TestExplore(t *testing.T) {
	t.Parallel()
	worlds := small()
	if *isLarge {
		worlds = append(worlds, large()...)
	}
	var states atomic.Int64
	t.Cleanup(func() { t.Logf("%d states of %d worlds", states.Load(), len(worlds)) })
	for _, w := range worlds {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			x, err := explore(w, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(x)
			states.Add(int64(len(x.states)))
			if len(x.states) >= most {
				t.Errorf("there are more than %d states", most)
			}
			for d, at := range x.found {
				t.Errorf("%s:\n%s", damages[d], x.format(at))
			}
			if at, ok := x.deadEnd(); ok {
				t.Errorf("no path from this state leads to a sound end:\n%s", x.format(at))
			}
		})
	}
}
