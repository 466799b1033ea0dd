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
		"Plain":        {reason: "A plain name needs no quotes.", of: xp.ReleaseCommand(of("team-a", "orders")), want: "velero-plugin-for-crossplane release team-a/orders"},
		"Substitution": {reason: "The shell must read a substitution as part of the name.", of: xp.ReleaseCommand(of("", "$(touch pwned)")), want: "velero-plugin-for-crossplane release '$(touch pwned)'"},
		"Quote":        {reason: "A quote in the name must not end the quoted word.", of: xp.ValidateCommand(of("", "'; rm -rf ~'")), want: `velero-plugin-for-crossplane validate ''\''; rm -rf ~'\'''`},
		"Option":       {reason: "A name with a leading dash must not become an option.", of: xp.ReleaseCommand(of("", "-rf")), want: "velero-plugin-for-crossplane release -- -rf"},
		"QuotedOption": {reason: "Quotes alone don't hide an option from the program.", of: xp.ReleaseCommand(of("", "--yes=a b")), want: "velero-plugin-for-crossplane release -- '--yes=a b'"},
		"Empty":        {reason: "An empty name is still one word.", of: xp.ReleaseCommand(of("", "")), want: "velero-plugin-for-crossplane release ''"},
		"Letters":      {reason: "Letters outside of ASCII are printable too.", of: xp.ReleaseCommand(of("", "bücher")), want: "velero-plugin-for-crossplane release 'bücher'"},
		"Escape":       {reason: "A terminal would obey the escape sequence.", of: xp.ReleaseCommand(of("", "\x1b]0;pwned\x07")), want: "velero-plugin-for-crossplane release NAME" + refused},
		"Newline":      {reason: "A pasted newline runs the command too early.", of: xp.ReleaseCommand(of("", "a\nb")), want: "velero-plugin-for-crossplane release NAME" + refused},
		"Bidi":         {reason: "A bidi character makes the name look different.", of: xp.ReleaseCommand(of("", "a\u202eb")), want: "velero-plugin-for-crossplane release NAME" + refused},
		"NoUTF8":       {reason: "A user can't type a name that is not UTF-8.", of: xp.ReleaseCommand(of("", "a\xff")), want: "velero-plugin-for-crossplane release NAME" + refused},
		"Value":        {reason: "An option's value is not read as another option.", of: xp.ReleaseOf("--all"), want: "velero-plugin-for-crossplane release --restore=--all"},
		"Kubectl":      {reason: "The command has the form that users know.", of: xp.Kubectl("delete", of("team-a", "orders")), want: "kubectl delete Order.v1.example.org orders -n team-a"},
		"KubectlOption": {
			reason: "The options end before the name.", of: xp.Kubectl("delete", of("team-a", "--all")), want: "kubectl delete -n team-a -- Order.v1.example.org --all",
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
			t.Fatalf("%q has characters that don't print", line)
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
