package pages

import (
	"regexp"
	"strings"
	"testing"
)

var (
	declared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	// shown matches the name of a test in a page. An … in it matches any text, and other names may
	// begin with it.
	shown = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Za-z0-9…]+)")
)

// TestShown checks that each test that the documentation names exists.
func TestShown(t *testing.T) {
	var tests strings.Builder
	for _, file := range files(t, "*_test.go", "*/*_test.go", "*/*/*_test.go", "*/*/*/*_test.go") {
		for _, f := range declared.FindAllStringSubmatch(file, -1) {
			tests.WriteString(f[1] + "\n")
		}
	}
	for file, page := range files(t, "*.md", "docs/*.md", "docs/dev/*.md", "example/*.md") {
		for _, name := range shown.FindAllStringSubmatch(page, -1) {
			if !regexp.MustCompile("(?m)^" + strings.ReplaceAll(name[1], "…", `\w*`)).MatchString(tests.String()) {
				t.Errorf("%s names the test %s, which does not exist", file, name[1])
			}
		}
	}
}
