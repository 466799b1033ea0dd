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

// soil is that of the cluster in memory, which takes anything.
var soil = Soil{Largest: 200}

// Nearly all that is made is thrown away at once, and to look for it often takes a third of the
// time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	m.Run()
}

// Random forests are backed up and restored, and all that is promised of that is judged.
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
				s := Play(seed, soil, Defect{})
				for name, broken := range Judge(s) {
					t.Errorf("%s is broken; to see it again: go test ./internal/forest -run TestForests -forest.seed %d -forest.count 1\n%s\n%d times, such as: %s", name, seed,
						s.Describe(), len(broken), strings.Join(broken[:min(5, len(broken))], "\n"))
				}
			}
		})
	}
}
