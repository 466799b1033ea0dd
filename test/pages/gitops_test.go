package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	// named matches the name of a step of example/gitops.
	named = regexp.MustCompile(`(?m)^ {2}name: (.*)$`)
	// located matches its folder, or a file in that folder.
	located = regexp.MustCompile(`(?m)^\s+(?:path|include): "?(.*?)"?$`)
	// several matches file names of which only the first is checked.
	several = regexp.MustCompile(`\{(\w+),.*\}`)
)

// TestGitOpsSteps checks that Flux and Argo CD have the same steps, whose folders and files exist: no
// test runs those for Argo CD.
func TestGitOpsSteps(t *testing.T) {
	for file, steps := range files(t, "example/gitops/*/steps/steps.yaml") {
		var names []string
		for _, name := range named.FindAllStringSubmatch(steps, -1) {
			names = append(names, name[1])
		}
		if diff := cmp.Diff([]string{"platform", "restore", "apps"}, names); diff != "" {
			t.Errorf("the steps in %s: -want, +got:\n%s", file, diff)
		}
		last := ""
		for _, match := range located.FindAllStringSubmatch(steps, -1) {
			path := strings.NewReplacer("./", "", "${bootstrap:=restore}", "restore").Replace(match[1])
			if strings.HasPrefix(path, "example/") {
				last = path
			} else {
				path = filepath.Join(last, several.ReplaceAllString(path, "$1"))
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s names %s: %v", file, match[1], err)
			}
		}
	}
}
