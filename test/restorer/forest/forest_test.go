package forest

import (
	"flag"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

var (
	seedFlag  = flag.Uint64("forest.seed", 0, "the first seed; that of a failure is printed")
	countFlag = flag.Uint64("forest.count", 10000, "how many forests to grow")
)

// limits are for the cluster in memory, which stores anything.
var limits = Limits{Largest: 200}

// Nearly all memory is garbage at once, and collecting it often takes a third of the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	m.Run()
}

// TestForests backs up and restores random forests and judges all properties.
func TestForests(t *testing.T) {
	t.Parallel()
	const shards = 8
	count := *countFlag
	if testing.Short() {
		count /= 10
	}
	for shard := range uint64(shards) {
		t.Run(strconv.FormatUint(shard, 10), func(t *testing.T) {
			t.Parallel()
			for seed := *seedFlag + shard; seed < *seedFlag+count; seed += shards {
				s := Simulate(seed, limits, Defect{})
				for name, broken := range Judge(s) {
					t.Errorf("%s is broken; to see it again: cd test/restorer && go test ./forest -run TestForests -forest.seed %d -forest.count 1\n%s\n%d times, such as: %s", name, seed,
						s.Describe(), len(broken), strings.Join(broken[:min(5, len(broken))], "\n"))
				}
			}
		})
	}
}
