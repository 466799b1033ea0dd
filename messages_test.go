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

// messageDirs are the folders whose messages users read: in logs, on objects, in Events and from
// commands. For true all texts count, for false errors only: docs/problems.md has the findings of
// inspect and validate.
var messageDirs = map[string]bool{
	"backupitem": true, "restoreitem": true, "internal/adoption": true, "internal/exchange": true, "internal/externalname": true, "internal/live": true,
	"internal/setting": true, "internal/xp": true,
	"hooks": false, "internal/archive": false, "internal/guard": false, "internal/printer": false,
}

const (
	// minWords is the number of words that make a text a message, rather than a name or a part of
	// another message.
	minWords = 2
	// minLength is the number of bytes that the page must have of a message that it cuts short.
	minLength = 30
)

var (
	// variable is a verb of a format. The page has … in its place.
	variable = regexp.MustCompile(`%(?:\[\d+\])?[-+# 0]*\d*(?:\.\d+)?[a-zA-Z]`)
	gaps     = regexp.MustCompile(`…+`)
	code     = regexp.MustCompile("`([^`]+)`")
)

// TestMessagesPage checks that docs/messages.md has every message of the sources, and no other.
func TestMessagesPage(t *testing.T) {
	messages := map[string]string{}
	for dir, all := range messageDirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no sources: %v", dir, err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				maps.Copy(messages, messagesOf(t, file, all))
			}
		}
	}
	b, err := os.ReadFile(messagesFile)
	if err != nil {
		t.Fatal(err)
	}
	page := onPage(string(b))
	for _, message := range slices.Sorted(maps.Keys(messages)) {
		if !slices.ContainsFunc(page, func(entry string) bool { return matches(entry, message) }) {
			t.Errorf("%s has a message that %s lacks; add its cause and what to do:\n| `%s` | | |", messages[message], messagesFile, message)
		}
	}
	for _, entry := range page {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(messages)), func(message string) bool { return matches(entry, message) }) {
			t.Errorf("%s has an entry for no message: %s", messagesFile, entry)
		}
	}
}

// matches reports whether an entry of the page is the message, or enough of its beginning.
func matches(entry, message string) bool {
	return entry == message || len(entry) >= minLength && strings.HasPrefix(message, entry)
}

// onPage returns the code spans in the first column of the page's tables.
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

// constant returns a message with … for its variables, without … at its ends.
func constant(text string) string {
	text = gaps.ReplaceAllString(variable.ReplaceAllString(text, "…"), "…")
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "%%", "%")), " ")

	return strings.Trim(text, "… :;,.")
}

// messagesOf returns the messages in a file, each with its position.
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
		add(n, text, minWords)
		for _, other := range others {
			ast.Inspect(other, visit)
		}

		return false
	}
	ast.Inspect(parsed, visit)

	return found
}

// textOf returns the text of an expression, with … for each part that is not constant, and these
// parts.
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

// nameOf returns the qualified name of a called function, "" if it has none.
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
