// Package pages reads what a person would copy out of the documentation: the commands in blocks of
// "console", and what it says that they print, in blocks of "output" behind them.
package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A Page is one file with commands.
type Page struct {
	// Name is its path in the repository.
	Name   string
	Blocks []Block
}

// A Block is commands that stand together.
type Block struct {
	// Line is where it begins.
	Line     int
	Commands []string
	// Output are lines that the commands print, in this order and possibly with others between
	// them; … stands for anything, and is at the end of one of which only the beginning is told.
	Output []string
}

// All returns the pages of a repository that have commands: what a user reads, and not what is for
// those who work on it.
func All(root string) ([]Page, error) {
	var all []Page
	for _, glob := range []string{"README.md", "docs/*.md", "example/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, glob))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("cannot find the pages %s: %w", glob, err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("cannot read a page: %w", err)
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				return nil, fmt.Errorf("cannot name the page %s: %w", file, err)
			}
			page, err := read(name, string(b))
			if err != nil {
				return nil, err
			}
			if len(page.Blocks) > 0 {
				all = append(all, page)
			}
		}
	}

	return all, nil
}

// read returns the commands of a page. It fails for a block that has no language, since a command
// in that would be overlooked, and for output of nothing.
func read(name, text string) (Page, error) {
	page := Page{Name: name}
	language, n, begin, pending := "", 0, 0, ""
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && language == "":
			language, begin = fence, n
			if err := page.begin(language, begin); err != nil {
				return page, err
			}
		case isFence:
			if pending != "" {
				return page, fmt.Errorf("cannot read the command %q in %s: it has no end", pending, name)
			}
			language = ""
		case language == "output":
			last := &page.Blocks[len(page.Blocks)-1]
			last.Output = append(last.Output, line)
		case language == "console":
			var more bool
			if pending, more = strings.CutSuffix(pending+line, "\\"); !more {
				page.add(pending)
				pending = ""
			}
		}
	}

	return page, nil
}

// begin begins a block of a language.
func (p *Page) begin(language string, line int) error {
	switch language {
	case "":
		return fmt.Errorf("cannot tell what the block at %s:%d is: it has no language; commands are console, what they print is output, all else is text",
			p.Name, line)
	case "console":
		p.Blocks = append(p.Blocks, Block{Line: line})
	case "output":
		if len(p.Blocks) == 0 || p.Blocks[len(p.Blocks)-1].Output != nil {
			return fmt.Errorf("cannot tell what prints the output at %s:%d: there are no commands before it", p.Name, line)
		}
	}

	return nil
}

// comment is what a line says to its reader.
var comment = regexp.MustCompile(`(^|\s+)# .*$`)

func (p *Page) add(command string) {
	command = strings.TrimSpace(comment.ReplaceAllString(command, ""))
	if command == "" {
		return
	}
	last := &p.Blocks[len(p.Blocks)-1]
	last.Commands = append(last.Commands, command)
}

// Missing returns the first line of a block's output that is not in what was printed after the line before it; "" if there is none.
func Missing(output []string, printed string) string {
	lines := strings.Split(printed, "\n")
	for _, want := range output {
		pattern := matching(want)
		for len(lines) > 0 && !pattern.MatchString(lines[0]) {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			return want
		}
	}

	return ""
}

// matching matches lines that have the words of one, however they are indented and aligned.
func matching(line string) *regexp.Regexp {
	var words []string
	for word := range strings.FieldsSeq(line) {
		words = append(words, strings.ReplaceAll(regexp.QuoteMeta(word), "…", ".*"))
	}

	return regexp.MustCompile(`^\s*` + strings.ReplaceAll(strings.Join(words, `\s+`), `\s+.*`, `.*`) + `\s*$`)
}
