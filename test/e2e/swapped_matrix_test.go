//go:build matrix

package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// firstKey is the commit since which the key that signs marks is made as today. No version was released
// before.
const firstKey = "e41128bda025d4eb154077a2fc45c8a22c255b19"

func TestMatrixSwappedV1(t *testing.T) { testSwapped(t, stack.V1) }

func TestMatrixSwappedV2(t *testing.T) { testSwapped(t, stack.V2) }

// testSwapped restarts Velero with another version of the plugin in the middle of restores.
func testSwapped(t *testing.T, version stack.Version) {
	t.Helper()
	older := pluginOf(t, firstKey)
	current := filepath.Join(t.TempDir(), "current")
	buildPlugin(t, repository(t), current)
	newer := pluginOfNextFormat(t)

	s := newSuite(t, version)
	var all []*tenant
	for _, name := range []string{"up-and-down", "down-and-up", "refused"} {
		all = append(all, s.few(t, s.source, drill.Platform{Namespace: name}, 6))
	}
	for _, n := range all {
		s.backUp(t, s.source, n)
	}
	s.loseSource(t, all...)
	t.Run("UpAndDown", func(t *testing.T) { s.testSwap(t, all[0], older, current) })
	t.Run("DownAndUp", func(t *testing.T) { s.testSwap(t, all[1], current, older) })
	t.Run("Refused", func(t *testing.T) { s.testNewerRefused(t, all[2], newer, current) })
}

// testSwap lets a second version continue with what a first version holds. The first version takes
// over again when half of it is released.
func (s *suite) testSwap(t *testing.T, n *tenant, one, other string) {
	ctx := t.Context()
	s.holdBy(t, n, one)
	must(t, s.target.UsePluginFile(ctx, other))
	w := newKillWatch(n, killPoint{is: isHalfReleased}, func() (func() error, error) {
		return func() error { return s.target.Start(ctx, stack.Velero) }, errors.Join(s.target.Kill(stack.Velero), s.target.LinkPluginFile(one))
	})
	p, err := s.target.Check(ctx, n.Namespace, checked(), w.visit)
	must(t, err)
	must(t, s.target.Start(ctx, stack.Crossplane))
	s.awaitKill(t, n, w)
	must(t, w.err)
	must(t, p.Remove(ctx))
	t.Logf("the second version was replaced when %s", w.seen)
	s.awaitCompleted(t, n.Namespace)
	s.settle(t, n)
	s.wantSound(t, n)
}

// holdBy restores a tenant with a version of the plugin while Crossplane does not run.
func (s *suite) holdBy(t *testing.T, n *tenant, plugin string) {
	t.Helper()
	ctx := t.Context()
	must(t, s.target.UsePluginFile(ctx, plugin))
	must(t, s.target.Stop(stack.Crossplane))
	must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace))
	must(t, drill.AwaitOperations(ctx, s.target, n.Namespace))
	s.wantHeld(t, n)
}

func (s *suite) wantHeld(t *testing.T, n *tenant) (marks []string) {
	t.Helper()
	xrs, err := n.Composites(t.Context(), s.target)
	must(t, err)
	if len(xrs) != n.size {
		t.Fatalf("there are %v", names(xrs))
	}
	for _, u := range xrs {
		if !paused(&u) || !drill.Held(&u) {
			t.Errorf("XR %s is not held: %v", u.GetName(), u.GetAnnotations())
		}
		marks = append(marks, markOf(&u))
	}

	return marks
}

// testNewerRefused expects a version to refuse marks of a newer version whose format it does not
// know, and the newer one to continue with them.
func (s *suite) testNewerRefused(t *testing.T, n *tenant, newer, current string) {
	ctx := t.Context()
	s.holdBy(t, n, newer)
	for _, mark := range s.wantHeld(t, n) {
		if !strings.Contains(mark, `"format":2`) {
			t.Fatalf("a mark has no newer format, so the test proves nothing: %s", mark)
		}
	}
	must(t, s.target.UsePluginFile(ctx, current))
	must(t, s.target.Start(ctx, stack.Crossplane))
	s.wantPhase(t, n.Namespace, "PartiallyFailed")
	details, err := s.target.Velero(ctx, "restore", "describe", n.Namespace, "--details")
	must(t, err)
	for _, want := range []string{"a newer version of this plugin has written it, in format 2", "install that version of the plugin again, or a later one"} {
		if linesWith(details, want) < n.size {
			t.Errorf("the restore does not report %q for each XR:\n%s", want, details)
		}
	}
	r := s.runAs(ctx, s.target.Kubeconfig(), []string{"validate", "-n", n.Namespace})
	wantMessage(t, "validate", r.stdout, "Malformed")
	s.wantHeld(t, n)
	got, err := n.Compare(ctx, s.target, s.cloud, n.before)
	must(t, err)
	if got.Creates+got.Deletes+got.Orphans+got.Duplicates > 0 {
		t.Errorf("the held objects were changed: %+v", got)
	}
	must(t, s.target.UsePluginFile(ctx, newer))
	s.restore(t, n, n.Namespace+"-again")
	s.settle(t, n)
	s.wantSound(t, n)
}

func repository(t *testing.T) string {
	t.Helper()
	root, err := build.Root()
	must(t, err)

	return root
}

// pluginOf builds the plugin of a commit of this repository.
func pluginOf(t *testing.T, commit string) string {
	t.Helper()
	dir := t.TempDir()
	unpack := exec.CommandContext(t.Context(), "sh", "-c", `git -C "$0" archive --output "$2/source.tar" "$1" && tar -xf "$2/source.tar" -C "$2"`, repository(t), commit, dir)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Skipf("this checkout does not have the older version: %v\n%s", err, out)
	}
	path := filepath.Join(dir, "older")
	buildPlugin(t, dir, path)

	return path
}

// pluginOfNextFormat builds the plugin with the format version of its marks increased by one.
func pluginOfNextFormat(t *testing.T) string {
	t.Helper()
	file := filepath.Join(repository(t), "internal", "hold", "mark.go")
	b, err := os.ReadFile(file)
	must(t, err)
	text := string(b)
	for old, changed := range map[string]string{"const Format = 1\n": "const Format = 2\n", "short := *h\n": "short := *h\n\tshort.Format = Format\n"} {
		if strings.Count(text, old) != 1 {
			t.Fatalf("%s has not one %q", file, old)
		}
		text = strings.Replace(text, old, changed, 1)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, "mark.go")
	must(t, os.WriteFile(changed, []byte(text), 0o600))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	path := filepath.Join(dir, "newer")
	buildPlugin(t, repository(t), path, "-overlay", filepath.Join(dir, "overlay.json"))

	return path
}

// buildPlugin builds the plugin of a checkout.
func buildPlugin(t *testing.T, dir, path string, flags ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-trimpath"}, flags...), "-o", path, ".")...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the plugin: %v\n%s", err, out)
	}
}
