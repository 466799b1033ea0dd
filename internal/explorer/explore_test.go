package explorer

import (
	"flag"
	"sync/atomic"
	"testing"
)

// most is how many states of one world are looked at.
const most = 10_000_000

var isLarge = flag.Bool("large", false, "explore larger worlds too, which takes longer")

// With the plugin as it is there is no order of steps in which anything is lost, and no state from
// which nothing leads to an end in which all is as it was.
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
				t.Errorf("%s:\n%s", damages[d], x.tell(at))
			}
			if at, ok := x.lost(); ok {
				t.Errorf("nothing leads from here to an end in which all is as it was:\n%s", x.tell(at))
			}
		})
	}
}
