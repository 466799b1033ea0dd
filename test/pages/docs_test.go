package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
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
