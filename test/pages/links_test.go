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

// TestLinks follows each link of the documentation into the repository: somebody on call has no
// time to look for what has moved.
func TestLinks(t *testing.T) {
	const root = "../.."
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
			for _, l := range link.FindAllStringSubmatch(string(b), -1) {
				if !strings.Contains(l[1], "://") && !leads(t, file, l[1]) {
					t.Errorf("%s has a broken link: %s", strings.TrimPrefix(file, root+"/"), l[1])
				}
			}
		}
	}
}

// leads says whether there is the file, and in it the heading, that a link in a page names.
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

// slug is the anchor that GitHub gives a heading.
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
