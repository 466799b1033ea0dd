package pages

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestRead(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   []Block
		err    bool
	}{
		"Commands": {
			reason: "A line of a block is a command, a continued command or a comment.",
			text:   "# A page\n\n```console\n# first\nkubectl get pods \\\n  -A   # all\nvelero backup get\n```\n\n```text\nno command\n```\n",
			want:   []Block{{Line: 3, Commands: []string{"kubectl get pods   -A", "velero backup get"}}},
		},
		"Output": {
			reason: "An output belongs to the commands before it.",
			text:   "```console\ntrue\n```\n\nIt says:\n\n```output\nfine\n```\n",
			want:   []Block{{Line: 1, Commands: []string{"true"}, Output: []string{"fine"}}},
		},
		"NoLanguage":    {reason: "Commands in a block without a language would never run.", text: "```\nkubectl get pods\n```\n", err: true},
		"OutputOfNone":  {reason: "An output without commands would never be compared.", text: "```output\nfine\n```\n", err: true},
		"OutputTwice":   {reason: "Commands have only one output.", text: "```console\ntrue\n```\n```output\na\n```\n```output\nb\n```\n", err: true},
		"CommandsAgain": {reason: "A command that continues after its block is a mistake.", text: "```console\ntrue \\\n```\n", err: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := read("a.md", tc.text)
			if (err != nil) != tc.err {
				t.Fatalf("%s\nread: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got.Blocks, cmpopts.EquateEmpty()); !tc.err && diff != "" {
				t.Errorf("%s\nread: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	const printed = "NAME    STATUS      CREATED\nnightly Completed   2026-11-22\n  Phase:  Completed\n"
	cases := map[string]struct {
		reason string
		output []string
		want   string
	}{
		"All":       {reason: "The width of columns and the indentation must not matter.", output: []string{"NAME STATUS CREATED", "Phase: Completed"}},
		"Gap":       {reason: "An ellipsis stands for text that varies.", output: []string{"nightly … 2026…", "Phase:…"}},
		"Beginning": {reason: "An ellipsis at the end hides the rest of a line.", output: []string{"nightly Completed …"}},
		"Wrong":     {reason: "A wrong word makes its line missing.", output: []string{"nightly Failed …"}, want: "nightly Failed …"},
		"Order":     {reason: "The lines must appear in their order.", output: []string{"Phase: Completed", "nightly …"}, want: "nightly …"},
		"Part":      {reason: "Without an ellipsis the line must end there.", output: []string{"nightly Completed"}, want: "nightly Completed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Missing(tc.output, printed)); diff != "" {
				t.Errorf("%s\nMissing(…): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReplacements checks that each command that is replaced is documented, and that no page has
// another make, which would build, or take minutes, in the test that runs all commands.
func TestReplacements(t *testing.T) {
	all, err := All("../..")
	if err != nil || len(all) < 10 {
		t.Fatalf("%d pages have commands: %v", len(all), err)
	}
	replacements := Replacements()
	documented := map[string]bool{}
	for _, page := range all {
		for _, block := range page.Blocks {
			for _, command := range block.Commands {
				documented[command] = true
				if _, ok := replacements[command]; !ok && strings.HasPrefix(command, "make ") {
					t.Errorf("%s:%d has a command that must have a replacement: %s", page.Name, block.Line, command)
				}
			}
		}
	}
	for command := range replacements {
		if !documented[command] {
			t.Errorf("no page has the command %s", command)
		}
	}
}
