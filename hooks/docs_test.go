package hooks

import (
	"flag"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
)

var update = flag.Bool("update", false, "write the flags into docs/commands.md")

const commandsFile = "../docs/commands.md"

// flagBlock matches the flags in a command's section.
var flagBlock = regexp.MustCompile("(?s)```text\n.*?```")

// TestCommandsPage compares docs/commands.md with the commands. go test ./hooks -update writes the
// flags into it.
func TestCommandsPage(t *testing.T) {
	t.Setenv("VELERO_NAMESPACE", "")
	b, err := os.ReadFile(commandsFile)
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	root := newRoot(&options{})
	want := withFlags(t, page, "Flags of all commands", root.PersistentFlags())
	for _, c := range root.Commands() {
		if c.HasAvailableLocalFlags() {
			want = withFlags(t, want, c.Name(), c.LocalNonPersistentFlags())
		}
		for _, sub := range c.Commands() {
			if sub.HasAvailableLocalFlags() {
				want = withFlags(t, want, c.Name()+" "+sub.Name(), sub.LocalNonPersistentFlags())
			}
		}
	}
	if *update {
		if err := os.WriteFile(commandsFile, []byte(want), 0o644); err != nil { //nolint:gosec // The file is in the repository.
			t.Fatal(err)
		}
		page = want
	}
	if diff := cmp.Diff(want, page); diff != "" {
		t.Errorf("docs/commands.md must list the flags of the program; run go test ./hooks -update: -want, +got:\n%s", diff)
	}
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		for _, must := range []string{"\n## " + c.Name() + "\n", "[`" + c.Name() + "`](#" + c.Name() + ")"} {
			if !strings.Contains(page, must) {
				t.Errorf("docs/commands.md has no %q", must)
			}
		}
	}
	if !strings.Contains(page, "`"+Name+" --version`") {
		t.Error("docs/commands.md does not describe how to get the version")
	}
	for _, f := range printer.Formats() {
		if !strings.Contains(page, "`"+f+"`") {
			t.Errorf("docs/commands.md does not describe the format %s", f)
		}
	}
	for _, code := range []int{ExitFine, ExitFailed, ExitUsage, ExitProblems, ExitTimeout} {
		if !strings.Contains(page, "\n| "+strconv.Itoa(code)+" | ") {
			t.Errorf("docs/commands.md does not describe the exit code %d", code)
		}
	}
}

func withFlags(t *testing.T, page, section string, flags *pflag.FlagSet) string {
	t.Helper()
	before, rest, ok := strings.Cut(page, "\n## "+section+"\n")
	if !ok {
		t.Errorf("docs/commands.md has no section %s", section)

		return page
	}
	body, after, more := strings.Cut(rest, "\n## ")
	at := flagBlock.FindStringIndex(body)
	if at == nil {
		t.Errorf("docs/commands.md has no flags of %s", section)

		return page
	}
	body = body[:at[0]] + "```text\n" + flags.FlagUsages() + "```" + body[at[1]:]
	if more {
		body += "\n## " + after
	}

	return before + "\n## " + section + "\n" + body
}

func TestHelp(t *testing.T) {
	root := newRoot(&options{})
	commands := root.Commands()
	for _, c := range root.Commands() {
		commands = append(commands, c.Commands()...)
	}
	for _, c := range commands {
		if c.Short == "" || c.Long == "" || !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s: a command needs a short text, a long text and examples that call it", c.Name())
		}
	}
}

// TestCompletion asks for completions as a shell does.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := command(t, nil, "completion", shell); r.code != ExitFine || !strings.Contains(r.out, Name) {
			t.Errorf("completion %s: code %d, %s", shell, r.code, r.err)
		}
	}
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Commands": {reason: "The shell completes commands.", args: []string{""}, want: "validate\t"},
		"Flags":    {reason: "The shell completes flags.", args: []string{"validate", "--st"}, want: "--strict\t"},
		"Formats":  {reason: "The shell completes the values of a flag.", args: []string{"inspect", "-o", ""}, want: "html\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := command(t, nil, append([]string{cobra.ShellCompRequestCmd}, tc.args...)...)
			if !strings.Contains(r.out, tc.want) {
				t.Errorf("%s want %q, got %q (%s)", tc.reason, tc.want, r.out, r.err)
			}
		})
	}
}
