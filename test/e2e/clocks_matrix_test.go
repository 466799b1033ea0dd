//go:build matrix

package e2e

import (
	goruntime "runtime"
	"testing"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// apart is by how much clocks differ.
const apart = 5 * time.Minute

// TestMatrixClocksV2 restores trees while one clock is five minutes off.
func TestMatrixClocksV2(t *testing.T) {
	eachClock(t, func(t *testing.T, clocks map[string]stack.Clocks) {
		t.Helper()
		testShapesBy(t, clocks, stack.V2, "v2", shapesV2())
	})
}

// TestMatrixClocksV1 does so on Crossplane v1.20, whose conditions have no generation.
func TestMatrixClocksV1(t *testing.T) {
	eachClock(t, func(t *testing.T, clocks map[string]stack.Clocks) {
		t.Helper()
		testShapesBy(t, clocks, stack.V1, "v1.20", shapesV1())
	})
}

// TestMatrixClocksOfIdentityV2 does so with MRs whose identity and status a restore depends on.
func TestMatrixClocksOfIdentityV2(t *testing.T) {
	eachClock(t, func(t *testing.T, clocks map[string]stack.Clocks) {
		t.Helper()
		testIdentityBy(t, clocks, stack.V2, "v2")
	})
}

// eachClock runs a test with each machine's clock ahead of the others, and behind them.
func eachClock(t *testing.T, test func(t *testing.T, clocks map[string]stack.Clocks)) {
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
			t.Run(machine+direction, func(t *testing.T) { test(t, clocks) })
		}
	}
}
