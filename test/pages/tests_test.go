package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	declared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	// shown is the name of a test in a page, of which … stands for any part, and which other names
	// may begin with.
	shown = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Za-z0-9…]+)")
)

// TestShown looks for each test that the documentation names as the proof of what it says.
func TestShown(t *testing.T) {
	const root = "../.."
	var tests strings.Builder
	for _, glob := range []string{"*_test.go", "*/*_test.go", "*/*/*_test.go", "*/*/*/*_test.go"} {
		files, err := filepath.Glob(filepath.Join(root, glob))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range declared.FindAllStringSubmatch(string(b), -1) {
				tests.WriteString(f[1] + "\n")
			}
		}
	}
	for _, glob := range []string{"*.md", "docs/*.md", "example/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, glob))
		if err != nil || len(files) == 0 {
			t.Fatalf("no pages match %s: %v", glob, err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range shown.FindAllStringSubmatch(string(b), -1) {
				if !regexp.MustCompile("(?m)^" + strings.ReplaceAll(name[1], "…", `\w*`)).MatchString(tests.String()) {
					t.Errorf("%s names the test %s, which does not exist", strings.TrimPrefix(file, root+"/"), name[1])
				}
			}
		}
	}
}
