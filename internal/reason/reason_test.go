package reason

import (
	"errors"
	"flag"
	"fmt"
	"go/format"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/messages.md")

// docs are the pages that have tables of reasons, and the groups of each.
var docs = map[string][]Group{
	"../../docs/messages.md": {Report, Hold, Restore, Backup, Setting, Release, Command},
}

// TestPages compares the tables of the pages with reasons.yaml. With -update it writes them.
func TestPages(t *testing.T) {
	for page, groups := range docs {
		b, err := os.ReadFile(page) //nolint:gosec // It is ours.
		if err != nil {
			t.Fatal(err)
		}
		want := string(b)
		for _, g := range groups {
			begin, end := fmt.Sprintf("<!-- reasons of the group %s -->\n", g), fmt.Sprintf("<!-- end of the group %s -->\n", g)
			before, rest, ok := strings.Cut(want, begin)
			_, after, found := strings.Cut(rest, end)
			if !ok || !found {
				t.Fatalf("%s has no place for the group %s", page, g)
			}
			want = before + begin + "\n" + table(g) + "\n" + end + after
		}
		compare(t, page, want)
	}
}

// TestCodes compares the constants with reasons.yaml. With -update it writes them.
func TestCodes(t *testing.T) {
	var b strings.Builder
	b.WriteString("// Code generated from reasons.yaml by go test ./internal/reason -update; DO NOT EDIT.\n\npackage reason\n\n// The codes of reasons.yaml.\nconst (\n")
	for _, r := range All() {
		fmt.Fprintf(&b, "\t%s Code = %q\n", r.Code, r.Code)
	}
	b.WriteString(")\n")
	source, err := format.Source([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "codes.go", string(source))
}

// compare fails the test if a file has another content, or with -update writes it.
func compare(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil { //nolint:gosec // It is ours.
			t.Fatal(err)
		}

		return
	}
	b, err := os.ReadFile(file) //nolint:gosec // It is ours.
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("%s is generated from reasons.yaml; run go test ./internal/reason -update: -want, +got:\n%s", file, diff)
	}
}

// TestCodesAreUsed checks that each code is in the sources of the plugin.
func TestCodesAreUsed(t *testing.T) {
	used := map[string]bool{}
	for _, pattern := range []string{"../../*.go", "../../*/*.go", "../../internal/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no sources in %s: %v", pattern, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			b, err := os.ReadFile(file) //nolint:gosec // It is ours.
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`\breason\.([A-Z]\w+)`).FindAllStringSubmatch(string(b), -1) {
				used[m[1]] = true
			}
		}
	}
	for _, r := range All() {
		if !used[string(r.Code)] {
			t.Errorf("nothing in the plugin has the code %s", r.Code)
		}
	}
}

func TestFind(t *testing.T) {
	type want struct {
		Code    Code
		Similar []string
		OK      bool
	}
	cases := map[string]struct {
		reason string
		code   string
		want   want
	}{
		"Known":   {reason: "Find must accept a code in the form that reports print.", code: "GuardUp", want: want{Code: GuardUp, OK: true}},
		"Lower":   {reason: "A user can type a code in lower case.", code: "guardup", want: want{Code: GuardUp, OK: true}},
		"Part":    {reason: "A part of a code must find all codes with it.", code: "Misplaced", want: want{Similar: []string{"SettingsMisplaced", "RightsMisplaced"}}},
		"Begins":  {reason: "The first letters of a code must find it.", code: "dangle", want: want{Similar: []string{"Dangling"}}},
		"Unknown": {reason: "A word without a similar code must find none.", code: "Xylophone"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, similar, ok := Find(tc.code)
			if diff := cmp.Diff(tc.want, want{Code: r.Code, Similar: similar, OK: ok}); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAllAreComplete(t *testing.T) {
	groups := slices.Concat(slices.Collect(maps.Values(docs))...)
	seen := map[Code]bool{}
	for _, r := range All() {
		if seen[r.Code] {
			t.Errorf("the code %s appears twice", r.Code)
		}
		seen[r.Code] = true
		if !slices.Contains(groups, r.Group) {
			t.Errorf("%s has the group %q, which no page has", r.Code, r.Group)
		}
		if (r.ReportedBy != "") != (r.Group == Report) {
			t.Errorf("%s must name who reports it if it is of the group %s, and only then", r.Code, Report)
		}
		for part, text := range map[string]string{"meaning": r.Meaning, "cause": r.Cause, "cure": r.Cure} {
			if strings.TrimSpace(text) == "" || strings.Contains(text, "\n") {
				t.Errorf("%s must have one line of %s", r.Code, part)
			}
		}
	}
}

func TestErrorf(t *testing.T) {
	inner := errors.New("inner")
	cases := map[string]struct {
		reason string
		err    error
		want   Message
	}{
		"Plain":   {reason: "An error of a library has no code.", err: inner, want: Message{Text: "inner"}},
		"Coded":   {reason: "The code must not be in the text twice.", err: GuardUp.Errorf("outer: %w", inner), want: Message{Code: GuardUp, Text: "outer: inner"}},
		"Wrapped": {reason: "A caller can add to the text.", err: fmt.Errorf("more: %w", GuardUp.Errorf("outer")), want: Message{Code: GuardUp, Text: "more: outer"}},
		"Twice":   {reason: "The outermost code is that of the whole.", err: Held.Errorf("a: %w", GuardUp.Errorf("b")), want: Message{Code: Held, Text: "a: b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ErrorMessage(tc.err)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if !errors.Is(GuardUp.Errorf("outer: %w", inner), inner) {
		t.Error("an error with a code must wrap what its format wraps")
	}
}

// table returns the reasons of a group as a table in Markdown, which is in the documentation.
func table(group Group) string {
	var b strings.Builder
	if group == Report {
		b.WriteString("| code | reported by | meaning | why it happens | what to do |\n|---|---|---|---|---|\n")
	} else {
		b.WriteString("| code | meaning | why it happens | what to do |\n|---|---|---|---|\n")
	}
	for _, r := range All() {
		if r.Group != group {
			continue
		}
		reportedBy := ""
		if group == Report {
			reportedBy = " " + r.ReportedBy + " |"
		}
		fmt.Fprintf(&b, "| <a id=\"%s\"></a>`%s` |%s %s | %s | %s |\n", r.Code, r.Code, reportedBy, cell(r.Meaning), cell(r.Cause), cell(r.Cure))
	}

	return b.String()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// Tenants write names and conditions. A message is one printable line of bounded length, wherever
// it goes: a terminal ("velero restore describe --details"), an Event, a mark, a log.
func TestMessagesAreClean(t *testing.T) {
	long := strings.Repeat("é", longestPart)
	const hostile = "a\x1b[2J\x1b]0;owned\x07\r\n  b\u202e"
	const clean = "a\ufffd[2J\ufffd]0;owned\ufffd b\ufffd"
	wrapped := NotFound.Errorf("cannot read %s: %w", hostile, io.EOF)
	cases := map[string]struct {
		reason    string
		got, want string
	}{
		"Printable": {reason: "A printable text stays as it is.", got: NotFound.Messagef("Bucket %s", "a  b").String(), want: "Bucket a  b [NotFound]"},
		"Text":      {reason: "The text alone is clean, too.", got: NotFound.Messagef("Bucket %s", hostile).Text, want: "Bucket " + clean},
		"Literal":   {reason: "A message that is put together is clean.", got: Message{Code: NotFound, Text: hostile}.String(), want: clean + " [NotFound]"},
		"NoCode":    {reason: "A message without a code is clean.", got: Message{Text: hostile}.String(), want: clean},
		"About":     {reason: "The name before a message is clean.", got: NotFound.Messagef("x").About(hostile).String(), want: clean + ": x [NotFound]"},
		"Error":     {reason: "An error with a code is clean.", got: wrapped.Error(), want: "cannot read " + clean + ": EOF"},
		"OtherError": {
			reason: "The message of another error is clean.", got: ErrorMessage(errors.New(hostile)).String(), want: clean,
		},
		"Long": {
			reason: "A long part does not hide the next step.", got: NotFound.Messagef("%s is missing. Restore it", long).Text,
			want: strings.Repeat("é", longestPart/2) + fmt.Sprintf("… (%d bytes more) is missing. Restore it", longestPart),
		},
		"LongCode":   {reason: "Any kind of string is clipped.", got: NotFound.Messagef("%q", Code(long)).Text[longestPart:], want: fmt.Sprintf(`é… (%d bytes more)"`, longestPart)[1:]},
		"LongError":  {reason: "A long error is clipped.", got: NotFound.Messagef("%v.", errors.New(long)).Text[longestPart:], want: fmt.Sprintf("… (%d bytes more).", longestPart)},
		"NilPointer": {reason: "A nil pointer has no text.", got: NotFound.Messagef("%v", (*strings.Builder)(nil)).Text, want: "<nil>"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if !errors.Is(wrapped, io.EOF) || CodeOf(fmt.Errorf("cannot: %w", wrapped)) != NotFound {
		t.Errorf("%v must wrap its cause, and have its code", wrapped)
	}
	if err := NotFound.Errorf("cannot: %w", fmt.Errorf("%s: %w", long, io.EOF)); !errors.Is(err, io.EOF) || len(err.Error()) > 2*longestPart {
		t.Errorf("a clipped error of %d bytes must wrap its cause", len(err.Error()))
	}
}
