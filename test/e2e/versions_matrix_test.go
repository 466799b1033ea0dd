//go:build matrix

package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// These tests run the same scenes on each version, with the same expectations unless the case
// differs. "make test" has some of them (v2.3, and those of claims on v1.20).

// eachVersion runs a test on versions of Crossplane.
func eachVersion(t *testing.T, test func(t *testing.T, version stack.Version), versions ...stack.Version) {
	t.Helper()
	t.Parallel()
	for _, v := range versions {
		t.Run(string(v), func(t *testing.T) { test(t, v) })
	}
}

func TestMatrixCrossplaneV2(t *testing.T) { testCrossplane(t, stack.V2) }

func TestMatrixCrossplaneV1(t *testing.T) { testCrossplane(t, stack.V1) }

func TestMatrixCompatibilityV1(t *testing.T) { testCompatibility(t, stack.V1) }

func TestMatrixCompatibilityV2(t *testing.T) { testCompatibility(t, stack.V20) }

func TestMatrixWaysV2(t *testing.T) { testWays(t, stack.V2) }

func TestMatrixWaysV1(t *testing.T) { testWays(t, stack.V1) }

func TestMatrixMovingV2(t *testing.T) { testMoving(t, stack.V2, true) }

func TestMatrixMovingV1(t *testing.T) { testMoving(t, stack.V1, true) }

func TestMatrixTenantsV1(t *testing.T) { testTenants(t, stack.V1) }

func TestMatrixCommandsV1(t *testing.T) { testCommands(t, stack.V1) }

func TestMatrixPlace(t *testing.T) { eachVersion(t, testPlace, stack.V2, stack.V1) }

func TestMatrixQuarantine(t *testing.T) { eachVersion(t, testQuarantine, stack.V2, stack.V1) }

func TestMatrixGuard(t *testing.T) { eachVersion(t, testGuard, stack.V1, stack.V20, stack.V24) }

func TestMatrixPackages(t *testing.T) {
	eachVersion(t, testPackages, stack.V2, stack.V1, stack.V20, stack.V24)
}

func TestMatrixAppliers(t *testing.T) {
	eachVersion(t, testAppliers, stack.V2, stack.V1, stack.V20, stack.V24)
}

func TestMatrixTouched(t *testing.T) {
	eachVersion(t, testTouches, stack.V2, stack.V1, stack.V20, stack.V24)
}

func TestMatrixAhead(t *testing.T) {
	eachVersion(t, func(t *testing.T, v stack.Version) { t.Helper(); testAhead(t, v, drill.Platform{Crossplane: v}.Dir()) }, stack.V2, stack.V1, stack.V20, stack.V24)
}

// Crossplane v2.0 and stack.V2 delete owned objects in different ways (background, foreground), and
// v2.4 never deletes what it does not control.
func TestMatrixCompositionChanges(t *testing.T) {
	eachVersion(t, func(t *testing.T, v stack.Version) { t.Helper(); t.Parallel(); testCompositionChanges(t, v) }, stack.V2, stack.V1, stack.V20, stack.V24)
}

// TestMatrixAppliedFirst is a part of TestMatrixCrossplane.
func TestMatrixAppliedFirst(t *testing.T) {
	eachVersion(t, func(t *testing.T, version stack.Version) {
		t.Helper()
		t.Parallel()
		s := newSuite(t, version)
		g := newGit(t)
		all := s.fillGitFirst(t, g)
		s.loseSource(t, all.tenants()...)
		s.testAppliedFirst(t, g, all)
	}, stack.V20, stack.V24)
}

func TestMatrixCasesV2(t *testing.T) { testCases(t, stack.V2, "v2", "matrix") }

func TestMatrixCasesV1(t *testing.T) { testCases(t, stack.V1, "v1.20", "matrix") }

func TestMatrixCasesV20(t *testing.T) { testCases(t, stack.V20, "v2", "") }

func TestMatrixCasesV24(t *testing.T) { testCases(t, stack.V24, "v2", "") }
