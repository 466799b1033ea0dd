package pages

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	matrixTest = regexp.MustCompile(`(?m)^func (TestMatrix\w*)\(t \*testing\.T\)`)
	shardOf    = regexp.MustCompile("`make matrix SHARD=([^`]+)`")
)

// TestShards expects each test of "make matrix" in one shard, since it would never run in none, and
// each shard in the table of the results.
func TestShards(t *testing.T) {
	shards, size := map[string]*regexp.Regexp{}, map[string]int{}
	for line := range strings.Lines(files(t, "test/e2e/shards.txt")["test/e2e/shards.txt"]) {
		if f := strings.Fields(line); f[0] != "#" {
			shards[f[0]] = regexp.MustCompile(f[1])
		}
	}
	for _, source := range files(t, "test/e2e/*_test.go") {
		for _, f := range matrixTest.FindAllStringSubmatch(source, -1) {
			var in []string
			for name, run := range shards {
				if run.MatchString(f[1]) {
					in = append(in, name)
					size[name]++
				}
			}
			if len(in) != 1 {
				t.Errorf("%s must be in one shard of test/e2e/shards.txt, and is in %v", f[1], in)
			}
		}
	}
	var told []string
	for _, m := range shardOf.FindAllStringSubmatch(files(t, "docs/dev/testing.md")["docs/dev/testing.md"], -1) {
		told = append(told, m[1])
	}
	names := slices.Sorted(maps.Keys(shards))
	slices.Sort(told)
	if !slices.Equal(names, told) {
		t.Errorf("docs/dev/testing.md has the shards %v, and test/e2e/shards.txt %v", told, names)
	}
	if !slices.Equal(names, slices.Sorted(maps.Keys(size))) {
		t.Errorf("of the shards %v only these have a test: %v", names, size)
	}
}
