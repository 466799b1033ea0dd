//go:build matrix

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// TestMatrixReplays expects the real stack to come to each damage that the explorer has found, and
// to none with the unchanged plugin.
func TestMatrixReplays(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(filepath.Join("testdata", "replays"))
	must(t, err)
	replays := map[stack.Version][]counterexample{}
	for _, f := range files {
		r := readReplay(t, f.Name())
		replays[r.version()] = append(replays[r.version()], r)
	}
	for version, some := range replays {
		t.Run(string(version), func(t *testing.T) { testReplays(t, version, some...) })
	}
}
