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

// A Replacement is a command that runs in place of a documented one, or none if Run is "".
type Replacement struct {
	Reason, Run string
}

// Replacements returns, by command, what runs in place of the commands that can't run in a test as
// they are: the part of them that can.
func Replacements() map[string]Replacement {
	return map[string]Replacement{
		"git clone https://github.com/crossplane-contrib/velero-plugin-for-crossplane && cd velero-plugin-for-crossplane": {
			Reason: "It needs a network; this test is in what it would clone.", Run: "test -e go.mod",
		},
		"make demo": {Reason: "It is a test of its own, and takes minutes.", Run: "make -n demo"},
		"make build": {
			Reason: "It is built already, and this would write into the repository.", Run: "make -n build",
		},
		"kubectl -n velero rollout status deployment/velero --timeout=5m": {
			Reason: "Velero is a process here; nothing rolls its Deployment out.", Run: "kubectl -n velero get deployment/velero",
		},
		"kubectl -n velero wait job/drill --for=condition=Complete --timeout=2h": {
			Reason: "There is no controller of Jobs here. Another test runs the Job.", Run: "kubectl -n velero get job/drill",
		},
		"kubectl -n velero logs job/drill --all-containers": {Reason: "The same.", Run: "kubectl -n velero get job/drill"},
		"make compat":                             {Reason: "It takes hours.", Run: "make -n compat"},
		"make compat ONLY=v1.16,v2.0":             {Reason: "It takes hours.", Run: "make -n compat ONLY=v1.16,v2.0"},
		"make compat MISSING=true":                {Reason: "It takes hours.", Run: "make -n compat MISSING=true"},
		"make compat ONLY=v2.3-v2.4-alone":        {Reason: "It takes minutes.", Run: "make -n compat ONLY=v2.3-v2.4-alone"},
		"make compat ONLY=v1.20-v2.3,v1.16-v1.18": {Reason: "It takes minutes.", Run: "make -n compat ONLY=v1.20-v2.3,v1.16-v1.18"},
		"kubectl apply -f example/gitops/guard.yaml": {
			Reason: "Velero and Crossplane have no ServiceAccounts here.",
			Run:    `sed 's/"system:serviceaccount:velero:velero",/"stack", &/' example/gitops/guard.yaml | kubectl apply -f -`,
		},
		"kubectl create -f example/v2/environment.yaml --dry-run=server": {
			Reason: "The user of this test may pass, and a user would try again.",
			Run: "for try in $(seq 30); do kubectl create -f example/v2/environment.yaml --dry-run=server --as=someone --as-group=system:masters 2>&1 | " +
				"grep denied && exit 1; sleep 1; done",
		},
		"velero-plugin-for-crossplane release -n team-a": {
			Reason: "There is no terminal to ask for confirmation.", Run: "velero-plugin-for-crossplane release -n team-a --yes",
		},
		"velero-plugin-for-crossplane release -A": {Reason: "The same.", Run: "velero-plugin-for-crossplane release -A --yes"},
		"kubectl scale deployment --all -n crossplane-system --replicas=0": {
			Reason: "Crossplane and the provider are processes here, without Deployments.", Run: "kubectl get deployments -n crossplane-system",
		},
		"velero-plugin-for-crossplane install --target /opt/velero/plugins": {
			Reason: "It would write into the machine.", Run: "velero-plugin-for-crossplane install --target .",
		},
		"go run . inspect example/backup/shop-v2.tar.gz": {
			Reason: "The same program is built already; it ends with 3, since there are problems.",
			Run:    "velero-plugin-for-crossplane inspect example/backup/shop-v2.tar.gz; test $? = 3",
		},
		"velero-plugin-for-crossplane completion bash > /etc/bash_completion.d/velero-plugin-for-crossplane": {
			Reason: "It would write into the machine.", Run: "velero-plugin-for-crossplane completion bash > completion.bash",
		},
		`velero-plugin-for-crossplane completion zsh > "${fpath[1]}/_velero-plugin-for-crossplane"`: {
			Reason: "It would write into the machine, and is for another shell.", Run: "velero-plugin-for-crossplane completion zsh > completion.zsh",
		},
		"velero-plugin-for-crossplane completion fish > ~/.config/fish/completions/velero-plugin-for-crossplane.fish": {
			Reason: "It would write into the user's home.", Run: "velero-plugin-for-crossplane completion fish > completion.fish",
		},
	}
}
