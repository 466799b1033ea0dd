package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// TestLinks follows each link of the documentation into the repository: a user on call has no time
// to search for a moved file.
func TestLinks(t *testing.T) {
	for file, page := range files(t, "*.md", "docs/*.md", "docs/dev/*.md", "example/*.md") {
		for _, l := range link.FindAllStringSubmatch(page, -1) {
			if !strings.Contains(l[1], "://") && !leads(t, filepath.Join(root, file), l[1]) {
				t.Errorf("%s has a broken link: %s", file, l[1])
			}
		}
	}
}

// root is the root of the repository.
const root = "../.."

// files returns the text of the files that match the patterns, by their paths below root. A
// pattern that matches no file fails the test.
func files(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no files match %s: %v", pattern, err)
		}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[strings.TrimPrefix(path, root+"/")] = string(b)
		}
	}

	return texts
}

// leads reports whether a link of a page has its file and its heading.
func leads(t *testing.T, page, target string) bool {
	t.Helper()
	file, anchor, _ := strings.Cut(target, "#")
	path := page
	if file != "" {
		path = filepath.Join(filepath.Dir(page), file)
	}
	if _, err := os.Stat(path); err != nil || anchor == "" {
		return err == nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	for _, h := range heading.FindAllStringSubmatch(string(b), -1) {
		if slug(h[1]) == anchor {
			return true
		}
	}

	return false
}

// slug returns GitHub's anchor for a heading.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
}
