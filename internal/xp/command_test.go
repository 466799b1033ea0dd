package xp_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestCommand(t *testing.T) {
	const refused = " (NAME has characters that do not print, so there is no command to copy)"
	of := func(namespace, name string) xp.Ref {
		return xp.Ref{APIVersion: "example.org/v1", Kind: "Order", Namespace: namespace, Name: name}
	}
	xptest.Run(t, map[string]xptest.Row[xp.Command, string]{
		"Plain":   {Reason: "A plain name needs no quotes.", In: xp.ReleaseCommand(of("team-a", "orders")), Want: "velero-plugin-for-crossplane release team-a/orders"},
		"Option":  {Reason: "A name with a leading dash must not become an option.", In: xp.ReleaseCommand(of("", "-rf")), Want: "velero-plugin-for-crossplane release -- -rf"},
		"Escape":  {Reason: "A terminal would obey the escape sequence.", In: xp.ReleaseCommand(of("", "\x1b]0;pwned\x07")), Want: "velero-plugin-for-crossplane release NAME" + refused},
		"Value":   {Reason: "An option's value is not read as another option.", In: xp.ReleaseOf("--all"), Want: "velero-plugin-for-crossplane release --restore=--all"},
		"Kubectl": {Reason: "The command has the form that users know.", In: xp.Kubectl("delete", of("team-a", "orders")), Want: "kubectl delete Order.v1.example.org orders -n team-a"},
		"KubectlOption": {
			Reason: "The options end before the name.", In: xp.Kubectl("delete", of("team-a", "--all")), Want: "kubectl delete -n team-a -- Order.v1.example.org --all",
		},
	}, func(in xp.Command) string {
		return in.String()
	})
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
