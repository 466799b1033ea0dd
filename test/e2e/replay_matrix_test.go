//go:build matrix

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// Every damage that the explorer has found is one that the real stack comes to, and none with the
// plugin as it is.
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
