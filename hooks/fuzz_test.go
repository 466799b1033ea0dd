package hooks

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// FuzzArguments runs the program with arguments, without a cluster and with a backup on stdin only.
func FuzzArguments(f *testing.F) {
	for _, args := range []string{
		"inspect - -o json", "inspect - -n team-a --strict", "inspect nowhere", "inspect - -o\thtml", "validate -n .. -o yaml", "wait --timeout -1s orders/x",
		"wait --for adopted --timeout 99999999999h a/b/c", "release --force --yes ../x", "release --all --restore a/b/c", "--kubeconfig nowhere validate",
		"wait --restore x --context \x1b[31m", "completion bash", "help release", "wait -l =,! --timeout 1ms", "inspect - --restore-namespaces ,,", "-n", "--", "",
	} {
		f.Add(strings.ReplaceAll(args, " ", "\n"))
	}
	f.Setenv("KUBECONFIG", filepath.Join(f.TempDir(), "none"))
	f.Chdir(f.TempDir())
	backup := xptest.Backup(shop()...)
	f.Fuzz(func(t *testing.T, lines string) {
		args := strings.Split(lines, "\n")
		if strings.Contains(lines, "..") || strings.HasPrefix(lines, "/") || strings.Contains(lines, "\n/") || strings.Contains(lines, "=/") {
			return // A file may be endless, such as a device.
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var out, stderr bytes.Buffer
		code := Run(ctx, args, Program{In: bytes.NewReader(backup), Out: &out, Err: &stderr, DryRunner: dryRunNothing})
		switch code {
		case ExitFine:
		case ExitFailed, ExitUsage, ExitTimeout:
			if stderr.Len() == 0 {
				t.Errorf("%q ends with %d and prints no error", args, code)
			}
		case ExitProblems:
			if out.Len() == 0 {
				t.Errorf("%q ends with problems and prints none", args)
			}
		default:
			t.Errorf("%q ends with %d, an undocumented exit code", args, code)
		}
	})
}
