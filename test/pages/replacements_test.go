package pages

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReplacements checks that each command that is replaced is documented, and that no page has
// another make, which would build, or take minutes, in the test that runs all commands.
func TestReplacements(t *testing.T) {
	all, err := All("../..")
	if err != nil {
		t.Fatal(err)
	}
	replacements := Replacements()
	documented := map[string]bool{}
	for _, page := range all {
		for _, block := range page.Blocks {
			for _, command := range block.Commands {
				documented[command] = true
				if _, ok := replacements[command]; !ok && strings.HasPrefix(command, "make ") {
					t.Errorf("%s:%d has a command that must have a replacement: %s", page.Name, block.Line, command)
				}
			}
		}
	}
	var stale []string
	for command := range replacements {
		if !documented[command] {
			stale = append(stale, command)
		}
	}
	slices.Sort(stale)
	if diff := cmp.Diff([]string(nil), stale); diff != "" {
		t.Errorf("commands that no page has (-want +got):\n%s", diff)
	}
}
