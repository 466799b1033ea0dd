//go:build matrix

package e2e

import (
	goruntime "runtime"
	"testing"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cases"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// timed are cases whose restores compare times, or wait for controllers of each kind.
const timed = "^(nested|mirrors|revisions|newer-target|withheld|passwords|single)$"

// apart is by how much clocks differ.
const apart = 5 * time.Minute

// TestMatrixClocksV2 restores trees while one clock is five minutes off.
func TestMatrixClocksV2(t *testing.T) { testClocks(t, stack.V2, timed) }

// TestMatrixClocksV1 does so on Crossplane v1.20, whose conditions have no generation.
func TestMatrixClocksV1(t *testing.T) { testClocks(t, stack.V1, timed) }

// TestMatrixClocksOfIdentityV2 does so with MRs whose identity and status a restore depends on.
func TestMatrixClocksOfIdentityV2(t *testing.T) {
	testClocks(t, stack.V2, "^(create-pending|gated|gone|late-config|observed-first|observing)$")
}

// testClocks runs cases with each machine's clock ahead of the others, and behind them.
func testClocks(t *testing.T, version stack.Version, match string) {
	t.Helper()
	if goruntime.GOOS != "linux" || goruntime.GOARCH != "amd64" {
		t.Skip("a program can have another clock only on Linux on amd64")
	}
	for direction, ahead := range map[string]time.Duration{"Ahead": apart, "Behind": -apart} {
		for machine, clocks := range map[string]map[string]stack.Clocks{
			"Source":     {"source": stack.Every(ahead)},
			"APIServer":  {"target": {stack.APIServer: ahead, stack.ControllerManager: ahead}},
			"Velero":     {"target": {stack.Velero: ahead}},
			"Crossplane": {"target": {stack.Crossplane: ahead}},
			"Provider":   {"target": {stack.CloudProvider: ahead}},
		} {
			t.Run(machine+direction, func(t *testing.T) {
				t.Parallel()
				loaded, err := cases.Load("../cases", drill.Platform{Crossplane: version}.Dir())
				must(t, err)
				newCaseStage(t, version, clocks).testLoaded(t, loaded, match)
			})
		}
	}
}
