package pages

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is the maximum length of a page's lines.
const columns = 100

// oneWord matches lines that can't be wrapped: a link or a command, possibly after a list marker.
var oneWord = regexp.MustCompile("^[\\s>]*(?:[-*] |\\d+\\. )?(?:\\S+|`[^`]+`\\S*|!?\\[[^\\]]*\\]\\(\\S+)$")

// TestWrapped finds lines that are too long to read in a diff. Rows of tables and code blocks can't
// be wrapped, and generated parts are not.
func TestWrapped(t *testing.T) {
	for file, page := range files(t, "*.md", "docs/*.md", "docs/dev/*.md", "example/*.md") {
		if long := tooLong(page); len(long) > 0 {
			t.Errorf("%s has lines of more than %d columns: %v", file, columns, long)
		}
	}
}

// tooLong returns the numbers of the lines of a page that could be wrapped and are not.
func tooLong(page string) []int {
	var long []int
	code, generated := false, false
	for i, line := range slices.Collect(strings.Lines(page)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "<!-- Written by "):
			generated = true
		case strings.HasPrefix(line, "<!-- End of what "):
			generated = false
		case generated:
		case strings.HasPrefix(strings.TrimLeft(line, "> "), "```"):
			code = !code
		case code, strings.HasPrefix(line, "|"), strings.HasPrefix(line, "#"), oneWord.MatchString(line):
		case utf8.RuneCountInString(line) > columns:
			long = append(long, i+1)
		}
	}

	return long
}

func TestTooLong(t *testing.T) {
	words := strings.Repeat("word ", 25)
	page := "# " + words + "\n\n```text\n" + words + "\n```\n\n| " + words + "|\n" + words + "\n- [" + words + "](a.md)\n"
	if got := tooLong(page); !slices.Equal(got, []int{8}) {
		t.Errorf("got tooLong(…) = %v, but only line 8 can be wrapped", got)
	}
}
