// Package pages reads the commands that a user would copy out of the documentation, in "console"
// blocks, and their documented output, in the "output" blocks after them.
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

// A Block has commands that stand together.
type Block struct {
	// Line is the block's first line.
	Line     int
	Commands []string
	// Output has lines that the commands print, in this order and possibly with others in between.
	// An … matches any text, at the end of a line its rest.
	Output []string
}

// All returns the pages of a repository that have commands: users' pages, and not those for
// contributors.
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

// read returns the commands of a page. It fails for a block without a language, whose commands it
// would miss, and for output without commands.
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
		return fmt.Errorf("cannot classify the block at %s:%d: it has no language; commands are console, what they print is output, all else is text",
			p.Name, line)
	case "console":
		p.Blocks = append(p.Blocks, Block{Line: line})
	case "output":
		if len(p.Blocks) == 0 || p.Blocks[len(p.Blocks)-1].Output != nil {
			return fmt.Errorf("cannot find the commands of the output at %s:%d: there are none before it", p.Name, line)
		}
	}

	return nil
}

// comment matches a comment in a command.
var comment = regexp.MustCompile(`(^|\s+)# .*$`)

func (p *Page) add(command string) {
	command = strings.TrimSpace(comment.ReplaceAllString(command, ""))
	if command == "" {
		return
	}
	last := &p.Blocks[len(p.Blocks)-1]
	last.Commands = append(last.Commands, command)
}

// Missing returns the first line of a block's output that was not printed after the line before it;
// "" if there is none.
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

// matching matches lines with the same text, in any indentation and alignment.
func matching(line string) *regexp.Regexp {
	var words []string
	for word := range strings.FieldsSeq(line) {
		words = append(words, strings.ReplaceAll(regexp.QuoteMeta(word), "…", ".*"))
	}

	return regexp.MustCompile(`^\s*` + strings.ReplaceAll(strings.Join(words, `\s+`), `\s+.*`, `.*`) + `\s*$`)
}
