package hooks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// nowhere is a kubeconfig file whose API server does not exist: port 1 of loopback is closed.
const nowhere = `{apiVersion: v1, kind: Config, current-context: b, clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}],
contexts: [{name: b, context: {cluster: c}}, {name: a, context: {cluster: c}}]}`

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	if err := os.WriteFile(config, []byte(nowhere), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	t.Setenv("HOME", dir)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	cases := map[string]struct {
		reason string
		args   string
		code   int
		// out and err are the beginnings of the output.
		out, err string
	}{
		"Typo": {
			reason: "The error must suggest a similar command.", args: "valdate", code: ExitUsage,
			err: "Error: unknown command \"valdate\"; did you mean validate?\nSee \"velero-plugin-for-crossplane --help\".\n",
		},
		"Help":           {reason: "help must print the help of a command.", args: "help release", out: "Release "},
		"Unknown":        {reason: "A word that is like no command has no suggestion.", args: "nonsense", code: ExitUsage, err: "Error: unknown command \"nonsense\"\nSee"},
		"UnknownShell":   {reason: "completion must refuse an unknown shell.", args: "completion tcsh", code: ExitUsage, err: "Error: unknown command \"tcsh\""},
		"Completion":     {reason: "completion must print a script for a known shell.", args: "completion bash", out: "# bash completion"},
		"Version":        {reason: "The version is available as a command too.", args: "version", out: "velero-plugin-for-crossplane of unknown version"},
		"Format":         {reason: "The error must list the formats.", args: "validate -o tabel", code: ExitUsage, err: "Error: invalid argument \"tabel\" for \"-o, --output\" flag: unknown output format; use one of table,"},
		"NoBackup":       {reason: "The error must count the missing argument.", args: "inspect", code: ExitUsage, err: "Error: accepts 1 arg(s), received 0"},
		"NoFile":         {reason: "The error must name a file that does not exist.", args: "inspect " + dir + "/none", code: ExitFailed, err: "Error: cannot read the backup: open"},
		"Directory":      {reason: "The error must name the directory, which is no backup.", args: "inspect " + dir, code: ExitFailed, err: "Error: cannot read the backup " + filepath.Base(dir) + ": "},
		"NoConfig":       {reason: "Without a kubeconfig the error must name the ways to set one.", args: "validate", code: ExitFailed, err: "Error: cannot find a kubeconfig file: name one with --kubeconfig or KUBECONFIG"},
		"NothingListens": {reason: "A wrong address must fail at once.", args: "validate --kubeconfig " + config, code: ExitFailed, err: "Error: cannot ask which kinds are served: "},
		"TwoScopes":      {reason: "The two flags contradict each other.", args: "validate -A -n x", code: ExitUsage, err: "Error: if any flags in the group [namespace all-namespaces]"},
		"Contexts":       {reason: "The shell completes contexts of the kubeconfig.", args: "__complete validate --kubeconfig " + config + " --context =", out: "a\nb\n:4\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := strings.Fields(tc.args)
			if args[len(args)-1] == "=" {
				args[len(args)-1] = ""
			}
			got := command(t, nil, args...)
			short := func(s, like string) string { return s[:min(len(s), len(like))] }
			want := commandResult{code: tc.code, out: tc.out, err: tc.err}
			begun := commandResult{code: got.code, out: short(got.out, tc.out), err: short(got.err, tc.err)}
			if diff := cmp.Diff(want, begun, cmp.AllowUnexported(commandResult{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMessageOf(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", nil)
	cases := map[string]struct {
		reason string
		err    error
		want   reason.Code
	}{
		"Coded":     {reason: "A command knows best what has failed.", err: reason.MarkKeyMissing.Errorf("%w", forbidden), want: reason.MarkKeyMissing},
		"Forbidden": {reason: "A missing right has the same cure for all commands.", err: fmt.Errorf("cannot list: %w", forbidden), want: reason.RightMissing},
		"Timeout":   {reason: "A request without an answer has timed out.", err: fmt.Errorf("cannot list: %w", context.DeadlineExceeded), want: reason.TimedOut},
		"Cancelled": {reason: "A signal cancels the context.", err: context.Canceled, want: reason.Interrupted},
		"Usage":     {reason: "The help explains flags.", err: errors.New("unknown flag")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := messageOf(tc.err); got.Code != tc.want || got.Text != tc.err.Error() {
				t.Errorf("%s\nmessageOf(…): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
