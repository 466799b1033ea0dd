package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const messagesFile = "docs/messages.md"

// places are the folders of what people read: in the logs of backups and restores, on objects, in
// Events and in what commands say. Of those that are true all texts count, of the others only
// errors: docs/problems.md has what inspect and validate find.
var places = map[string]bool{
	"backupitem": true, "restoreitem": true, "internal/adoption": true, "internal/exchange": true, "internal/externalname": true, "internal/live": true,
	"internal/setting": true, "internal/xp": true,
	"hooks": false, "internal/archive": false, "internal/guard": false, "internal/printer": false,
}

const (
	// fewest is how many words make a text a message, rather than a name or a part of another
	// message.
	fewest = 2
	// shortest is how much of a message the page must have, if it leaves out how it goes on.
	shortest = 30
)

var (
	// variable is what differs from one time to the next: the page has … in its place.
	variable = regexp.MustCompile(`%(?:\[\d+\])?[-+# 0]*\d*(?:\.\d+)?[a-zA-Z]`)
	gaps     = regexp.MustCompile(`…+`)
	code     = regexp.MustCompile("`([^`]+)`")
)

// TestMessagesPage compares the page, in which people on call look up what they have read, with the sources: it has all that is said, and nothing else.
func TestMessagesPage(t *testing.T) {
	said := map[string]string{}
	for dir, all := range places {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("There are no sources in %s: %v", dir, err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				maps.Copy(said, messagesOf(t, file, all))
			}
		}
	}
	b, err := os.ReadFile(messagesFile)
	if err != nil {
		t.Fatal(err)
	}
	page := onPage(string(b))
	for _, message := range slices.Sorted(maps.Keys(said)) {
		if !slices.ContainsFunc(page, func(of string) bool { return tells(of, message) }) {
			t.Errorf("%s says what %s does not have, with its cause and cure:\n| `%s` | | |", said[message], messagesFile, message)
		}
	}
	for _, of := range page {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(said)), func(message string) bool { return tells(of, message) }) {
			t.Errorf("%s has what nothing says: %s", messagesFile, of)
		}
	}
}

// tells says whether what the page has is the message, or enough of its beginning.
func tells(of, message string) bool {
	return of == message || len(of) >= shortest && strings.HasPrefix(message, of)
}

// onPage returns what is written as code in the first column of the page's tables.
func onPage(page string) []string {
	var all []string
	for line := range strings.Lines(page) {
		cell, ok := strings.CutPrefix(line, "| ")
		if !ok {
			continue
		}
		cell, _, _ = strings.Cut(cell, " | ")
		for _, span := range code.FindAllStringSubmatch(cell, -1) {
			all = append(all, constant(span[1]))
		}
	}

	return all
}

// constant returns a message with … for what differs, and none at its ends.
func constant(text string) string {
	text = gaps.ReplaceAllString(variable.ReplaceAllString(text, "…"), "…")
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "%%", "%")), " ")

	return strings.Trim(text, "… :;,.")
}

// messagesOf returns the messages in a file, and where each is.
func messagesOf(t *testing.T, file string, all bool) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	add := func(at ast.Node, text string, least int) {
		if text = constant(text); words(text) >= least || strings.HasPrefix(strings.ToLower(text), "cannot ") {
			found[text] = files.Position(at.Pos()).String()
		}
	}
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.CallExpr:
			if name := nameOf(n.Fun); !all && (name == "fmt.Errorf" || name == "errors.New") {
				text, _ := textOf(n.Args[0])
				add(n, text, 1)
			}
		case *ast.ValueSpec:
			if strings.HasPrefix(n.Names[0].Name, "Event") && len(n.Values) == 1 { // The reasons of Events.
				text, _ := textOf(n.Values[0])
				add(n, text, 1)
			}
		}
		e, ok := n.(ast.Expr)
		if !ok || !all {
			return true
		}
		text, others := textOf(e)
		if text == "…" {
			return true
		}
		add(n, text, fewest)
		for _, other := range others {
			ast.Inspect(other, visit)
		}

		return false
	}
	ast.Inspect(parsed, visit)

	return found
}

// textOf returns the text of an expression, with … for what is not constant in it, which it returns too.
func textOf(e ast.Expr) (string, []ast.Expr) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value) // The parser has accepted it.

			return text, nil
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			left, of := textOf(e.X)
			right, others := textOf(e.Y)

			return left + right, append(of, others...)
		}
	}

	return "…", []ast.Expr{e}
}

// nameOf returns what a function is called where it is called.
func nameOf(fun ast.Expr) string {
	selector, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	of, ok := selector.X.(*ast.Ident)
	if !ok {
		return ""
	}

	return of.Name + "." + selector.Sel.Name
}

func words(text string) int {
	return len(slices.DeleteFunc(strings.Fields(text), func(word string) bool { return !strings.ContainsFunc(word, isLetter) }))
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
