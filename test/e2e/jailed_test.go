package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testJailed backs up and restores with a plugin that has no rights and can write no file.
func (s *suite) testJailed(t *testing.T, n *tenant) {
	ctx := t.Context()
	jail, err := s.target.JailPlugin(ctx)
	free := errors.Is(err, stack.ErrNoJail)
	if !free {
		must(t, err)
		defer func() { must(t, jail.Free(ctx)) }()
		for _, dir := range []string{"/", "/tmp", "/var/tmp", "/dev/shm", filepath.Dir(jail.Sockets())} {
			if out, code, err := jail.Run(ctx, "touch", filepath.Join(dir, "written")); err != nil || code == 0 {
				t.Errorf("it can write to %s: %s, %v", dir, out, err)
			}
		}
	}
	before := len(asked(t, s.target, 0))
	s.backUp(t, s.target, n)
	must(t, n.DeleteNamespace(ctx, s.target))
	s.restore(t, n, n.Namespace, "--include-namespaces", n.Namespace)
	s.settle(t, n)
	s.wantSound(t, n)
	if len(asked(t, s.target, before)) == 0 {
		t.Error("the plugin was not at work")
	}
	if free {
		t.Skip(err)
	}

	file := filepath.Join(filepath.Dir(jail.Sockets()), "backup.tar.gz")
	_, err = s.target.Velero(ctx, "backup", "download", n.Namespace, "-o", file)
	must(t, err)
	must(t, os.Chmod(file, 0o644))
	for args, want := range map[string]string{
		"validate -n jailed":                     "adopted",
		"validate -n jailed -o html":             "<html",
		"release -n jailed --dry-run":            "Nothing is held",
		"wait -n jailed --timeout 1m":            "is adopted",
		"inspect " + file:                        n.Name(0),
		"inspect --against " + file + " -o json": n.Name(0),
	} {
		out, code, err := jail.Run(ctx, append([]string{"plugin"}, strings.Fields(args)...)...)
		must(t, err)
		if !strings.Contains(out, want) || code != 0 && !strings.HasPrefix(args, "inspect") || strings.Contains(out, "read-only file system") {
			t.Errorf("%s ended with %d: %s", args, code, out)
		}
	}

	left, err := os.ReadDir(jail.Sockets())
	must(t, err)
	for _, f := range left {
		if f.Type()&os.ModeSocket == 0 {
			t.Errorf("the plugin has written the file %s", f.Name())
		}
	}
}

// testApart restores a namespace with a plugin that has no rights, and searches for its secrets in
// everything that was written by then.
func (s *suite) testApart(t *testing.T) {
	t.Helper()
	n := s.few(t, s.target, drill.Platform{Namespace: "jailed", Orphan: true}, 2)
	s.plant(t, n)
	t.Run("Jailed", func(t *testing.T) { s.testJailed(t, n) })
	t.Run("Secrets", func(t *testing.T) { s.testSecrets(t, n) })
}
