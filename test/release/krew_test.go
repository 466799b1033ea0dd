package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// krew is the program that reads the manifest.
const krew = "sigs.k8s.io/krew/cmd/krew@v0.4.3"

// wantKrew lets krew itself install the plugin for this platform from a release, and runs it as
// kubectl does.
func wantKrew(t *testing.T, dir string) {
	t.Helper()
	suffix := "_v1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	root := t.TempDir()
	c := exec.CommandContext(t.Context(), "go", "run", krew, "install",
		"--manifest", filepath.Join(dir, Name+"_v1.2.3_krew.yaml"), "--archive", filepath.Join(dir, Name+suffix))
	c.Env = append(os.Environ(), "KREW_ROOT="+root, "KREW_NO_UPGRADE_CHECK=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("krew cannot install the plugin: %v\n%s", err, out)
	}
	installed := filepath.Join(root, "bin", "kubectl-crossplane_restore")
	if out, err := exec.CommandContext(t.Context(), installed).CombinedOutput(); err != nil {
		t.Fatalf("cannot run what krew has installed: %v\n%s", err, out)
	}
	store := filepath.Join(root, "store", KrewName, "v1.2.3")
	for _, file := range []string{Name, "LICENSE", "THIRD_PARTY_LICENSES.txt"} {
		if _, err := os.Stat(filepath.Join(store, file)); err != nil {
			t.Error(err)
		}
	}
}
