package xp_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func TestCommand(t *testing.T) {
	const refused = " (NAME has characters that do not print, so there is no command to copy)"
	of := func(namespace, name string) xp.Ref {
		return xp.Ref{APIVersion: "example.org/v1", Kind: "Order", Namespace: namespace, Name: name}
	}
	cases := map[string]struct {
		reason string
		of     xp.Command
		want   string
	}{
		"Plain":        {reason: "What needs no quotes has none.", of: xp.ReleaseCommand(of("team-a", "orders")), want: "velero-plugin-for-crossplane release team-a/orders"},
		"Substitution": {reason: "It is a name.", of: xp.ReleaseCommand(of("", "$(touch pwned)")), want: "velero-plugin-for-crossplane release '$(touch pwned)'"},
		"Quote":        {reason: "It ends no quotes.", of: xp.ValidateCommand(of("", "'; rm -rf ~'")), want: `velero-plugin-for-crossplane validate ''\''; rm -rf ~'\'''`},
		"Option":       {reason: "It is no option.", of: xp.ReleaseCommand(of("", "-rf")), want: "velero-plugin-for-crossplane release -- -rf"},
		"QuotedOption": {reason: "A program does not see the quotes.", of: xp.ReleaseCommand(of("", "--yes=a b")), want: "velero-plugin-for-crossplane release -- '--yes=a b'"},
		"Empty":        {reason: "It is a word all the same.", of: xp.ReleaseCommand(of("", "")), want: "velero-plugin-for-crossplane release ''"},
		"Letters":      {reason: "Not only ASCII prints.", of: xp.ReleaseCommand(of("", "bücher")), want: "velero-plugin-for-crossplane release 'bücher'"},
		"Escape":       {reason: "A terminal would obey it.", of: xp.ReleaseCommand(of("", "\x1b]0;pwned\x07")), want: "velero-plugin-for-crossplane release NAME" + refused},
		"Newline":      {reason: "What is pasted is run at the end of a line.", of: xp.ReleaseCommand(of("", "a\nb")), want: "velero-plugin-for-crossplane release NAME" + refused},
		"Bidi":         {reason: "It is not what it looks like.", of: xp.ReleaseCommand(of("", "a\u202eb")), want: "velero-plugin-for-crossplane release NAME" + refused},
		"NoUTF8":       {reason: "Nobody can type it.", of: xp.ReleaseCommand(of("", "a\xff")), want: "velero-plugin-for-crossplane release NAME" + refused},
		"Value":        {reason: "An option's value is none.", of: xp.ReleaseOf("--all"), want: "velero-plugin-for-crossplane release --restore=--all"},
		"Kubectl":      {reason: "As people write it.", of: xp.Kubectl("delete", of("team-a", "orders")), want: "kubectl delete Order.v1.example.org orders -n team-a"},
		"KubectlOption": {
			reason: "Options end before it.", of: xp.Kubectl("delete", of("team-a", "--all")), want: "kubectl delete -n team-a -- Order.v1.example.org --all",
		},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, tc.of.String()); diff != "" {
			t.Errorf("%s: %s\n-want, +got:\n%s", name, tc.reason, diff)
		}
	}
}

// FuzzCommand compares the words that a shell reads in a command with the words that went in.
func FuzzCommand(f *testing.F) {
	for _, s := range []string{
		"orders", "", "-rf", "--all", "--", "a b", "a  b", "$(touch pwned)", "`touch pwned`", "'; rm -rf ~'", `"`, `\`, "!!", "~", "*", "{a,b}", "a\nb",
		"\x1b]0;pwned\x07", "\u202e", "\x00", "\xff", "#", "a=b", "%s", "ü", "&", "|", ">x", "\t", "\u00a0",
	} {
		f.Add(s, "orders")
		f.Add("-n", s)
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		f.Skip("There is no shell.")
	}
	f.Fuzz(func(t *testing.T, value, operand string) {
		for _, s := range []string{value, operand} {
			if word, ok := xp.ShellWord(s); ok != xp.IsPrintable(s) || !ok && word != "" {
				t.Fatalf("%q: %q, %v", s, word, ok)
			}
		}
		line := xp.NewCommand(`printf "%s\0"`, "x").With("--restore", value).On(operand).String()
		if !xp.IsPrintable(line) {
			t.Fatalf("%q has what does not print", line)
		}
		if !xp.IsPrintable(value) || !xp.IsPrintable(operand) {
			return
		}
		out, err := exec.CommandContext(t.Context(), shell, "-c", line).CombinedOutput() //nolint:gosec // The test proves that nothing else is run.
		if err != nil {
			t.Fatalf("%q: %v: %s", line, err, out)
		}
		want := []string{"x", "--restore", value, operand}
		if strings.HasPrefix(value, "-") {
			want = []string{"x", "--restore=" + value, operand}
		}
		if strings.HasPrefix(operand, "-") {
			want = append(want[:len(want)-1], "--", operand)
		}
		if diff := cmp.Diff(strings.Join(want, "\x00")+"\x00", string(out)); diff != "" {
			t.Errorf("the shell reads other words in %q: -want, +got:\n%s", line, diff)
		}
	})
}
